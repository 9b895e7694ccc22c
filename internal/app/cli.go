package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"example.com/billing/internal/domain"
)

// Exit codes of every command.
const (
	exitOK    = 0
	exitFail  = 1 // a finding, or a failure at run time
	exitUsage = 2 // usage or configuration
)

// Process is what a command may know of the process it runs in.
type Process struct {
	Args    []string // without the program's name
	Environ []string // NAME=value
	Out     io.Writer
	Err     io.Writer
	Version string // stamped by the build; "" otherwise
	// Faults is told where the flow stands, by tests; nil: nobody.
	Faults domain.Faults
}

// usageError is an error that the caller of the command can mend.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Main runs a command and returns its exit code. Ctx ends when the process is
// asked to stop.
func Main(ctx context.Context, p Process) int {
	root := commands(p)
	root.SetArgs(p.Args)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	err := root.ExecuteContext(ctx)
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		fmt.Fprintf(p.Err, "billing: %v\n", err)
		return exitUsage
	default:
		fmt.Fprintf(p.Err, "billing: %v\n", err)
		return exitFail
	}
}

func commands(p Process) *cobra.Command {
	root := &cobra.Command{
		Use:   "billing",
		Short: "Charges customers for confirmed orders, exactly once in effect",
		Long: "Billing reads order.confirmed events from Kafka and charges each of them once.\n" +
			"It is configured by environment variables; .env.example lists them all.\n\n" +
			"Exit codes: 0 ok, 1 a finding or a failure at run time, 2 usage or configuration.",
		SilenceUsage: true, SilenceErrors: true,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_ = cmd.Help()
			return usageError{errors.New("a command is needed")}
		},
	}
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		log, err := p.earlyLogger(cmd)
		if err != nil {
			return err
		}
		warnOfMisspelt(cmd.Context(), log, p.Environ)
		return nil
	}
	root.Version = p.version()
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(serveCommand(p), migrateCommand(p), healthCommand(p), replayCommand(p), offsetsCommand(p), auditCommand(p), retentionCommand(p), versionCommand(p))
	markUsage(root)
	return root
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

// serveName is the command that runs the service.
const serveName = "serve"

func serveCommand(p Process) *cobra.Command {
	return &cobra.Command{
		Use:   serveName,
		Short: "Consume orders and charge them until asked to stop",
		Long: "Consumes orders and charges them until SIGTERM or Ctrl-C; then it drains, within SHUTDOWN_TIMEOUT.\n" +
			"KAFKA_BROKERS, DATABASE_URL and PAYMENT_URL are required; .env.example lists every setting.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := Load(p.Environ)
			if err != nil {
				return usageError{fmt.Errorf("configuration:\n%w", err)}
			}
			return Serve(cmd.Context(), settings, p)
		},
	}
}

func versionCommand(p Process) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, as --version does",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "billing %s %s %s/%s\n", p.version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// version is what the build stamped, else what the module knows of itself.
func (p Process) version() string {
	if p.Version != "" {
		return p.Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
