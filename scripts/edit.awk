# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# awk -v name=NAME -f scripts/edit.awk LIST FILE: prints FILE with the edit that
# LIST has under NAME, as selftests/sim/MUTANTS says.  Fails unless the old text is
# there once.

FNR == NR && $1 == name { here = 1; next }
FNR == NR && here && /^-/ { old[++nr_old] = substr($0, 2); next }
FNR == NR && here && /^\+/ { new[++nr_new] = substr($0, 2); next }
FNR == NR { here = 0; next }
{ line[FNR] = $0; nr = FNR }

function is_at(i,	k)
{
	for (k = 1; k <= nr_old; k++)
		if (i + k - 1 > nr || line[i + k - 1] != old[k])
			return 0
	return nr_old > 0
}

END {
	for (i = 1; i <= nr; i++) {
		if (!is_at(i)) {
			print line[i]
			continue
		}
		found++
		for (k = 1; k <= nr_new; k++)
			print new[k]
		i += nr_old - 1
	}
	exit found != 1
}
