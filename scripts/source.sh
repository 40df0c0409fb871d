# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
# Checks of words, names, tags and commits, for the parts that read the source.
# Sourced by scripts/part.
# shellcheck shell=bash

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
	awk -v list=1 -f scripts/lint/pairs.awk $(tracked 'lib/*.[chS]' \
		'module/*.[ch]') | awk -v built="$built" \
		-f scripts/lint/tags.awk selftests/models/TAGS -
}

# In all that people read; the list itself and its test name them.
retired_words() {
	# shellcheck disable=SC2046 # words are meant
	awk -f scripts/lint/retired.awk scripts/lint/retired \
		$(tracked | grep -vE \
		"$NO_COMMENTS|\.tsv$|^scripts/lint/retired|^scripts/test/test-lint")
}

check_commits() {
	local reason

	if reason=$(scripts/lint/commits --no-history); then
		skip commits "$reason"
	else
		try commits scripts/lint/commits
	fi
}
