# SPDX-License-Identifier: GPL-2.0-only
# The machine. QEMU 10 of backports, since the 7.2 of Debian 12 corrupts its
# guests: with 10, a guest that crashes has crashed by its own fault.
# shellcheck shell=bash
# shellcheck disable=SC2034 # QEMU_LEFT is for verdict.sh

# What the guest writes to isa-debug-exit when its report is complete, and
# the status that QEMU makes of it. 1 would be QEMU's own failure.
QEMU_LEAVE=42
QEMU_LEFT=$(((QEMU_LEAVE << 1) | 1))

# What the guest's processor is. 7.2 crashes less without cmpxchg16b.
QEMU_CPU=max

# qemu_own: the machine's own QEMU, said aloud.
qemu_own() {
	QEMU_CPU=max,-cx16
	need qemu-system-x86_64 qemu-system-x86
	say "no QEMU of backports, using $(qemu-system-x86_64 --version |
		head -n 1); 7.2 is known to corrupt guests"
	QEMU=(qemu-system-x86_64)
}

# qemu_find: set QEMU, the command with its data directories. A subshell
# fetches: it may die.
qemu_find() {
	local dir lost

	if ! dir=$(cache_get qemu "$VM_DIR/lib/fetch-qemu"); then
		qemu_own
		return
	fi
	lost=$(ldd "$dir/usr/bin/qemu-system-x86_64" | grep 'not found' || :)
	[[ -z $lost && -d /usr/share/seabios ]] ||
		die "QEMU's libraries or firmware are missing:" \
			"apt-get install qemu-system-x86"
	QEMU=("$dir/usr/bin/qemu-system-x86_64" -L "$dir/usr/share/qemu"
		-L /usr/share/seabios -L /usr/lib/ipxe/qemu)
}

# qemu_machine SMP MEM DIR: set QEMU_ARGS, all but what is booted. No disk,
# no network; the serial ports are files of DIR: the console, the command's
# output, and the report.
qemu_machine() {
	local dir=$3

	QEMU_ARGS=(-machine q35 -accel "tcg,thread=multi" -cpu "$QEMU_CPU"
		-smp "$1" -m "$2" -nodefaults -no-user-config
		-display none -monitor none -no-reboot
		-serial "file:$dir/console" -serial "file:$dir/output"
		-serial "file:$dir/report"
		-device "isa-debug-exit,iobase=0xf4,iosize=4")
}

# qemu_boot SECONDS IMAGE INITRD APPEND: become it, in the background; 124
# when the time is over.
qemu_boot() {
	exec timeout -k 5 "$1" "${QEMU[@]}" "${QEMU_ARGS[@]}" \
		-kernel "$2" -initrd "$3" -append "$4" </dev/null
}
