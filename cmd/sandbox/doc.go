// Command sandbox is the local world of the billing service, without Docker: a
// Kafka broker, a PostgreSQL server, a payment provider, a source of orders, and
// `sandbox run`, which puts all of them around the real binary and checks at the
// end that every order was charged once.
//
//	sandbox run         everything at once, with a closing table
//	sandbox broker      ┐
//	sandbox postgres    │ single parts, for tests and other tools: each prints its
//	sandbox provider    │ address as its first line
//	sandbox orders      ┘
package main
