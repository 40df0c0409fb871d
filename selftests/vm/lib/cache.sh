# SPDX-License-Identifier: GPL-2.0-only
# The cache: directories that are either whole or not there. Each is made
# under a name of its own and renamed in, by one process at a time, so that
# an interrupted fetch leaves nothing half-done and two runs do not clash.
# A cached directory is used for ever; remove it to have it fetched anew.
# shellcheck shell=bash

cache_root() {
	local root=${XDG_CACHE_HOME:-$HOME/.cache}/parklot

	# Kernel makefiles cannot name such a path.
	[[ $root != *[[:space:]:]* ]] ||
		die "the cache's path has a space or a colon in it: $root"
	printf '%s\n' "$root"
}

# cache_fill DEST PROGRAM ARG...: make DEST; the caller holds the lock.
cache_fill() {
	local dest=$1 tmp
	shift

	rm -rf "$dest".part.*
	tmp=$(mktemp -d "$dest.part.XXXXXX")
	chmod 755 "$tmp"
	if ! "$@" "$tmp" "$dest" 9>&-; then
		rm -rf "$tmp"
		return 1
	fi
	mv -T "$tmp" "$dest"
}

# cache_get NAME PROGRAM ARG...: print where NAME lies. If it is not there,
# PROGRAM ARG... TMP DEST fills the empty directory TMP, which becomes DEST.
# A program, not a function: set -e has no effect in a function if its status is
# looked at.
cache_get() {
	local dest start=$SECONDS
	dest=$(cache_root)/$1

	if [[ ! -d $dest ]]; then
		mkdir -p "${dest%/*}"
		exec 9>"$dest.lock"
		if ! flock -n 9; then
			say "$1: waiting for another run to fetch it"
			flock 9
		fi
		if [[ ! -d $dest ]]; then
			say "$1: fetching into $dest"
			cache_fill "$dest" "${@:2}" ||
				die "$1: could not be fetched"
			say "$1: fetched in $((SECONDS - start)) s"
		fi
		exec 9>&-
	fi
	printf '%s\n' "$dest"
}
