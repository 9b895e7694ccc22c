package payment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/payment"
)

func TestConfigComplainsAboutEverythingAtOnce(t *testing.T) {
	t.Parallel()
	err := payment.Config{
		URL: "ftp://user:hunter2@host/", APIKey: "hunter3\n", Timeout: -1, MaxInFlight: -1,
		Attempts: 11, Backoff: time.Hour, IdleTimeout: time.Hour,
	}.Validate()
	for _, complaint := range []string{
		"PAYMENT_URL: must start with http", "PAYMENT_API_KEY: holds a character", "PAYMENT_TIMEOUT -1ns: want 1ms to 5m0s",
		"MAX_IN_FLIGHT -1: want 1 to 65536", "attempts 11: want 1 to 10", "backoff 1h0m0s: want", "idle timeout 1h0m0s: want",
	} {
		require.ErrorContains(t, err, complaint)
	}
	require.NotContains(t, err.Error(), "hunter")
	_, err = payment.New(payment.Config{}, payment.Tools{})
	require.ErrorContains(t, err, "PAYMENT_URL: missing")
}

func TestConfigOfURLs(t *testing.T) {
	t.Parallel()
	for url, complaint := range map[string]string{
		"http://provider":              "",
		"https://provider:8443/a/b/":   "",
		"http://[::1]:80":              "",
		"provider:80":                  "must start with",
		"//provider":                   "must start with",
		"http://":                      "has no host",
		"http://:80":                   "has no host",
		"http://h?x=1":                 "neither query",
		"http://h#x":                   "neither query",
		"http://u:hunter2@h:port":      "not a URL",
		"http://user:hunter2@host":     "exclude PAYMENT_API_KEY",
		"http://user:hunter2@ho st/%z": "not a URL",
	} {
		err := payment.Config{URL: url, APIKey: "hunter3"}.Validate()
		if complaint == "" {
			require.NoError(t, err, url)
			continue
		}
		require.ErrorContains(t, err, complaint, url)
		require.NotContains(t, err.Error(), "hunter")
	}
}
