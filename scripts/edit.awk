# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# awk -v name=NAME -f scripts/edit.awk LIST: prints NAME's file with the edit that
# LIST has under NAME, as selftests/sim/MUTANTS says.  Fails unless the old text is
# there once.
#
# awk -v check="NAME..." -v who=CALLER -f scripts/edit.awk LIST: only says of which
# edits the old text is not there once; fails if there are any.

/^[a-z0-9_]+ [^ ]+: / {
	here = $1
	file_of[here] = substr($2, 1, length($2) - 1)
	next
}
/^-/ { old[here, ++nr_old[here]] = substr($0, 2); next }
/^\+/ { new[here, ++nr_new[here]] = substr($0, 2); next }

# Reads a file into line[1] to line[nr].
function load(file,	text)
{
	if (file == loaded)
		return
	for (nr = 0; (getline text < file) > 0; )
		line[++nr] = text
	close(file)
	loaded = file
}

function is_at(i, name,	k)
{
	for (k = 1; k <= nr_old[name]; k++)
		if (i + k - 1 > nr || line[i + k - 1] != old[name, k])
			return 0
	return nr_old[name] > 0
}

# How often its old text is there; prints the file with the new one, or not.
function apply(name, prints,	i, k, found)
{
	for (i = 1; i <= nr; i++) {
		if (!is_at(i, name)) {
			if (prints)
				print line[i]
			continue
		}
		found++
		for (k = 1; prints && k <= nr_new[name]; k++)
			print new[name, k]
		i += nr_old[name] - 1
	}
	return found + 0
}

function check_all(	names, n, i, failed)
{
	n = split(check, names, " ")
	for (i = 1; i <= n; i++) {
		load(file_of[names[i]])
		if (apply(names[i], 0) == 1)
			continue
		printf "%s: %s: its old text is not there once\n", who,
			names[i] > "/dev/stderr"
		failed = 1
	}
	return failed
}

END {
	if (check)
		exit check_all()
	load(file_of[name])
	exit apply(name, 1) != 1
}
