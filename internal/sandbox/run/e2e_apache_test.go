//go:build apache

package run_test

import "example.com/billing/internal/sandbox/run"

// testBroker is the broker of the end-to-end tests.
const testBroker = run.KafkaApache
