#!/usr/bin/env bash
# docker compose, in whichever of its two forms this machine has.
# Usage: scripts/compose.sh <arguments of docker compose>
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if docker compose version >/dev/null 2>&1; then
	exec docker compose "$@"
fi
if command -v docker-compose >/dev/null 2>&1; then
	exec docker-compose "$@"
fi
cat >&2 <<'MESSAGE'
neither `docker compose` nor `docker-compose` is installed.
  Debian and Ubuntu: apt-get install docker-compose (or Docker's own docker-compose-plugin)
  macOS:             brew install docker-compose
Without Docker the same world runs with: make run
MESSAGE
exit 1
