// Command victim is billing with a hook at every point of [domain.Points]: a torture
// run tells it where to die or to stand still. It is built by torture runs and shipped
// to nobody.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"example.com/billing/internal/app"
	"example.com/billing/internal/sandbox/torture/control"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: victim SOCKET COMMAND…")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	hook, err := control.Dial(ctx, os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
	code := app.Main(ctx, app.Process{
		Args: os.Args[2:], Environ: os.Environ(), Out: os.Stdout, Err: os.Stderr, Version: "victim", Faults: hook,
	})
	stop()
	os.Exit(code)
}
