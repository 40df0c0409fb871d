# SPDX-License-Identifier: GPL-2.0-only
# The machine. QEMU 10 of backports, since the 7.2 of Debian 12 corrupts its
# guests: with 10, a guest that crashes has crashed by its own fault.
# shellcheck shell=bash
# shellcheck disable=SC2034 # QEMU_LEFT is for verdict.sh

# The word by which the guest ends when its report is complete (leave.c), and
# QEMU's status then. 1 would be QEMU's own failure.
QEMU_LEAVE=42
QEMU_LEFT=$(((QEMU_LEAVE << 1) | 1))

# Warnings are fatal, so that the log ends with the first one. The self-tests of
# the kernel's ciphers at boot warn if they take more than a minute.
QEMU_BASE_APPEND="panic=-1 panic_on_warn=1 oops=panic log_buf_len=4M \
printk.devkmsg=on cryptomgr.notests"

# Changed by qemu_icount.
QEMU_THREADS=multi
QEMU_CLOCK=() QEMU_CLOCK_APPEND=''

# qemu_own FAMILY PROGRAM: the machine's own QEMU, said aloud.
qemu_own() {
	need "$2" "qemu-system-$1"
	say "no QEMU of backports, using $("$2" --version |
		head -n 1); 7.2 is known to corrupt guests"
	QEMU=("$2")
}

# qemu_cached FAMILY PROGRAM: prints the result of cache_get, and may fail.
qemu_cached() {
	local name=qemu

	[[ $1 == x86 ]] || name=qemu-$1
	cache_get "$name" "$VM_DIR/lib/fetch-qemu" "$1"
}

# qemu_find ARCH: set QEMU, the command with its data directories, and
# QEMU_CPU. A subshell fetches: it may die.
qemu_find() {
	local dir lost family=x86 program=qemu-system-x86_64

	QEMU_CPU=max
	if [[ $1 == arm64 ]]; then
		family=arm program=qemu-system-aarch64
		# The architecture's own algorithm takes most of the time.
		QEMU_CPU=max,pauth-impdef=on
	fi
	if ! dir=$(qemu_cached "$family"); then
		# 7.2 crashes less without cmpxchg16b.
		[[ $family != x86 ]] || QEMU_CPU=max,-cx16
		qemu_own "$family" "$program"
		return
	fi
	lost=$(ldd "$dir/usr/bin/$program" | grep 'not found' || :)
	[[ -z $lost && -d /usr/share/seabios ]] ||
		die "QEMU's libraries or firmware are missing:" \
			"apt-get install qemu-system-x86"
	QEMU=("$dir/usr/bin/$program" -L "$dir/usr/share/qemu"
		-L /usr/share/seabios -L /usr/lib/ipxe/qemu)
}

# qemu_icount: after qemu_find, for one processor of an amd64: its clock counts
# instructions, a nanosecond each, and is set forward while it sleeps. Nothing
# of one boot is by chance.
qemu_icount() {
	QEMU_THREADS=single
	QEMU_CPU+=,-rdrand,-rdseed
	QEMU_CLOCK=(-icount "shift=0,sleep=off" -seed 1
		-rtc "base=2026-01-01,clock=vm")
	QEMU_CLOCK_APPEND="nokaslr norandmaps random.trust_cpu=off"
}

# qemu_tsc TMP: for a kernel without ACPI, which finds no clock to hold the time
# stamp counter against: it would count ticks instead, miss those for which
# its processors did not run, and have no finer timers.
qemu_tsc() {
	local khz=1000000

	if ! ((${#QEMU_CLOCK[@]})); then
		gcc -O2 -Wall -o "$1/tsc" "$VM_DIR/tsc.c" ||
			die "cannot compile: apt-get install gcc libc6-dev"
		khz=$("$1/tsc")
	fi
	[[ -z $khz ]] || QEMU_CLOCK_APPEND+=" tsc=reliable tsc_early_khz=$khz"
}

# qemu_machine ARCH SMP MEM DIR: set QEMU_ARGS, all but what is booted, and
# QEMU_APPEND, by which the kernel and init know its ports. No disk, no
# network; the serial ports are files of DIR: the console, the command's
# output, and the report.
qemu_machine() {
	local dir=$4

	"qemu_$1" "$dir"
	QEMU_ARGS+=(-cpu "$QEMU_CPU" -smp "$2" -m "$3" -nodefaults
		-no-user-config -display none -monitor none -no-reboot
		"${QEMU_CLOCK[@]}")
}

# qemu_numa NODES SMP MEM: after qemu_machine; each node is a socket with as many
# processors of two threads as the others, if they are even.
qemu_numa() {
	local nr=$(($2 / $1)) threads=1 i

	((nr % 2)) || threads=2
	QEMU_ARGS+=(-smp
		"$2,sockets=$1,cores=$((nr / threads)),threads=$threads")
	for ((i = 0; i < $1; i++)); do
		QEMU_ARGS+=(-object "memory-backend-ram,id=node$i,size=$(($3 / $1))M"
			-numa "node,nodeid=$i,memdev=node$i,cpus=$((i * nr))-$((i * nr + nr - 1))")
	done
}

# On a loaded machine, a guest that waits for ten ticks may not see them, and
# would conclude that its timer does not work.
qemu_amd64() {
	QEMU_APPEND="console=ttyS0 output=ttyS1 report=ttyS2 no_timer_check"
	QEMU_ARGS=(-machine q35 -accel "tcg,thread=$QEMU_THREADS"
		-serial "file:$1/console" -serial "file:$1/output"
		-serial "file:$1/report"
		-device "isa-debug-exit,iobase=0xf4,iosize=4")
}

# qemu_smp ARCH: how many processors pay. Those of an arm64 share one thread,
# see below, so that a thread that spins for another waits out a slice of 0.1 s.
qemu_smp() {
	case $1 in
	arm64) echo 1 ;;
	*) echo 2 ;;
	esac
}

# One thread for all processors: with one for each, a load-acquire passes an
# earlier store-release of the same processor, which no arm64 does (QEMU 10:
# both of two threads missed the other's store in 29789 of 514048 rounds), and
# correct code fails. The guest leaves by semihosting, with the status that
# isa-debug-exit would make.
qemu_arm64() {
	QEMU_APPEND="console=ttyAMA0 output=ttyS0 report=ttyS1"
	QEMU_ARGS=(-machine virt -accel "tcg,thread=single"
		-chardev "file,id=output,path=$1/output"
		-chardev "file,id=report,path=$1/report"
		-serial "file:$1/console"
		-device "pci-serial,chardev=output"
		-device "pci-serial,chardev=report"
		-semihosting-config "enable=on,target=native,userspace=on")
}

# qemu_boot SECONDS IMAGE INITRD APPEND: become it, in the background; 124
# when the time is over.
qemu_boot() {
	exec timeout -k 5 "$1" "${QEMU[@]}" "${QEMU_ARGS[@]}" \
		-kernel "$2" -initrd "$3" -append "$QEMU_APPEND $QEMU_CLOCK_APPEND $4" \
		</dev/null
}
