# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# awk -f syz.awk parklot.h dev_parklot.txt
# Does the description for syzkaller know each command, each flag and each
# struct of the first, with the same fields in the same order?  Sizes of former
# versions are no flags.

function bad(what) { print what; failed = 1 }

# What is mapped is memory to it.
function is_exempt(name) { return name ~ /_(counters|words)$/ }

FNR == 1 { nr_file++ }

nr_file == 1 && /^#define[ \t]+PARKLOT_(IOC|OFF|PARK|WAKE)_|^#define[ \t]+PARKLOT_(WOKEN|CHANGED|TIMEDOUT|POLLED|INTERRUPTED|CALLED)/ {
	if ($2 != "PARKLOT_IOC_MAGIC" && $2 !~ /_SIZE_VER[0-9]+$/)
		wanted[$2] = 1
}
nr_file == 1 && /^struct [a-z_]+ \{$/ { name = $2 }
nr_file == 2 && /^[a-z_]+ \{$/ { name = $1 }
/^\};?$/ { name = "" }
name != "" && nr_file == 1 && /;/ {
	field = $0
	sub(/\[[^]]*\]/, "", field)
	sub(/;.*/, "", field)
	sub(/.*[ \t*]/, "", field)
	if (!is_exempt(name))
		want[name] = want[name] " " field
}
name != "" && nr_file == 2 && /^\t/ { got[name] = got[name] " " $1 }
nr_file == 2 {
	line = $0
	while (match(line, /PARKLOT_[A-Z_]+/)) {
		seen[substr(line, RSTART, RLENGTH)] = 1
		line = substr(line, RSTART + RLENGTH)
	}
}

END {
	for (i in wanted)
		if (!(i in seen))
			bad(i " is not described")
	for (i in want)
		if (want[i] != got[i])
			bad("struct " i ": has" want[i] ", described are" got[i])
	if (!length(wanted) || !length(want))
		bad("nothing was found to compare")
	exit failed
}
