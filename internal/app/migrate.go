package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"example.com/billing/internal/store"
	"example.com/billing/internal/telemetry"
)

func migrateCommand(p Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database schema up or down, or show where it is",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_ = cmd.Help()
			return usageError{errors.New("migrate needs one of: up, down, status")}
		},
	}
	step := func(use, short string, run func(context.Context, *store.Migrator, *cobra.Command) error) *cobra.Command {
		return &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			return withMigrator(cmd, p, run)
		}}
	}
	c.AddCommand(
		step("up", "Apply every migration that is missing", migrateUp),
		step("down", "Take the newest migration back", migrateDown),
		step("status", "List the migrations", migrateStatus),
	)
	return c
}

func withMigrator(cmd *cobra.Command, p Process, run func(context.Context, *store.Migrator, *cobra.Command) error) error {
	settings, err := LoadDatabase(p.Environ)
	if err == nil {
		err = store.CheckURL(settings.URL)
	}
	if err != nil {
		return usageError{fmt.Errorf("configuration:\n%w", err)}
	}
	log, err := telemetry.NewLogger(cmd.ErrOrStderr(), "warn", "text")
	if err != nil {
		return err
	}
	m, err := store.NewMigrator(settings.URL, log)
	if err != nil {
		return err
	}
	return errors.Join(run(cmd.Context(), m, cmd), m.Close())
}

func migrateUp(ctx context.Context, m *store.Migrator, cmd *cobra.Command) error {
	applied, err := m.Up(ctx)
	for _, s := range applied {
		fmt.Fprintf(cmd.OutOrStdout(), "applied %s\n", s.Name)
	}
	if err == nil && len(applied) == 0 {
		fmt.Fprintln(cmd.OutOrStdout(), "nothing to apply")
	}
	return err
}

func migrateDown(ctx context.Context, m *store.Migrator, cmd *cobra.Command) error {
	s, some, err := m.Down(ctx)
	switch {
	case err != nil:
		return err
	case some:
		fmt.Fprintf(cmd.OutOrStdout(), "took back %s\n", s.Name)
	default:
		fmt.Fprintln(cmd.OutOrStdout(), "nothing to take back")
	}
	return nil
}

func migrateStatus(ctx context.Context, m *store.Migrator, cmd *cobra.Command) error {
	all, err := m.Status(ctx)
	if err != nil {
		return err
	}
	for _, s := range all {
		at := "pending"
		if !s.AppliedAt.IsZero() {
			at = s.AppliedAt.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%-20s  %s\n", at, s.Name)
	}
	return nil
}

// migrateOnStart brings the schema up before anything reads it.
func migrateOnStart(ctx context.Context, url string, log *slog.Logger) error {
	m, err := store.NewMigrator(url, log)
	if err != nil {
		return err
	}
	applied, err := m.Up(ctx)
	for _, s := range applied {
		log.InfoContext(ctx, "migration applied", "name", s.Name)
	}
	return errors.Join(err, m.Close())
}
