#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
# Usage: scripts/lint/version.sh [TOP]
#
# The version is the same wherever it is written.

set -euo pipefail
shopt -s inherit_errexit
export LC_ALL=C

cd "${1:-.}"
want=$(sed -nE 's/^VERSION[[:space:]]*:= *//p' Makefile)
status=0

# says FILE SCRIPT: what sed finds there is the version.
says() {
	local found
	found=$(sed -nE "$2" "$1" | head -n 1)

	[[ $found == "$want" ]] && return
	echo "$1 says '$found', the Makefile '$want'"
	status=1
}

[[ $want =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] ||
	{ echo "Makefile: '$want' is no version"; status=1; }
says include/parklot.h 's/^#define PARKLOT_VERSION[^"]*"([^"]*)".*/\1/p'
says dkms.conf 's/^PACKAGE_VERSION="([^"]*)".*/\1/p'
says debian/changelog 's/^parklot \((.*)-[^-]*\).*/\1/p'
says CHANGELOG.md 's/^## ([^ ]*).*/\1/p'
if grep -rqs MODULE_VERSION module; then
	says "$(grep -rl MODULE_VERSION module | head -n 1)" \
		's/^MODULE_VERSION\("([^"]*)"\).*/\1/p'
fi
exit "$status"
