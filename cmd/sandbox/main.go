package main

import (
	"context"
	"os"
)

// version is stamped by the build.
var version string

func main() {
	os.Exit(Main(context.Background(), os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}
