//go:build !apache

package torture_test

import "example.com/billing/internal/sandbox/run"

const testBroker = run.KafkaEmbedded
