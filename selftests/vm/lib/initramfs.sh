# SPDX-License-Identifier: GPL-2.0-only
# The guest's root: a static busybox, our init, the module, and what the
# user copied.
# shellcheck shell=bash

# initramfs_busybox ARCH: a static one, the machine's own if that will do.
initramfs_busybox() {
	local busybox dir

	if [[ $1 != "$(dpkg --print-architecture)" ]]; then
		dir=$(cache_get "busybox-$1" "$VM_DIR/lib/fetch-busybox" "$1")
		printf '%s\n' "$dir/bin/busybox"
		return
	fi
	busybox=$(command -v busybox) ||
		die "busybox is missing: apt-get install busybox-static"
	! ldd "$busybox" >/dev/null 2>&1 ||
		die "$busybox is not static: apt-get install busybox-static"
	printf '%s\n' "$busybox"
}

# initramfs_tools ROOT LIMIT KERNEL: the files of each guest, the time limit
# among them.
initramfs_tools() {
	local busybox cross
	busybox=$(initramfs_busybox "$(kernel_arch "$3")")
	cross=$(kernel_cross "$3")
	need "${cross}gcc" "gcc${cross:+-${cross%-}}"
	need cpio cpio

	mkdir -p "$1"/{bin,dev,proc,sys,tmp,run,root,etc,usr,test,vm}
	ln -s bin "$1/sbin"
	ln -s ../bin "$1/usr/bin"
	ln -s ../bin "$1/usr/sbin"
	ln -s busybox "$1/bin/sh"
	cp "$busybox" "$1/bin/busybox"
	install -m 755 "$VM_DIR/init" "$1/init"
	cp -p "$VM_DIR"/{stacks.sh,suite.sh} "$1/vm/"
	log_patterns log.bad >"$1/vm/log.bad"
	log_patterns log.ignore >"$1/vm/log.ignore"
	echo "$2" >"$1/vm/limit"
	"${cross}gcc" -O2 -Wall -static -o "$1/vm/leave" "$VM_DIR/leave.c" ||
		die "cannot link statically: apt-get install" \
			"libc6-dev${cross:+-$(kernel_arch "$3")-cross}"
	echo 'root:x:0:0::/root:/bin/sh' >"$1/etc/passwd"
	echo 'root:x:0:' >"$1/etc/group"
}

# initramfs_copy ROOT DIR FILE: FILE as DIR/FILE in the guest, mode kept.
initramfs_copy() {
	[[ -e $3 ]] || die "no such file to copy: $3"
	mkdir -p "$1/$2"
	cp -RLp "$3" "$1/$2/"
}

# initramfs_command ROOT ARG...: the command for init, quoted for its shell.
initramfs_command() {
	local root=$1 arg
	shift

	{
		printf 'exec'
		for arg; do
			printf " '%s'" "${arg//\'/\'\\\'\'}"
		done
		echo
	} >"$root/vm/command"
}

# initramfs_pack ROOT FILE: not compressed, as the guest is the slower one.
initramfs_pack() {
	(cd "$1" && find . -print0 | cpio -0 -o -H newc -R 0:0 --quiet) >"$2"
}
