package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

// Exit codes of every command.
const (
	exitOK    = 0
	exitFail  = 1 // a finding, or a failure at run time
	exitUsage = 2 // usage
)

// streams are the standard streams of the process.
type streams struct {
	in, out, err *os.File
}

// usageError is an error that the caller of the command can mend.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// exitError passes the exit code of a wrapped command on.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// Main runs a command and returns its exit code.
func Main(ctx context.Context, args []string, std streams) int {
	root := commands(std)
	root.SetArgs(args)
	root.SetOut(std.out)
	root.SetErr(std.err)
	err := root.ExecuteContext(ctx)
	var (
		usage usageError
		exit  exitError
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &usage):
		fmt.Fprintf(std.err, "sandbox: %v\n", err)
		return exitUsage
	default:
		fmt.Fprintf(std.err, "sandbox: %v\n", err)
		return exitFail
	}
}

func commands(std streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "sandbox",
		Short: "The local world of the billing service, without Docker",
		Long: "The local world of the billing service, without Docker: everything in it listens on\n" +
			"127.0.0.1, on free ports unless told otherwise, and ends with the sandbox.\n\n" +
			"Every part ends on Ctrl-C, SIGTERM, and when the process that started it ends\n" +
			"(unless it was started under nohup).\n\n" +
			"Exit codes: 0 ok, 1 a finding or a failure at run time, 2 usage.",
		Version:      version,
		SilenceUsage: true, SilenceErrors: true,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_ = cmd.Help()
			return usageError{errors.New("a command is needed")}
		},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(runWorldCommand(std), brokerCommand(std), postgresCommand(std), providerCommand(std), ordersCommand(std))
	root.AddCommand(benchCommand(std), benchProviderCommand(std), benchCeilingCommand(std))
	root.AddCommand(tortureCommand(std))
	root.AddCommand(versionCommand(std))
	markUsage(root)
	return root
}

func versionCommand(std streams) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "The version of this binary", Args: cobra.NoArgs,
		Run: func(*cobra.Command, []string) { fmt.Fprintln(std.out, cmp.Or(version, "unknown")) },
	}
}

// markUsage makes every complaint about flags and arguments a usage error.
func markUsage(c *cobra.Command) {
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	if check := c.Args; check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usageError{err}
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		markUsage(sub)
	}
}
