# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
# Rows of a table that are measured side by side.  Sourced by run and ablation.
# shellcheck shell=bash

# rows: calls row(), which is exported, with the words of each line on stdin, JOBS
# at a time, and prints what it says in this order, as soon as those before it
# are there.
rows() {
	local dir nr i

	dir=$(mktemp -d)
	# shellcheck disable=SC2064 # of this call
	trap "rm -rf '$dir'" EXIT
	nl -w 1 -s ' ' >"$dir/all"
	nr=$(wc -l <"$dir/all")
	# shellcheck disable=SC2016 # the shell below expands it
	xargs -r -a "$dir/all" -L 1 -P "$JOBS" bash -c '
		row "${@:3}" >"$1/$2.new" && mv "$1/$2.new" "$1/$2"' row "$dir" &
	for ((i = 1; i <= nr; i++)); do
		until [[ -e $dir/$i ]]; do
			kill -0 $! 2>/dev/null || [[ -e $dir/$i ]] ||
				{ echo "${0##*/}: row $i failed" >&2; exit 1; }
			sleep 0.1
		done
		cat "$dir/$i"
	done
	wait $!
}
