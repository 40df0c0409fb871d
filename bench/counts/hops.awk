# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# awk -v top=DIR/ -f hops.awk FILE
# A profile of callgrind's without compressed names, as "count caller callee":
# calls into functions of the library, each named as file:function.  After a
# switch to another stack, valgrind takes a return for a call: it goes to a line
# behind the function's first one.

function name_of(file, fn)
{
	sub(/'[0-9]+$/, "", fn)		# of a recursion
	return substr(file, length(top) + 1) ":" fn
}

function value_of(line)
{
	return substr(line, index(line, "=") + 1)
}

/^fl=/ { file = home = value_of($0) }
/^f[ie]=/ { file = value_of($0) }
/^fn=/ { file = home; fn = value_of($0) }
/^cf[il]=/ { to = value_of($0) }
/^cfn=/ { callee = value_of($0) }
/^calls=/ {
	if (to == "")
		to = file
	if (index(to, top "lib/") == 1 || index(to, top "include/") == 1) {
		name = name_of(to, callee)
		if (!(name in first) || $2 + 0 < first[name])
			first[name] = $2 + 0
		count[name_of(home, fn) " " name " " $2] += value_of($1)
	}
	to = ""
}

END {
	for (edge in count) {
		split(edge, part, " ")
		if (part[3] == first[part[2]])
			print count[edge], part[1], part[2]
	}
}
