package store

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"example.com/billing/internal/domain"
)

// SQLSTATEs that the flow acts on.
const (
	uniqueViolation = "23505"
	checkViolation  = "23514"
	lockNotAvail    = "55P03"
	deadlock        = "40P01"
	notPermitted    = "42501"
	classData       = "22"
)

// sqlState returns the SQLSTATE of an error of the database, or "".
func sqlState(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

// translate gives an error of the database its meaning for the domain. What is
// left as it is may be tried again: a lost connection, a lock timeout (55P03), a
// deadlock (40P01), a serialization failure (40001), a claim that met a partition
// being attached or has missed it (23514), or a commit that nobody knows the end of.
func translate(err error) error {
	if err == nil {
		return nil
	}
	if strings.HasPrefix(sqlState(err), classData) {
		return fmt.Errorf("%w: %w", domain.ErrData, err)
	}
	return err
}
