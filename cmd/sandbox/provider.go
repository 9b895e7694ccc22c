package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"example.com/billing/internal/payment/paymenttest"
)

// faultHelp is the grammar of --fault in short; package paymenttest has it in full.
const faultHelp = "Faults are a comma list; each is action=when[:argument][@target]:\n\n" +
	"  action   STATUS (= STATUS-before), STATUS-after, 402, reset-before, reset-after, cut,\n" +
	"           hang-before, hang, huge-id, nul-id, not-json; \"after\" means: once it has charged\n" +
	"  when     a probability (0.05), or nextN: the next N requests\n" +
	"  argument Retry-After in seconds (429, 5xx), Location (3xx), decline code (402), how long (hang)\n" +
	"  target   order:ID+ID… or key:UUID+UUID…\n" +
	"  latency=DURATION | uniform:MIN:MAX | lognormal:MEDIAN:P99[:CUT], seed=N, ignore-keys\n\n" +
	"for example  503-after=0.05,hang=0.01:3s,429=next3:2,402=0.1:insufficient_funds,latency=lognormal:20ms:200ms"

type providerFlags struct {
	addr       string
	apiKey     string
	faults     string
	ignoreKeys bool
}

func providerCommand(std streams) *cobra.Command {
	var flags providerFlags
	c := &cobra.Command{
		Use:   "provider",
		Short: "A payment provider that keeps an exact ledger and can fail on purpose",
		Long: "A payment provider that keeps an exact ledger and can fail on purpose. The first line\n" +
			"on standard output is its URL, what PAYMENT_URL is set to.\n\n" +
			"  GET /_ledger            the sums\n" +
			"  GET /_ledger/charges    one line per key\n" +
			"  PUT /_faults            another fault plan (text/plain, as --fault, or JSON)\n" +
			"  GET /healthz            200\n\n" + faultHelp,
		Example: "  sandbox provider --addr 127.0.0.1:8081 --fault 503-after=0.05,latency=20ms",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			faults, err := parseFaults(flags.faults, flags.ignoreKeys)
			if err != nil {
				return usageError{err}
			}
			return serveProvider(cmd.Context(), std, flags, faults)
		},
	}
	c.Flags().StringVar(&flags.addr, "addr", "127.0.0.1:0", "address to listen on (port 0: a free one)")
	c.Flags().StringVar(&flags.apiKey, "api-key", "", "bearer token that charges need (empty: none)")
	addFaultFlags(c, &flags.faults, &flags.ignoreKeys)
	return c
}

func addFaultFlags(c *cobra.Command, faults *string, ignoreKeys *bool) {
	c.Flags().StringVar(faults, "fault", "", "how the provider fails, see above")
	c.Flags().BoolVar(ignoreKeys, "ignore-keys", false, "charge again for every request, whatever its Idempotency-Key")
}

func parseFaults(text string, ignoreKeys bool) (paymenttest.Faults, error) {
	faults, err := paymenttest.ParseFaults(text)
	if err != nil {
		return faults, fmt.Errorf("--fault: %w", err)
	}
	faults.IgnoreKeys = faults.IgnoreKeys || ignoreKeys
	return faults, nil
}

func serveProvider(ctx context.Context, std streams, flags providerFlags, faults paymenttest.Faults) (err error) {
	ctx, cancel := untilEnded(ctx)
	defer cancel()
	server, err := paymenttest.Listen(ctx, flags.addr, paymenttest.Options{APIKey: flags.apiKey, Faults: faults})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	fmt.Fprintln(std.out, server.URL())
	<-ctx.Done()
	return nil
}
