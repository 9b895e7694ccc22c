package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"example.com/billing/internal/sandbox/postgres"
)

// commandGrace is how long a wrapped command may take to end after it was asked to.
const commandGrace = 15 * time.Second

type postgresFlags struct {
	durable  bool
	dir      string
	port     int
	database string
}

func postgresCommand(std streams) *cobra.Command {
	var flags postgresFlags
	c := &cobra.Command{
		Use:   "postgres [flags] [-- command [arguments]]",
		Short: "A private PostgreSQL on loopback, until it is ended or around a command",
		Long: "A private PostgreSQL on loopback, from the binaries that are installed on this machine.\n\n" +
			"With a command, the command is run with DATABASE_URL set, and its exit code is passed\n" +
			"on. Without one, the first line on standard output is the URL, printed once the server\n" +
			"accepts queries, and the server runs until it is ended.\n\n" +
			"It is fast and forgetful (no fsync, data in memory where there is room) unless\n" +
			"--durable or --dir says otherwise.",
		Example: "  sandbox postgres -- go test ./...\n  sandbox postgres --durable --dir ./pgdata",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return servePostgres(cmd.Context(), std, flags, args)
		},
	}
	c.Flags().SetInterspersed(false) // the command's own flags are the command's
	c.Flags().BoolVar(&flags.durable, "durable", false, "flush every commit to disk, as in production")
	c.Flags().StringVar(&flags.dir, "dir", "", "folder that keeps the data over several runs")
	c.Flags().IntVar(&flags.port, "port", 0, "port on 127.0.0.1 (0: a free one)")
	c.Flags().StringVar(&flags.database, "database", "billing", "the database to create and to connect to")
	return c
}

func servePostgres(ctx context.Context, std streams, flags postgresFlags, command []string) (err error) {
	ctx, cancel := untilEnded(ctx)
	defer cancel()
	server, err := postgres.Start(ctx, postgres.Options{Durable: flags.durable, Dir: flags.dir, Port: flags.port})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopped(ctx, server.Stop)) }()
	if err := server.CreateDatabase(ctx, flags.database); err != nil {
		return err
	}
	url := server.URL(flags.database)
	if len(command) > 0 {
		return runCommand(ctx, std, command, append(os.Environ(), "DATABASE_URL="+url))
	}
	fmt.Fprintln(std.out, url)
	select {
	case <-ctx.Done():
		return nil
	case <-server.Done():
		return errors.New("the server ended by itself")
	}
}

// runCommand runs a command in the sandbox's own process group, so that it has
// the terminal, and waits for its end. When ctx ends it is asked to end too;
// Ctrl-C in a terminal has reached it already. An exit code other than 0 is an exitError.
func runCommand(ctx context.Context, std streams, command, environ []string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // running the given command is the purpose
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = std.in, std.out, std.err, environ
	cmd.Cancel = func() error {
		var asked signalError
		if errors.As(context.Cause(ctx), &asked) && asked.Signal == os.Interrupt {
			return nil
		}
		return cmd.Process.Signal(syscall.SIGTERM)
	}
	cmd.WaitDelay = commandGrace
	err := cmd.Run()
	// Not errors.As on err: a command that was told to end and did so with 0 is reported as the context's error.
	switch state := cmd.ProcessState; {
	case state == nil:
		return usageError{fmt.Errorf("run %s: %w", command[0], err)}
	case state.Success():
		return nil
	default:
		return exitError{exitCode(state)}
	}
}

// exitCode is the code that a shell would report.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
