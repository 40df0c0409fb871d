# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
# The letter ahead of the patches. Sourced by scripts/kernel-series.
# shellcheck shell=bash
# shellcheck disable=SC2154 # variables of kernel-series

# figure NAME KERNEL FIELD WORD...: of docs/results/NAME.md, in the part of that
# kernel the field of the first row that begins with the words; for the KERNEL
# "command" what measured it.
figure() {
	local file=$top/docs/results/$1.md

	if [[ $2 == command ]]; then
		sed -n 's/^| command | `\(.*\)` |$/\1/p' "$file"
		return
	fi
	# shellcheck disable=SC2016 # awk's own
	awk -v kernel="$2" -v field="$3" -v words="${*:4}" '
		/^Linux / { here = $2 == kernel }
		here {
			line = $0
			gsub(/[ \t]+/, " ", line)
			if (index(line " ", words " ") == 1) {
				split(line, column, " ")
				print column[field]
				exit
			}
		}' "$file"
}

# note: about the patch that not every kernel takes.
note() {
	if has_handoff; then
		echo "Patch ${number[wake-flags]} moves two #defines of the" \
			"scheduler."
	else
		echo "This kernel's default_wake_function() takes no flags:"
		echo "PARKLOT_FEAT_HANDOFF is not offered."
	fi
}

# value KEY [WORD]...: for @KEY WORD...@ of the letter.
value() {
	case $1 in
	handoff-note) note ;;
	nr) echo "${number[$2]}" ;;
	nr-tests)
		find "$top/selftests/lib" -name 'lib_*.c' | wc -l ;;
	version) sed -n 's/^VERSION[ \t]*:= *//p' "$top/Makefile" ;;
	release) echo "$release" ;;
	commit)
		git -C "$top" rev-parse --short=12 HEAD 2>/dev/null ||
			echo "a release" ;;
	*) figure "$@" ;;
	esac
}

# letter: the text with its figures; one that is not found is an error.
letter() {
	local text key got

	text=$(sed 1d "$texts/cover")
	while [[ $text =~ @([a-z][^@$'\n']*)@ ]]; do
		key=${BASH_REMATCH[1]}
		# shellcheck disable=SC2086 # words are meant
		got=$(value $key)
		[[ -n $got ]] ||
			die "docs/results has no figure for '$key'"
		text=${text//"@$key@"/"$got"}
	done
	printf '%s\n' "$text"
}

# write_series: what git makes of the commits, and the letter.
write_series() {
	local tree=$work/tree
	letter >"$work/letter"

	git -C "$tree" config branch.series.description "$(<"$work/letter")"
	mkdir -p "$out"
	git -C "$tree" format-patch -q -o "$out" --cover-letter \
		--cover-from-description=subject --no-signature --zero-commit \
		--no-renames --no-stat base..series
}
