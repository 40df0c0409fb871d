# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# awk -f static-names.awk FILE.[ch]...
# A static function has the noun of its file in its name, since profilers and
# debuggers show no more than the name: so no name is defined in two files, but
# pl__x(), of which each architecture has its own.

function bad(what) { print what; failed = 1 }

FNR == 1 { nr_files++ }

# In the first column; a prototype ends in a semicolon, a variable has no "(".
/^static [^;=]*\(/ && !/;$/ {
	line = $0
	gsub(/__attribute__\(\([^)]*(\([^)]*\))?\)\)/, "", line)
	while (sub(/[A-Z][A-Z0-9_]*(\([^)]*\))?/, "", line))
		;
	if (!match(line, /[a-z_][a-z0-9_]*\(/))
		next
	name = substr(line, RSTART, RLENGTH - 1)
	if (name ~ /^pl__/ || (name, FILENAME) in seen)
		next
	seen[name, FILENAME] = 1
	nr_in[name]++
	list[name] = list[name] " " FILENAME ":" FNR
	nr_names++
}

END {
	for (name in nr_in)
		if (nr_in[name] > 1)
			bad(name "() is defined in two files:" list[name])
	if (!nr_names)
		bad("no static functions were found")
	print nr_names + 0 " static functions, " nr_files + 0 " files"
	exit failed
}
