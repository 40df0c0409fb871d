# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
# Checks of layers, words, names, tags and commits, for the parts that read the source.
# Sourced by scripts/part.
# shellcheck shell=bash

# scripts: the shell scripts of the tree.
scripts() {
	tracked | xargs -d '\n' awk '
		FILENAME ~ /\.sh$/ || /^#!.*(bash|\/sh|env sh)/ { print FILENAME }
		{ nextfile }'
}

# A change of any script has part shell look at them.
scripts_have_their_part() {
	local paths

	read -r _ paths < <(grep '^shell[[:space:]]' selftests/NEEDS)
	# shellcheck disable=SC2086 # words are meant
	(
		set -f
		comm -23 <(scripts | sort) <(tracked $paths | sort)
	) | awk '{ print $0 ": not in the line of part shell in selftests/NEEDS" }
		END { exit NR > 0 }'
}

# clang_check FLAG...: the C files of stdin, many by one process: it takes longer
# to start than for a file.
clang_check() {
	local flags

	flags="$(make -s CC=clang CFLAGS=-O2 print-CPPFLAGS print-CFLAGS) $*"
	export flags
	# shellcheck disable=SC2016 # the shell below expands it
	tr ' ' '\n' | grep -E '\.c$' | grep -v /manual/ |
		xargs -n 64 -P 2 bash -c 'clang-check "$@" -- $flags -Werror \
			-iquote selftests/include -iquote selftests/device' clang
}

# Tests are compiled with another flag, as the Makefile has it.
syntax() {
	local benches

	benches=$(make -s O=. print-BENCHES)
	# shellcheck disable=SC2046,SC2086 # words are meant
	printf '%s\n' $(make -s print-LIB_SRCS) examples/*.c \
		${benches// /.c }.c tools/pl*.c | clang_check || return
	make -s print-TEST_SRCS | clang_check -Wno-unused-parameter
}

symbols_go_down() {
	local obj objs=()

	for obj in $(make -s O="$O/plain" print-LIB_OBJS); do
		objs+=("$obj")
	done
	nm -A "${objs[@]}" | awk -v under="$O/plain/lib/" \
		-f scripts/lint/symbols.awk lib/LAYERS -
}

# With delays, which more files use than without.
module_symbols_go_down() {
	local dir=$O/check/layers-module

	selftests/vm/build 6.12 "$dir" PARKLOT_INJECT=1
	nm -A "$dir"/module/*.o | awk -v under="$dir/module/" -v flat=1 \
		-f scripts/lint/symbols.awk module/LAYERS -
}

# A static function has the noun of its file in its name.
static_names() {
	# shellcheck disable=SC2046 # words are meant
	awk -f scripts/lint/static-names.awk $(tracked 'lib/*.[ch]')
}

# Each race tag has its row in the table of models and tests.
race_tags() {
	local built

	# shellcheck disable=SC2046 # words are meant
	built=$(basename -a $(programs plain lib) $(programs plain mod) |
		tr '\n' ' ')
	# shellcheck disable=SC2046
	awk -v list=1 -f scripts/lint/comments.awk -f scripts/lint/pairs.awk \
		$(tracked 'lib/*.[chS]' 'module/*.[ch]') | awk -v built="$built" \
		-f scripts/lint/tags.awk selftests/models/TAGS -
}

# A user that may open the device must not write to the kernel's log.
module_is_quiet() {
	! grep -nE '\<(printk|pr_[a-z_]+|dev_[a-z_]+|WARN[A-Z_]*) *\(' \
		module/*.[ch]
}

check_commits() {
	local reason

	if reason=$(scripts/lint/commits --no-history); then
		skip commits "$reason"
	else
		try commits scripts/lint/commits
	fi
}
