// Command billing charges customers for confirmed orders, exactly once in effect.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"example.com/billing/internal/app"
)

// version is stamped by the build.
var version string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := app.Main(ctx, app.Process{
		Args: os.Args[1:], Environ: os.Environ(), Out: os.Stdout, Err: os.Stderr, Version: version,
	})
	stop()
	os.Exit(code)
}
