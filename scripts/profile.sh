#!/usr/bin/env bash
# Profiles of billing under load, with everything around it in other processes, and their first lines.
# Usage: scripts/profile.sh <folder>
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

dir=$1
mkdir -p "$dir"

# top <kind> <provider> <arguments of pprof>: what takes most.
top() {
	local kind=$1 at=$2
	shift 2
	printf '\n--- %s, provider %s: %s\n' "$kind" "$at" "$*"
	go tool pprof -top "$@" "$dir/app.test" "$dir/$kind-$at.pprof" 2>/dev/null
}

for at in 0ms 50ms; do
	go test ./internal/app -run '^$' -bench "^BenchmarkServe\$/^$at\$" -benchtime 1x -o "$dir/app.test" -outputdir "$dir" \
		-cpuprofile "cpu-$at.pprof" -memprofile "mem-$at.pprof" -memprofilerate 65536 -blockprofile "block-$at.pprof" -blockprofilerate 10000
	top cpu "$at" -nodecount=20
	top cpu "$at" -cum -nodecount=25 -show='example.com/billing|gorm.io|pgx|confluent|net/http|opentelemetry|slog|runtime.gcBgMarkWorker|runtime.mallocgc$'
	top mem "$at" -sample_index=alloc_space -nodecount=20
	top mem "$at" -sample_index=alloc_space -cum -nodecount=25 -show='example.com/billing'
	# A goroutine that waits for work blocks too: only waits on our own account say something.
	top block "$at" -cum -nodecount=20 -show='example.com/billing'
done
printf '\nLook closer with: go tool pprof -http=127.0.0.1:0 %s/app.test %s/cpu-0ms.pprof\n' "$dir" "$dir"
