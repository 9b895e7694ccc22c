#!/usr/bin/env bash
# go build with a sign of life: a first build takes minutes, in silence otherwise.
# Usage: scripts/build.sh <arguments of go build>
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ ! -e bin/billing ]]; then
	echo "building: the first build compiles a Kafka client and some hundreds of packages, minutes on a small machine" >&2
fi
mkdir -p bin

# -v names each package as it is compiled, one word a line; all else (downloads, errors) passes through.
show() {
	local line count=0
	while IFS= read -r line; do
		if [[ "$line" == *" "* || "$line" == *":"* ]]; then
			printf '%s\n' "$line" >&2
			continue
		fi
		count=$((count + 1))
		if ((count % 25 == 1)); then
			printf 'building: package %d\n' "$count" >&2
		fi
	done
}

go build -v "$@" 2>&1 | show
