package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"example.com/billing/internal/sandbox/process"
)

const (
	// startTimeout bounds the start of the server, recovery after a crash included.
	startTimeout = 60 * time.Second
	// initTimeout bounds initdb: half a second on a quiet machine, several with a busy disk.
	initTimeout = 120 * time.Second
	// stopGrace is how long a server may take for each kind of shutdown.
	stopGrace = 10 * time.Second
	// readyPoll is the pause between two looks at postmaster.pid.
	readyPoll = 5 * time.Millisecond
	// retryPause is the pause before a start is tried again, and launchTries how often it is.
	retryPause  = 100 * time.Millisecond
	launchTries = 50
	portTries   = 3
	// pidFile has the server's pid on line 1 and its state on line 8; pg_ctl waits for the same.
	pidFile         = "postmaster.pid"
	pidLine         = 0
	statusLine      = 7
	superuser       = "postgres"
	databaseTimeout = 30 * time.Second
)

// Mode is a way to end the server.
type Mode int

const (
	// Fast ends sessions, rolls their transactions back and writes a checkpoint.
	Fast Mode = iota
	// Immediate drops everything, as a crash of the server would; the next start recovers.
	Immediate
)

var (
	// errPortTaken is returned by launch when the server found its port in use.
	errPortTaken = errors.New("port in use")
	// errStillHeld is returned by launch when processes of the server before have not all gone yet.
	errStillHeld = errors.New("data still held by the server before")
)

// Server is a running (or, between Kill and Restart, a dead) PostgreSQL server. It is safe for concurrent use.
type Server struct {
	options Options
	bin     string
	as      *process.Identity
	run     string // temporary: the sockets, and the data too unless it has a folder of its own
	data    string
	port    int

	mu   sync.Mutex
	proc *process.Process
}

// Start starts a server and returns once it accepts queries. It ends early, leaving nothing behind, when ctx does. The server itself lives until
// Stop, or until this process dies (Linux). A machine without PostgreSQL gives ErrNotInstalled.
func Start(ctx context.Context, options Options) (*Server, error) {
	s := &Server{options: options}

	var err error
	if s.bin, err = findBinaries(ctx, options.Bin); err != nil {
		return nil, err
	}

	if s.as, err = identity(); err != nil {
		return nil, err
	}

	err = s.makeFolders()
	if err == nil {
		err = s.initialise(ctx)
	}

	if err == nil {
		err = s.startOnFreePort(ctx)
	}

	if err != nil {
		return nil, errors.Join(fmt.Errorf("start postgresql: %w", err), s.clean())
	}

	return s, nil
}

// makeFolders makes the temporary folder and, if one is asked for, that of the data. The sockets always lie in the temporary one, whose
// path is short: that of a socket may have 107 bytes.
func (s *Server) makeFolders() error {
	base := ""
	if s.options.Dir == "" && !s.options.Durable {
		base = memoryFolder()
	}

	var err error
	if s.run, err = process.TempDir(base, "billingpg"); err != nil && base != "" {
		s.run, err = process.TempDir("", "billingpg")
	}

	if err != nil {
		return err
	}

	if err := give(s.run, s.as); err != nil {
		return err
	}

	s.data = filepath.Join(s.run, "data")
	if s.options.Dir == "" {
		return nil
	}

	if s.data, err = filepath.Abs(s.options.Dir); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}

	if err := os.MkdirAll(s.data, 0o700); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}

	return give(s.data, s.as)
}

// initialise runs initdb on a new folder; the data of an earlier run is left as it is.
func (s *Server) initialise(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(s.data, "PG_VERSION")); err == nil {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, initTimeout)
	defer cancel()

	args := []string{"-D", s.data, "-U", superuser, "-A", "trust", "-E", "UTF8", "--locale=C"}
	if !s.options.Durable {
		args = append(args, "--no-sync")
	}

	_, err := process.Run(ctx, s.spec("initdb", args...))
	if errors.Is(err, fs.ErrPermission) && s.as != nil {
		// Reported for the program, though it is the folder that cannot be entered.
		return fmt.Errorf("initdb as user %d (its folder %s and all above must be open to that user): %w", s.as.UID, s.data, err)
	}

	return err
}

func (s *Server) spec(program string, args ...string) process.Spec {
	return process.Spec{
		Path: filepath.Join(s.bin, program), Args: args,
		// Root's working directory is closed to the server's user.
		Dir: s.run, As: s.as, DeathSignal: syscall.SIGQUIT,
	}
}

// startOnFreePort starts the server on the port that is asked for, or else on a free one: on another when one is taken between choice and use.
func (s *Server) startOnFreePort(ctx context.Context) error {
	if s.port = s.options.Port; s.port != 0 {
		// Checked before the start, as a server there may answer in this one's place.
		if err := process.CheckPort(s.port); err != nil {
			return err
		}

		return s.launchPatiently(ctx)
	}

	var err error

	for range portTries {
		ports, err := process.FreePorts(1)
		if err != nil {
			return err
		}

		s.port = ports[0]
		if err = s.launchPatiently(ctx); !errors.Is(err, errPortTaken) {
			return err
		}
	}

	return err
}

// URL is the address of a database over TCP.
func (s *Server) URL(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.User(superuser), Host: "127.0.0.1:" + strconv.Itoa(s.port),
		Path: "/" + database, RawQuery: "sslmode=disable",
	}

	return u.String()
}

// SocketURL is the address of a database over the unix socket.
func (s *Server) SocketURL(database string) string {
	query := url.Values{"host": {s.run}, "port": {strconv.Itoa(s.port)}, "sslmode": {"disable"}}
	u := url.URL{Scheme: "postgres", User: url.User(superuser), Path: "/" + database, RawQuery: query.Encode()}

	return u.String()
}
