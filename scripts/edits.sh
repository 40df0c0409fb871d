# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# Edits of the tree that a list names, one at a time, in a copy of it: faults,
# or what is switched off.  selftests/sim/MUTANTS says how a list looks.
# shellcheck shell=bash disable=SC2154 # users of this set them
#
# Sourced in the top directory.  lists: the files; what: the word for one of
# theirs; tree: the copy; die: prints its arguments, and exits.

# names: of all, one a line.
names() {
	awk '/^[a-z0-9_]+ [^ ]+: / { print $1 }' "${lists[@]}"
}

# head_of NAME: the first line of its block.
head_of() {
	grep -h "^$1 " "${lists[@]}" || die "no $what '$1'"
}

# file_of NAME
file_of() {
	head_of "$1" | sed 's/^[^ ]* \([^ ]*\): .*/\1/'
}

# about NAME: what is done to it.
about() {
	head_of "$1" | sed 's/^[^ ]* [^ ]*: //'
}

# edit NAME: prints its file with the edit; fails unless it applies once.
edit() {
	awk -v name="$1" -f scripts/edit.awk "${lists[@]}"
}

# check_all NAME...: whether each of them applies.
check_all() {
	awk -v check="$*" -v who="${0##*/}" -f scripts/edit.awk "${lists[@]}"
}

# copy_tree: what has not changed keeps its time, for make.
copy_tree() {
	local file

	# What has moved would be built twice.
	(cd "$tree" && find . -name build -prune -o -type f -printf '%P\n') |
		while read -r file; do
			[[ -f $file ]] || rm "$tree/$file"
		done
	git ls-files -co --exclude-standard | while read -r file; do
		if [[ -f $file ]] && ! cmp -s "$file" "$tree/$file"; then
			mkdir -p "$tree/$(dirname "$file")"
			cp -p "$file" "$tree/$file"
			touch "$tree/$file"
		fi
	done
}
