# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
# The files of the tree, with git or without. Sourced by scripts/check and
# scripts/part.
# shellcheck shell=bash

# The clone may belong to another user, as where root runs "make check" in it.
# Its Makefile is run anyway, so that git may read its configuration, too.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=$PWD

# tracked GLOB...: files of the tree, new ones included.
tracked() {
	if [[ -e .git ]]; then
		git ls-files -co --exclude-standard -- "$@" | while read -r f; do
			[[ ! -f $f ]] || echo "$f"
		done
	else
		(($#)) || set -- '*'
		find . -type f -not -path "./$O/*" -printf '%P\n' |
			while read -r f; do
				for glob; do
					# shellcheck disable=SC2053
					[[ $f != $glob ]] || echo "$f"
				done
			done
	fi | LC_ALL=C sort
}
