#!/usr/bin/env bash
# Prints the packages whose tests run against Apache Kafka: those with a test file that only the build tag
# `apache` brings in, and those whose tests ask BILLING_TEST_KAFKA which broker to use. None at all is an error:
# a suite that silently tests nothing is worse than a red one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=$(
	grep -rlE '^//go:build .*\bapache\b|BILLING_TEST_KAFKA' --include='*_test.go' cmd internal |
		while IFS= read -r file; do printf './%s\n' "${file%/*}"; done | sort -u
) || true
if [[ -z "$packages" ]]; then
	echo "no package has tests for Apache Kafka" >&2
	exit 1
fi
printf '%s\n' "$packages"
