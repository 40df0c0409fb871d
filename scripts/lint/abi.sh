#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
# Usage: scripts/lint/abi.sh LIBPARKLOT.SO LIBPARKLOT.A [TOP]
#
# What is exported, what the header marks, what the version script lists and
# what the manual describes are the same names; no other global name is
# without the library's prefix.

set -euo pipefail
shopt -s inherit_errexit
export LC_ALL=C

exported() {
	nm -D --defined-only "$1" |
		awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u
}

marked() {
	sed 's/^#.*//' "$@" | tr '\n\t' '  ' | grep -oE 'PL_API [^(;]*\(' |
		sed -E 's/ *\($//; s/.*[ *]//' | sort -u
}

listed() {
	awk '/global:/ { on = 1; next } /local:/ { on = 0 }
	     on { sub(/;/, ""); print $1 }' "$1" | sort -u
}

# The names that the manual's pages have as a function of the synopsis.
described() {
	sed -nE 's/^\.F[no] "?([^" ]+)"?.*/\1/p' "$@" | sort -u
}

# same NAME A B: 0 if the lists A and B, one name a line, are equal.
same() {
	local extra
	extra=$(comm -3 <(printf '%s\n' "$2") <(printf '%s\n' "$3"))

	[[ -z $extra ]] && return
	printf '%s differ (left: first only, right: second only):\n%s\n' \
		"$1" "$extra"
	return 1
}

# Probes have a symbol of sys/sdt.h's in each object, weak and hidden.
unprefixed() {
	nm -g --defined-only "$1" |
		awk 'NF == 3 && $3 !~ /^pl_|^_\.stapsdt\.base$/ { print "global in the archive: " $3 }'
}

main() {
	local so=$1 archive=$2 top=${3:-.} api status=0 stray headers
	# The simulation has a library of its own.
	readarray -t headers < <(find "$top"/include/parklot -maxdepth 1 \
		-name '*.h' ! -name sim.h)
	api=$(marked "${headers[@]}")

	[[ -n $api ]] || { echo "nothing is marked PL_API"; return 1; }
	same "marked PL_API and exported names" \
		"$api" "$(exported "$so")" || status=1
	same "marked PL_API and names in parklot.map" \
		"$api" "$(listed "$top/lib/parklot.map")" || status=1
	stray=$(comm -23 <(marked "$top"/include/parklot/*.h) \
		<(described "$top"/man/*.3))
	if [[ -n $stray ]]; then
		echo "in no manual page: ${stray//$'\n'/ }"
		status=1
	fi
	stray=$(unprefixed "$archive")
	if [[ -n $stray ]]; then
		echo "$stray"
		status=1
	fi
	echo "$(wc -w <<<"$api") public names"
	return "$status"
}

main "$@"
