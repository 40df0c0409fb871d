# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
# Which subjects there are, how each is run once, and what of it is ours.
# shellcheck shell=bash

O=${O:-build}
RUNS=${RUNS:-5}
ECHO_SECONDS=${ECHO_SECONDS:-2}

# shellcheck disable=SC2034 # for who reads this
SUBJECTS="switch yield spawn pingpong mutex fib skynet wake producer timer
sleep memory blocking idle fairness echo"
# Only by its name: it needs the module, and to be root.
# shellcheck disable=SC2034
BY_NAME="device"

# Its results are lines, not numbers: what one costs as they become more.
# shellcheck disable=SC2034
LINES_OF="growth blocked"

# Everything is started so that it ends with us, even if we are killed.
bound() {
	if command -v setpriv >/dev/null; then
		exec setpriv --pdeathsig KILL -- "$@"
	else
		exec "$@"
	fi
}

# progress WORDS...: on one line of the terminal, or a line each.
progress() {
	if [[ -t 2 ]]; then
		printf '\r\e[K  %s' "$*" >&2
	else
		printf '  %s\n' "$*" >&2
	fi
}

progress_end() {
	[[ ! -t 2 ]] || printf '\r\e[K' >&2
}

# server_of PEER: the command of its echo server; it says where it listens.
server_of() {
	case $1 in
	parklot) echo "$O/examples/echo --port 0" ;;
	epoll) echo "$O/bench/peers/epoll" ;;
	go) echo "$O/bench/peers/go/peers echo" ;;
	esac
}

# echo_once PEER: load its server once; prints as the programs do.
echo_once() {
	local dir server addr='' i status=0

	dir=$(mktemp -d)
	: >"$dir/server"
	# shellcheck disable=SC2046 # words are meant
	(bound $(server_of "$1") >"$dir/server") &
	server=$!
	for ((i = 0; i < 100; i++)); do
		addr=$(sed -n 's/^listening on //p' "$dir/server")
		[[ -z $addr ]] || break
		sleep 0.1
	done
	"$O/bench/echo_load" --addr "$addr" --seconds "$ECHO_SECONDS" \
		--pid "$server" >"$dir/load" 2>/dev/null || status=$?
	kill -KILL "$server" 2>/dev/null || :
	wait "$server" 2>/dev/null || :
	((status)) || awk -F = '
		BEGIN {
			OFS = "\t"
			unit["rps"] = "1/s"
			unit["server_cpu_us"] = unit["p50_us"] = "us"
			unit["p99_us"] = "us"
		}
		$1 in unit {
			name = $1
			sub(/_us$/, "", name)
			print "echo", name, $2, $2, $2, unit[$1]
		}' "$dir/load"
	rm -rf "$dir"
	return "$status"
}

# once PEER SUBJECT: one run; prints what came out, or nothing if that peer
# does not do this.
once() {
	local peer=$1 subject=$2

	case $peer:$subject in
	*:echo)
		[[ -z $(server_of "$peer") ]] || echo_once "$peer"
		;;
	parklot:*) "$O/bench/$subject" --runs 1 ;;
	go:*) "$O/bench/peers/go/peers" "$subject" --runs 1 ;;
	epoll:*) ;;
	*) "$O/bench/peers/$peer" "$subject" --runs 1 ;;
	esac
}

# does PEER SUBJECT
does() {
	case $1:$2 in
	*:echo) [[ -n $(server_of "$1") ]] ;;
	epoll:*) return 1 ;;
	go:*) "$O/bench/peers/go/peers" list | grep -qx "$2" ;;
	*) "$O/bench/peers/$1" list | grep -qx "$2" ;;
	esac
}
