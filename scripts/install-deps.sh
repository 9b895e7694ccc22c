#!/usr/bin/env bash
# Installs what is missing of the named parts, and nothing when all are there.
# Usage: scripts/install-deps.sh [go] [cc] [postgres] [java] [maven] [git] [make]
# Debian and Ubuntu (root or sudo) and Homebrew are installed into; elsewhere it says what to install, and fails.
set -euo pipefail

# Below these the project does not work: the server for the schema, Java for a Kafka 4 broker.
readonly POSTGRES_MIN=15 JAVA_MIN=17

# The server's binaries are enough, wherever they are: the sandbox starts a private server of its own.
# Debian keeps them out of PATH. pg_config is not asked: it may come without a server.
has_postgres() {
	local dir initdb
	initdb=$(command -v initdb || true)
	for dir in "${PGBIN:-}" "${initdb%/*}" /usr/lib/postgresql/*/bin /usr/pgsql-*/bin \
		/opt/homebrew/opt/postgresql@*/bin /usr/local/opt/postgresql@*/bin \
		/Applications/Postgres.app/Contents/Versions/latest/bin /opt/local/lib/postgresql*/bin; do
		[[ -n "$dir" && -x "$dir/initdb" && -x "$dir/postgres" ]] || continue
		(($(major "$("$dir/postgres" --version)") >= POSTGRES_MIN)) && return 0
	done
	return 1
}

# `java -version` also exists as a stub on macOS that only fails.
has_java() {
	local told
	told=$(java -version 2>&1) || return 1
	(($(major "$told") >= JAVA_MIN))
}

has_maven() { command -v mvn >/dev/null; }
has_git() { command -v git >/dev/null; }
has_make() { command -v make >/dev/null; }
has_go() { command -v go >/dev/null; }
has_cc() { command -v "${CC:-gcc}" >/dev/null || command -v cc >/dev/null; }

# The first number in a version line: 15 of `postgres (PostgreSQL) 15.18`, 17 of `openjdk version "17.0.9"`.
major() {
	[[ "$1" =~ [^0-9]*([0-9]+) ]] && printf '%s\n' "${BASH_REMATCH[1]}" || printf '0\n'
}

package_of() { # <manager> <part>
	case "$1/$2" in
	apt/cc) echo gcc libc6-dev ;;
	apt/postgres) echo postgresql ;;
	apt/java) echo default-jre-headless ;;
	brew/postgres) echo postgresql@17 ;;
	brew/java) echo openjdk ;;
	*/maven) echo maven ;;
	*/git) echo git ;;
	*/make) echo make ;;
	*) echo "" ;;
	esac
}

as_root() {
	if ((EUID == 0)); then "$@"; else sudo "$@"; fi
}

# Debian starts a server of its own along with the package. Nobody asked for one, so for the time of the
# installation the package is told not to create it.
install_apt() {
	local quiet=/etc/postgresql-common/createcluster.d/zz-no-main-cluster.conf
	as_root apt-get update -qq
	as_root mkdir -p "${quiet%/*}"
	echo "create_main_cluster = false" | as_root tee "$quiet" >/dev/null
	local status=0
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" || status=$?
	as_root rm -f "$quiet"
	return "$status"
}

say_what_to_install() {
	cat >&2 <<MESSAGE
missing on this machine: $*
Install it by hand (this script has no package of it for this machine), then try again:
  go        Go 1.26 or newer, https://go.dev/dl/
  cc        a C compiler: gcc or clang (the Kafka client is a C library)
  postgres  the server of PostgreSQL $POSTGRES_MIN or newer; its bin folder may be named in PGBIN. It need not be running
  java      a Java $JAVA_MIN runtime or newer; only for the real Apache Kafka
  maven     Apache Maven; only for the real Apache Kafka
  git, make
MESSAGE
	exit 1
}

manager() {
	if command -v brew >/dev/null; then
		echo brew
	elif command -v apt-get >/dev/null && { ((EUID == 0)) || command -v sudo >/dev/null; }; then
		echo apt
	else
		echo none
	fi
}

main() {
	local part missing=()
	for part in "$@"; do
		case "$part" in
		go | cc | postgres | java | maven | git | make) ;;
		*) echo "install-deps: unknown part: $part" >&2 && exit 2 ;;
		esac
		"has_$part" || missing+=("$part")
	done
	((${#missing[@]} == 0)) && return 0

	local with packages=() names
	with=$(manager)
	for part in "${missing[@]}"; do
		read -r -a names <<<"$(package_of "$with" "$part")"
		((${#names[@]} > 0)) || say_what_to_install "${missing[@]}"
		packages+=("${names[@]}")
	done

	echo "installing ${packages[*]} (missing: ${missing[*]})" >&2
	case "$with" in
	apt) install_apt "${packages[@]}" ;;
	brew) brew install "${packages[@]}" ;;
	esac
	for part in "${missing[@]}"; do
		"has_$part" || say_what_to_install "$part"
	done
}

main "$@"
