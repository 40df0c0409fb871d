# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
# What README tells a newcomer, for the tests that do it.
# shellcheck shell=bash

# readme_lines README: the indented lines after the comment that marks them.
readme_lines() {
	awk '/^<!-- check-newcomer / { here = 1; next }
	here && /^\t/ { print substr($0, 2) }
	here && /^[^\t]/ { exit }' "$1"
}

# readme_recipe GUIDE NAME: the indented lines below "### NAME".
readme_recipe() {
	awk -v heading="### $2" '/^#/ { here = $0 == heading }
	here && /^\t/ { print substr($0, 2) }' "$1"
}

# readme_commands README: those of the lines, each on a line of its own.
readme_commands() {
	readme_lines "$1" | sed 's/ *\(&&\|||\|;\) */\n/g'
}

# readme_program README: the first one, which README calls hello.c.
readme_program() {
	awk '/^```c$/ { here = 1; next } here && /^```$/ { exit } here' "$1"
}

# readme_installs README: packages that the lines install, one a line.
readme_installs() {
	readme_commands "$1" | sed -n 's/^apt-get install //p' | tr ' ' '\n'
}
