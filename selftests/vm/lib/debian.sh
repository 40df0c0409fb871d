# SPDX-License-Identifier: GPL-2.0-only
# Packages of any Debian suite, fetched from the mirror that this machine's
# apt is set up for, through private apt directories: the system's own apt
# stays as it is, and nothing is installed.
# shellcheck shell=bash

DEBIAN_KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

# debian_mirror GLOB: the address that serves the first suite like GLOB.
debian_mirror() {
	local release uri

	# shellcheck disable=SC2016 # apt's own variables
	apt-get indextargets --format '$(RELEASE) $(REPO_URI)' \
		'Created-By: Packages' |
	while read -r release uri; do
		# shellcheck disable=SC2053 # a pattern is meant
		if [[ $release == $1 ]]; then
			printf '%s\n' "$uri"
			cat >/dev/null
		fi
	done
}

# debian_sources SUITE: its lines of sources.list.
debian_sources() {
	local suite=$1 main security codename
	local deb="deb [signed-by=$DEBIAN_KEYRING]"

	# shellcheck disable=SC1091 # the machine's own
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")
	main=$(debian_mirror "$codename")
	[[ -n $main ]] || main=$(debian_mirror stable)
	[[ -n $main ]] || die "apt knows no mirror for $codename"
	echo "$deb $main $suite main"

	[[ $suite == bookworm ]] || return 0
	security=$(debian_mirror '*-security')
	[[ -z $security ]] || echo "$deb $security $suite-security main"
}

# debian_open SUITE DIR [ARCH]: make DIR an apt of SUITE for debian_apt, of
# packages for ARCH, by default the machine's own; its own can be had even so,
# as NAME:amd64. The machine's dpkg need not know of ARCH.
debian_open() {
	local suite=$1 dir=$2 own
	own=$(dpkg --print-architecture)

	need apt-get apt
	[[ -r $DEBIAN_KEYRING ]] ||
		die "$DEBIAN_KEYRING is missing:" \
			"apt-get install debian-archive-keyring"
	mkdir -p "$dir"/{lists,cache/archives,debs}/partial
	debian_sources "$suite" >"$dir/sources.list"
	: >"$dir/status"
	cat >"$dir/conf" <<-EOF
	APT::Architecture "${3:-$own}";
	#clear APT::Architectures;
	APT::Architectures { "${3:-$own}"; "$own"; };
	#clear APT::Update::Post-Invoke;
	#clear APT::Update::Post-Invoke-Success;
	#clear DPkg::Post-Invoke;
	Dir::Etc::sourcelist "$dir/sources.list";
	Dir::Etc::sourceparts "/dev/null";
	Dir::Etc::preferences "/dev/null";
	Dir::Etc::preferencesparts "/dev/null";
	Dir::State "$dir";
	Dir::State::lists "$dir/lists";
	Dir::State::status "$dir/status";
	Dir::Cache "$dir/cache";
	APT::Sandbox::User "";
	APT::Update::Error-Mode "any";
	Acquire::Languages "none";
	EOF
	say "$suite: reading the list of packages"
	debian_apt get "$dir" -qq update >&2
}

# debian_apt get|cache DIR ARG...: apt-get or apt-cache in DIR's suite.
debian_apt() {
	local verb=$1 dir=$2
	shift 2

	LC_ALL=C "apt-$verb" -c "$dir/conf" "$@"
}

# debian_depends DIR PACKAGE: the names that it depends on, a line each.
debian_depends() {
	debian_apt cache "$1" depends "$2" |
		awk '/^ *\|?Depends:/ { print $2 }'
}

# debian_closure DIR PACKAGE...: these and all that they depend on.
debian_closure() {
	debian_apt get "$1" -s --no-install-recommends install "${@:2}" |
		awk '/^Inst / { print $2 }'
}

# debian_unpack DIR ROOT PACKAGE...: fetch, check and unpack into ROOT. The
# directories that newer Debian merged into /usr may be links there already.
debian_unpack() {
	local dir=$1 root=$2 deb
	shift 2

	say "fetching $1${2:+ and $(($# - 1)) more}"
	mkdir -p "$root"
	rm -f "$dir"/debs/*.deb
	(cd "$dir/debs" && debian_apt get "$dir" -qq download "$@") >&2
	for deb in "$dir"/debs/*.deb; do
		dpkg --fsys-tarfile "$deb" |
			tar -x -C "$root" --no-same-owner \
				--keep-directory-symlink \
				--exclude='./lib/modules/*' \
				--exclude='./usr/lib/modules/*/kernel' \
				--exclude='./usr/share/doc' \
				--exclude='./usr/share/locale' \
				--exclude='./usr/share/man'
	done
}
