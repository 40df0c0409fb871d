# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
# What each patch changes. Sourced by scripts/kernel-series.
# shellcheck shell=bash
# shellcheck disable=SC2154 # variables of kernel-series

# The two flags as they are, comments and all.
patch_wake_flags() {
	local flag='^#define[[:blank:]]+WF_(SYNC|CURRENT_CPU)[[:blank:]]' moved

	moved=$(grep -E "$flag" "$work/tree/kernel/sched/sched.h")
	# shellcheck disable=SC2016 # awk's own
	edit kernel/sched/sched.h '$0 !~ flag' -v flag="$flag"
	# shellcheck disable=SC2016 # awk's own
	edit include/linux/wait.h '
		{ print }
		/^int default_wake_function\(/ && !done {
			print ""
			print "/* Flags that default_wake_function() takes; kernel/sched/sched.h has the others. */"
			print moved
			done = 1
		}' -v moved="$moved"
	commit wake-flags
}

# ioctl_row: of ioctl-number.rst, in the columns of its table.
ioctl_row() {
	local magic

	magic=$(sed -n 's/^#define PARKLOT_IOC_MAGIC[ \t]*0x//p' \
		"$top/$uapi")
	# shellcheck disable=SC2016 # awk's own
	edit "$1" '
		function pad(text, column) {
			while (length(text) < column - 1)
				text = text " "
			return text
		}
		!columns && /^====+ +====/ {
			for (i = 1; i <= length($0); i++)
				if (substr($0, i, 1) == "=" &&
				    (i == 1 || substr($0, i - 1, 1) == " "))
					column[++columns] = i
		}
		columns && !done && /^0x[0-9A-F][0-9A-F] / &&
		    substr($0, 3, 2) > toupper(magic) {
			row = pad("0x" toupper(magic), column[2])
			row = pad(row range, column[3])
			row = pad(row "uapi/linux/parklot.h", column[4])
			print row "Threads of M:N runtimes"
			done = 1
		}
		{ print }' -v magic="$magic" -v range="$(ioctl_range)"
}

# ioctl_range: the first and the last number that the header has.
ioctl_range() {
	sed -n 's/.*PARKLOT_IOC_MAGIC, 0x\([0-9a-f]*\),.*/\1/p' "$top/$uapi" |
		sort | sed -n '1h; ${ H; x; s/\n/-/; p }'
}

# entry: in MAINTAINERS, with the first of its patterns.
entry() {
	local section

	section=$(printf '%s\n' 'PARKLOT (PARKING LOTS FOR M:N RUNTIMES)' \
		"M:	$author" 'L:	linux-kernel@vger.kernel.org' \
		'S:	Maintained' "F:	$1" '')
	# shellcheck disable=SC2016 # awk's own
	edit MAINTAINERS '
		!done && was_empty && /^P/ && $0 > "PARKLOT" {
			print section "\n"
			done = 1
		}
		{ was_empty = !NF; print }' -v section="$section"
}

patch_uapi() {
	mkdir -p "$work/tree/${uapi%/*}"
	cat "$top/$uapi" >"$work/tree/$uapi"
	ioctl_row Documentation/userspace-api/ioctl/ioctl-number.rst
	entry "$uapi"
	commit uapi
}

# cache_aliases: what refuse.h refuses, for Kconfig: the architectures by name
# only where the kernel has no word for it.
cache_aliases() {
	local names

	names=$(sed -n '/^#error/q; s/defined(CONFIG_\([A-Z0-9_]*\))/\n&\n/gp' \
		"$top/module/refuse.h" |
		sed -n 's/^defined(CONFIG_\([A-Z0-9_]*\))$/\1/p')
	if grep -q '^config ARCH_HAS_CPU_CACHE_ALIASING' "$kernel/mm/Kconfig"; then
		names=ARCH_HAS_CPU_CACHE_ALIASING
	else
		names=$(grep -v CACHE_ALIASING <<<"$names")
	fi
	# shellcheck disable=SC2086 # words are meant
	printf '\tdepends on !%s\n' $names
}

# objects_line VARIABLE OBJECT...: of a Makefile.
objects_line() {
	printf '%s %s\n' "$1" "${*:2}" | fold -s -w 60 |
		sed -e 's/ $//' -e '$!s/$/ \\/' -e '2,$s/^/\t/'
}

patch_core() {
	local dir=$work/tree/$driver core headers
	core=$(objects | xargs)
	headers=$(cd "$top/module" && echo ./*.h)

	# shellcheck disable=SC2046,SC2086 # words are meant
	place $(sources $core) ${headers//.\//}
	rm "$dir"/{inject,refuse}.h
	cache_aliases >"$work/aliases"
	sed -e "/@cache-aliases@/{ r $work/aliases" -e 'd }' \
		"$texts/Kconfig.in" >"$dir/Kconfig"
	{
		echo '# SPDX-License-Identifier: GPL-2.0-only'
		echo 'obj-$(CONFIG_PARKLOT) += parklot.o'
		# shellcheck disable=SC2086 # words are meant
		objects_line 'parklot-y :=' $core
		echo
		sed -n '/^# <trace/p' "$top/Kbuild"
		echo 'CFLAGS_trace.o := -I$(src)'
	} >"$dir/Makefile"
	insert_before drivers/misc/Kconfig '^endmenu' \
		"source \"$driver/Kconfig\""
	printf 'obj-$(CONFIG_PARKLOT)\t\t+= parklot/\n' \
		>>"$work/tree/drivers/misc/Makefile"
	maintains "$driver/"
	commit core
}

# patch_part NAME OBJECT...: a part of the driver that can be left out.
patch_part() {
	local dir=$work/tree/$driver name=$1
	shift

	# shellcheck disable=SC2046 # words are meant
	place $(sources "$@")
	sed 1d "$texts/Kconfig.$name" >>"$dir/Kconfig"
	insert_before "$driver/Makefile" '^$' \
		"$(objects_line "parklot-\$(CONFIG_PARKLOT_${name^^}) +=" "$@")"
	commit "$name"
}

patch_docs() {
	cat "$texts/parklot.rst" >"$work/tree/$manual"
	insert_before Documentation/userspace-api/index.rst '^   vduse$' \
		'   parklot'
	maintains "$manual"
	commit docs
}

patch_tests() {
	local place=$work/tree/$tests

	mkdir -p "$place"
	cp -pr "$top"/selftests/device/{.gitignore,*} "$place/"
	rm -r "$place"/{fuzz,mod_fuzz.c}
	# shellcheck disable=SC2016 # awk's own
	edit tools/testing/selftests/Makefile '
		!done && /^TARGETS \+= / && $3 > "drivers/parklot" {
			print "TARGETS += drivers/parklot"
			done = 1
		}
		{ print }'
	maintains "$tests/"
	commit tests
	cp -pr "$top"/selftests/device/{fuzz,mod_fuzz.c} "$place/"
	commit fuzzer
}

patch_all() {
	local crew
	crew=$(more CONFIG_PREEMPT_NOTIFIERS=y)

	! has_handoff || patch_wake_flags
	patch_uapi
	patch_core
	# shellcheck disable=SC2086 # words are meant
	patch_part crew $crew
	patch_docs
	patch_tests
}
