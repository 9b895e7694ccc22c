// Package composecheck holds docker-compose.yml, the Dockerfile and
// .env.example to their promises, with the parser that Docker Compose itself
// uses and without a daemon: the images are pinned, nothing listens beyond
// loopback, a service starts after the healthy parts it needs and may finish
// its charges before it is killed, and every variable that is set exists.
//
// It has tests only. They live in the module of the tools so that the
// service's own go.mod does not carry the parser.
package composecheck
