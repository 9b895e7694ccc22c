#!/usr/bin/env bash
# Makes a copy of this project under another module path, with a history of one commit.
# Usage: scripts/fork.sh MODULE DIR
#   MODULE  the new module path, such as github.com/acme/refunds
#   DIR     where to put it; must not exist, or be an empty folder outside this repository
# What is copied is what git tracks, as it stands in the working tree. Exit code 2: the arguments do not do.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly here

usage() {
	echo "fork: $1" >&2
	echo "usage: make fork MODULE=github.com/acme/refunds DIR=../refunds" >&2
	exit 2
}

# The rules of module paths as far as they concern a name chosen by hand: a host with a dot first (paths without
# one belong to the standard library), then elements of letters, digits and -._~, none of them starting or ending with a dot.
valid_module() {
	local host='[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+' element='[A-Za-z0-9_~-]([A-Za-z0-9._~-]*[A-Za-z0-9_~-])?'
	[[ "$1" =~ ^$host(/$element)+$ ]]
}

check_dir() {
	local ancestor=$1
	until [[ -d "$ancestor" ]]; do ancestor=$(dirname "$ancestor"); done
	case "$(cd "$ancestor" && pwd -P)/" in
	"$here"/*) usage "$1 lies inside this repository" ;;
	esac

	[[ -e "$1" || -L "$1" ]] || return 0
	[[ -d "$1" ]] || usage "$1 exists and is not a folder"
	[[ -z "$(ls -A "$1")" ]] || usage "$1 exists and is not empty"
}

copy_tracked() { # <target>
	local file
	git -C "$here" ls-files -z | while IFS= read -r -d '' file; do
		[[ -e "$here/$file" || -L "$here/$file" ]] || continue # deleted, not committed
		mkdir -p "$1/$(dirname "$file")"
		cp -P -p "$here/$file" "$1/$file"
	done
}

# Renames the path wherever it stands by itself: in imports, go.mod, the linters' rules, schema ids, prose; not
# where it is only a part of a longer name. Twice, as two names may share the one character between them.
rename_module() { # <target> <old> <new>
	local old=${2//./\\.} file rule
	rule="s#(^|[^A-Za-z0-9_.-])$old(\$|[^A-Za-z0-9_-])#\\1$3\\2#g"
	find "$1" -type f -print0 | while IFS= read -r -d '' file; do
		grep -qIF -- "$2" "$file" || continue # also skips binary files
		sed -E -e "$rule" -e "$rule" "$file" >"$file.renamed"
		cat "$file.renamed" >"$file" # keeps the mode
		rm "$file.renamed"
	done
}

# The longer path may have moved the columns of a comment, and the order of imports.
first_commit() { # <target> <old> <new>
	cd "$1"
	gofmt -w .
	git init -q -b main
	git add --all
	local author=()
	git config user.email >/dev/null || author=(-c user.name=fork -c user.email=fork@localhost)
	git ${author[@]+"${author[@]}"} commit -q -m "Start $3 as a fork of $2"
}

main() {
	(($# == 2)) || usage "two arguments are needed"
	[[ -n "$1" ]] || usage "MODULE is missing"
	[[ -n "$2" ]] || usage "DIR is missing"
	valid_module "$1" || usage "not a module path: $1"

	local new=$1 dir=$2 old
	check_dir "$dir"
	git -C "$here" rev-parse --is-inside-work-tree >/dev/null 2>&1 || usage "$here is not a git checkout"
	old=$(cd "$here" && go list -m)
	[[ "$new" != "$old" ]] || usage "$new is the path of this module already"

	mkdir -p "$dir"
	dir=$(cd "$dir" && pwd -P)
	copy_tracked "$dir"
	rename_module "$dir" "$old" "$new"
	first_commit "$dir" "$old" "$new"
	echo "$new is in $dir; next: cd there, make test, then docs/fork.md"
}

main "$@"
