# SPDX-License-Identifier: GPL-2.0-only
# The kernels that the harness knows by name, and what is in the cache of
# each: kernels/NAME/{release,image,root}, root holding the headers and, for
# a suite newer than the machine, all that it takes to compile there.
# shellcheck shell=bash

KERNELS="6.1 6.12 7.2 6.1-rt 6.12-rt 7.2-rt rt 6.1-arm64 6.12-arm64 debug \
debug-7.2 kcsan"

# kernel_name KERNEL: the same, short names made long.
kernel_name() {
	local name=$1 known

	[[ $name != rt ]] || name=6.12-rt
	for known in $KERNELS; do
		[[ $known != "$name" ]] || { echo "$name"; return; }
	done
	die "unknown kernel '$1'; known are: $KERNELS"
}

# kernel_suite NAME: where Debian has it.
kernel_suite() {
	case $1 in
	6.1 | 6.1-*) echo bookworm ;;
	6.12 | 6.12-* | debug | kcsan) echo bookworm-backports ;;
	7.2 | 7.2-* | debug-7.2) echo sid ;;
	esac
}

# kernel_version NAME: the first two numbers of its release.
kernel_version() {
	case $1 in
	debug | kcsan) echo 6.12 ;;
	debug-*) printf '%s\n' "${1#debug-}" ;;
	*) printf '%s\n' "${1%%-*}" ;;
	esac
}

# kernel_built NAME: is it built here, from Debian's source, as configs/ says?
kernel_built() {
	[[ -n $(kernel_config "$1") ]]
}

# kernel_config NAME: the configuration that a kernel is built of, configs/base
# before it; nothing for one that Debian has built.
kernel_config() {
	case $1 in
	debug | debug-*) echo debug ;;
	kcsan) echo kcsan ;;
	esac
}

# kernel_always_on NAME: as a pattern, options that a version no longer asks
# for. Linux 6.15 made SCHED_DEBUG part of every kernel.
kernel_always_on() {
	case $(kernel_version "$1") in
	7.2) echo CONFIG_SCHED_DEBUG ;;
	esac
}

# kernel_made_of NAME: the text of that configuration.
kernel_made_of() {
	local gone
	gone=$(kernel_always_on "$1")

	sed "${gone:+/^$gone=/d}" "$VM_DIR/configs/base.config" \
		"$VM_DIR/configs/$(kernel_config "$1").config"
}

# kernel_max_smp NAME: how many processors it runs at most.
kernel_max_smp() {
	if kernel_built "$1"; then
		kernel_made_of "$1" | sed -n 's/^CONFIG_NR_CPUS=//p'
	else
		echo 255
	fi
}

# kernel_mem NAME: how many MB it takes for the tests.
kernel_mem() {
	case $1 in
	debug | debug-*) echo 2048 ;;
	*) echo 1024 ;;
	esac
}

# kernel_sockets NAME SMP: QEMU's -smp argument. A kernel without ACPI finds the
# processors of the first socket only.
kernel_sockets() {
	if kernel_built "$1"; then
		printf '%s,sockets=%s\n' "$2" "$2"
	else
		printf '%s\n' "$2"
	fi
}

# kernel_append NAME: its command line. A verdict does not depend on how busy the
# machine is, so it takes minutes until a processor or a task counts as stuck.
# While Linux 6.12 detects the features of the first processor, it forgets for a
# moment that its page tables have five levels; of code interrupted at that
# moment KASAN reports invalid accesses.
kernel_append() {
	case $1 in
	debug | debug-*) printf 'kmemleak=on no5lvl ' ;;
	esac
	echo "rcupdate.rcu_cpu_stall_timeout=300 watchdog_thresh=60 hung=240"
}

# kernel_arch NAME: its architecture, as Debian calls it.
kernel_arch() {
	case $1 in
	*-arm64) echo arm64 ;;
	*) echo amd64 ;;
	esac
}

# kernel_flavour NAME: which of Debian's builds. The cloud one has all that
# is needed, built in, at half the size.
kernel_flavour() {
	case $1 in
	*-rt) echo rt-amd64 ;;
	*) printf 'cloud-%s\n' "$(kernel_arch "$1")" ;;
	esac
}

# kernel_cross NAME: the prefix of the compiler that makes its programs and
# modules here; none for the machine's own.
kernel_cross() {
	case $(kernel_arch "$1") in
	arm64) echo aarch64-linux-gnu- ;;
	esac
}

# kernel_foreign NAME: does its header package want a newer C library than
# Debian 12 has, so that modules are built in a root of its own suite?
kernel_foreign() {
	[[ $(kernel_suite "$1") == sid ]] && ! kernel_built "$1"
}

# kernel_dir NAME: its place in the cache, made if it is not there. A built
# kernel of an earlier configuration would lack options added since.
kernel_dir() {
	local dir how=fetch-kernel

	! kernel_built "$1" || how=build-kernel
	dir=$(cache_get "kernels/$1" "$VM_DIR/lib/$how" "$1")
	! kernel_built "$1" ||
		kernel_made_of "$1" | cmp -s - "$dir/made-of" ||
		die "$1 was built of another configuration than configs/ has" \
			"now: remove $dir to have it built anew"
	printf '%s\n' "$dir"
}

kernel_release() {
	local dir
	dir=$(kernel_dir "$1")

	cat "$dir/release"
}

kernel_image() {
	local dir
	dir=$(kernel_dir "$1")

	printf '%s\n' "$dir/image"
}

kernel_root() {
	local dir
	dir=$(kernel_dir "$1")

	printf '%s\n' "$dir/root"
}

kernel_headers() {
	local dir release
	dir=$(kernel_dir "$1")
	release=$(<"$dir/release")

	printf '%s\n' "$dir/root/usr/src/linux-headers-$release"
}

# kernel_source NAME: the archive of the sources that Debian built it from.
kernel_source() {
	local dir version
	version=$(kernel_version "$1")
	dir=$(cache_get "source-$version" "$VM_DIR/lib/fetch-source" \
		"$(kernel_suite "$1")" "$version")

	printf '%s\n' "$dir/source.tar.xz"
}
