// Package app is the wiring room: it reads the configuration once, builds every
// part in one straight line, runs them, and takes them down in reverse. It is
// the only package that reads the environment, and a test can boot all of it on
// port 0.
package app
