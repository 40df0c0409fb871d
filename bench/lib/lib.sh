# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
# Which subjects there are, how each is run once, and what of it is ours.
# shellcheck shell=bash

O=${O:-build}
RUNS=${RUNS:-5}
ECHO_SECONDS=${ECHO_SECONDS:-2}
WARM_UP=${WARM_UP:-0.5}		# seconds before these

# shellcheck disable=SC2034 # for the sourcing program
SUBJECTS="switch yield spawn pingpong mutex fib skynet wake producer timer
sleep trickle memory blocked_burst idle fairness echo"
# Only by its name: it needs the module, and to be root.
# shellcheck disable=SC2034
BY_NAME="device"

# Its results are lines, not numbers: what one costs as they become more.
# shellcheck disable=SC2034
LINES_OF="growth blocked_workers"

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

# server_of PEER[-NR] [US]: the command of its echo server; it says where it
# listens.  NR: epoll's threads, or PARKLOT_WORKERS; "fixed": that number does
# not follow the load; "crowd-PEER": one on two ports; handlers of the first block,
# and so many others as US says compute.  US: what its handlers compute, of those
# that can.
server_of() {
	local nr=${1#*-} us=${2-}

	case $1 in
	crowd-go) echo "$O/bench/peers/go/peers crowd_server $us" ;;
	crowd-*) echo "$O/bench/crowd/server $nr $us" ;;
	parklot-fixed)
		echo "env PARKLOT_ELASTIC=0 $(server_of parklot "$us")"
		;;
	parklot-*) echo "env PARKLOT_WORKERS=$nr $(server_of parklot "$us")" ;;
	parklot)
		if [[ -n $us ]]; then
			echo "$O/bench/server/compute_server $us"
		else
			echo "$O/examples/echo --port 0"
		fi
		;;
	epoll-*) echo "$(server_of epoll "$us") --threads $nr" ;;
	epoll) echo "$O/bench/peers/epoll${us:+ --compute $us}" ;;
	asio) [[ -n $us ]] || echo "$O/bench/peers/asio" ;;
	go) echo "$O/bench/peers/go/peers echo${us:+ --compute $us}" ;;
	esac
}

# want_servers PEER...: each of them has a server, which was built.
want_servers() {
	local peer word status=0

	for peer; do
		word=$(server_of "$peer" "${compute-}")
		if [[ -z $word ]]; then
			echo "error: '$peer' has no server" >&2
			return 2
		fi
		for word in $word; do
			[[ $word != "$O"/* || -x $word ]] || {
				echo "error: $word is missing: make bench-server builds it" >&2
				status=2
			}
		done
	done
	return "$status"
}

# serving PEER COMMAND...: while its server runs, at $addr as process $server;
# COMMAND may leave files in $dir.  $compute: see server_of.
serving() {
	local dir server addr='' i status=0 peer=$1
	shift

	dir=$(mktemp -d)
	: >"$dir/server"
	# shellcheck disable=SC2046 # words are meant
	(bound $(server_of "$peer" "${compute-}") >"$dir/server") &
	server=$!
	for ((i = 0; i < 100; i++)); do
		addr=$(sed -n 's/^listening on //p' "$dir/server")
		[[ -z $addr ]] || break
		kill -0 "$server" 2>/dev/null || break
		sleep 0.1
	done
	if [[ -n $addr ]]; then
		"$@" || status=$?
	else
		echo "error: the server of '$peer' does not listen" >&2
		status=1
	fi
	kill -KILL "$server" 2>/dev/null || :
	wait "$server" 2>/dev/null || :
	rm -rf "$dir"
	return "$status"
}

# load CASE OPTION...: the server of $server; prints as the programs do, with
# CASE behind each case's name.  What failed, the load says itself.
load() {
	local case=$1
	shift

	"$O/bench/server/echo_load" --addr "$addr" --pid "$server" \
		--threads "${LOAD_THREADS:-1}" --warm-up "$WARM_UP" "$@" \
		>"$dir/load" 2>"$dir/err" || { cat "$dir/err" >&2; return 1; }
	awk -F = -v case="$case" '
		BEGIN {
			OFS = "\t"
			unit["rps"] = "1/s"
			unit["server_cpu_us"] = unit["p50_us"] = "us"
			unit["p99_us"] = unit["p999_us"] = "us"
			unit["server_switches"] = "switches"
			unit["server_calls"] = "calls"
		}
		$1 in unit {
			name = $1
			sub(/_us$/, "", name)
			print "echo", name case, $2, $2, $2, unit[$1]
		}' "$dir/load"
}

# program_of_subject SUBJECT: ours.
program_of_subject() {
	case $1 in
	blocked_*) echo "$O/bench/crowd/$1" ;;
	device) echo "$O/bench/module/$1" ;;
	growth) echo "$O/bench/scale/$1" ;;
	*) echo "$O/bench/paths/$1" ;;
	esac
}

# once PEER SUBJECT: one run; prints what came out, or nothing if that peer
# does not do this.
once() {
	local peer=$1 subject=$2

	case $peer:$subject in
	*:echo)
		[[ -z $(server_of "$peer") ]] || serving "$peer" \
			load '' --seconds "$ECHO_SECONDS"
		;;
	parklot:*) "$(program_of_subject "$subject")" --runs 1 ;;
	go:*) "$O/bench/peers/go/peers" "$subject" --runs 1 ;;
	epoll:* | asio:*) ;;
	*) "$O/bench/peers/$peer" "$subject" --runs 1 ;;
	esac
}

# does PEER SUBJECT
does() {
	case $1:$2 in
	*:echo) [[ -n $(server_of "$1") ]] ;;
	epoll:* | asio:*) return 1 ;;
	go:*) "$O/bench/peers/go/peers" list | grep -qx "$2" ;;
	*) "$O/bench/peers/$1" list | grep -qx "$2" ;;
	esac
}

# origin: where and when a chart was drawn, right after it was measured.
origin() {
	echo "$(uname -n), $(nproc) processors, Linux $(uname -r | cut -d - -f 1)," \
		"$(git describe --always --dirty 2>/dev/null || echo release)," \
		"$(date -u '+%Y-%m-%d %H:%M') UTC"
}
