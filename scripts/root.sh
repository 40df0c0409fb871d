# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
# For tests in a Debian of their own, which scripts/deb-root makes.
# shellcheck shell=bash

# root_unpack TAR ROOT: it need not survive a loss of power.
root_unpack() {
	mkdir -p "$2"
	tar -xf "$1" -C "$2"
	mkdir -p "$2/dev/shm"
	echo force-unsafe-io >"$2/etc/dpkg/dpkg.cfg.d/unsafe-io"
}

# root_enter ROOT [OPTION]... -- COMMAND...: there, as root, with a /proc of its
# own, and what else these options of unshare name; what it started ends with it.
root_enter() {
	local root=$1 options=()
	shift

	while [[ $1 != -- ]]; do
		options+=("$1")
		shift
	done
	shift
	# shellcheck disable=SC2016 # for the shell inside
	unshare --mount --propagation private --pid --fork --kill-child \
		"${options[@]}" sh -euc '
		root=$1
		shift
		mount -t proc proc "$root/proc"
		mount -t tmpfs shm "$root/dev/shm"
		exec chroot "$root" env -i HOME=/root LC_ALL=C \
			PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
			DEBIAN_FRONTEND=noninteractive "$@"
		' sh "$root" "$@"
}
