// Package apache runs a real Apache Kafka broker without Docker, for the tests whose outcome must not rest on an imitation.
//
//	deploy/kafka/pom.xml ── mvn ──▶ .cache/kafka/libs/*.jar ── java ──▶ one node, broker and controller in one (KRaft)
//
// It needs Java 17 or newer and the jars that `make kafka-jars` fetches with Maven; [Start] says which of them is missing and how
// to install it. The node listens on 127.0.0.1 only, with a bounded heap, and keeps its data in one folder: [Broker.Kill] and
// [Broker.Restart] play a crash and a recovery on the same data and port.
//
// The settings are those of a production broker save for what a single short-lived node needs: replication factor 1, few
// partitions for the internal topics, no delay before the first rebalance, short group sessions, no retention.
//
// The tests of this package need Java and the jars, so they are behind the build tag "apache" (`make test-kafka`).
package apache
