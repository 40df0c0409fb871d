# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# awk -f comments.awk -f retired.awk scripts/lint/retired FILE...
# No FILE uses a word or an identifier that "retired" lists (its head describes
# the kinds).

function bad(what) { print what; failed = 1 }

# ---- the list ----

# An entry: kind, pattern, replacement and, for people, a reason.
function read_entry(	part, n)
{
	n = split($0, part, /\t+/)
	if (part[1] == "allow" && n >= 3) {
		allowed[++nr_allowed] = part[2]
	} else if (part[1] ~ /^(word|name|both|field)$/ && n >= 3) {
		if (part[1] != "name" && part[1] != "field")
			add_pattern("word", part[2], part[3])
		if (part[1] == "name" || part[1] == "both")
			add_pattern("name", part[2], part[3])
		if (part[1] == "field")
			add_pattern("field", part[2], part[3])
	} else {
		bad(FILENAME ":" FNR ": not \"kind pattern replacement\"")
	}
}

function add_pattern(kind, pattern, say,	edge)
{
	edge = kind == "word" ? "[^a-z0-9_]" : "[^a-z0-9]"
	regex[++nr] = kind == "field" ? pattern : \
		"(^|" edge ")(" pattern ")($|" edge ")"
	kind_of[nr] = kind
	instead[nr] = say
	any[kind] = any[kind] (any[kind] == "" ? "" : "|") "(" regex[nr] ")"
}

# ---- what of a line is comment or prose, and what is code ----

function language_of(file,	name)
{
	name = file
	sub(/.*\//, "", name)
	if (name ~ /\.([chS]|[ch]pp|pml|go)$/)
		return "c"
	if (name ~ /\.(md|[1-8])$/ || name ~ /-why$/ || name == "skips")
		return "prose"
	return "script"
}

# What a program prints is prose, too.
function add_strings(	rest)
{
	rest = code
	while (match(rest, /"[^"]*"/)) {
		text = text " ; " substr(rest, RSTART + 1, RLENGTH - 2)
		rest = substr(rest, RSTART + RLENGTH)
	}
}

function follow_struct()
{
	if (code ~ /^[^;()=]*(struct|union|enum)[^;()=]*\{[ \t]*$/)
		depth++
	else if (depth && code ~ /^[ \t]*\}/)
		depth--
}

function split_prose()
{
	text = $0
	code = ""
}

function split_script()
{
	text = ""
	code = $0
	if (match($0, /(^|[ \t])#/)) {
		text = substr($0, RSTART + RLENGTH)
		code = substr($0, 1, RSTART)
	}
}

# Identifiers that a text names are code.
function move_identifiers(	rest)
{
	rest = text
	while (match(rest, /[A-Za-z0-9]*_[A-Za-z0-9_]*/)) {
		code = code " " substr(rest, RSTART, RLENGTH)
		rest = substr(rest, RSTART + RLENGTH)
	}
}

# ---- hits ----

function hit(found, i)
{
	gsub(/^[^a-z0-9]+|[^a-z0-9]+$/, "", found)
	bad(FILENAME ":" FNR ": \"" found "\": " instead[i])
	nr_hits++
}

function look(kind, hay,	i, rest)
{
	if (hay == "" || !(kind in any) || hay !~ any[kind])
		return
	for (i = 1; i <= nr; i++) {
		if (kind_of[i] != kind)
			continue
		rest = hay
		while (match(rest, regex[i])) {
			hit(substr(rest, RSTART, RLENGTH), i)
			rest = substr(rest, RSTART + RLENGTH - 1)
			if (length(rest) < 2)
				break
		}
	}
}

# A phrase that begins on the line before and ends on this one.
function look_across(before, now,	i, both)
{
	both = before " " now
	if (before == "" || now == "" || both !~ any["word"])
		return
	for (i = 1; i <= nr; i++)
		if (kind_of[i] == "word" && index(regex[i], " ") &&
		    !match(now, regex[i]) && !match(before, regex[i]) &&
		    match(both, regex[i]))
			hit(substr(both, RSTART, RLENGTH), i)
}

FILENAME == ARGV[1] && (/^#/ || /^$/) { next }
FILENAME == ARGV[1] { read_entry(); next }

FNR == 1 {
	language = language_of(FILENAME)
	in_comment = depth = 0
	last = ""
	nr_files++
}
{
	if (language == "c") {
		split_c($0)
		sub(/^[ \t]*\*+[ \t]/, "", text)
	} else if (language == "prose") {
		split_prose()
	} else {
		split_script()
	}
	if (language == "c")
		follow_struct()
	if (depth)
		look("field", tolower(begins_comment ? text : "+" text))
	move_identifiers()
	for (i = 1; i <= nr_allowed; i++) {
		gsub(allowed[i], "", text)
		gsub(allowed[i], "", code)
	}
	look("name", tolower(code))
	now = tolower(text)
	if (language == "c")
		add_strings()
	look("word", tolower(text))
	look_across(last, now)
	last = now
}

END {
	if (!nr || !nr_files)
		bad("no retired words, or no files to look into")
	print nr " patterns, " nr_files " files, " nr_hits + 0 " hits"
	exit failed
}
