package postgres

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"

	"example.com/billing/internal/sandbox/process"
)

// identity is the user that the server runs as: ourselves (nil), or for root, which PostgreSQL refuses, the first of postgres and
// nobody that exists. It must be a user with an entry in passwd: initdb looks its name up.
func identity() (*process.Identity, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // no other identity is a good answer
	}

	var errs []error

	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			errs = append(errs, err)

			continue
		}

		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("user %s: %w", name, err)
		}

		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("user %s: %w", name, err)
		}

		return &process.Identity{UID: uint32(uid), GID: uint32(gid)}, nil
	}

	return nil, fmt.Errorf("a user for a PostgreSQL started by root: %w", errors.Join(errs...))
}

// give makes the folder private to the server's user.
func give(dir string, as *process.Identity) error {
	if as == nil {
		return nil
	}

	if err := os.Chown(dir, int(as.UID), int(as.GID)); err != nil {
		return fmt.Errorf("give the folder to the server's user: %w", err)
	}

	return nil
}
