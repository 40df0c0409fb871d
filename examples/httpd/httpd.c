// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * An HTTP/1.1 server of files: a task a connection, written as if each were a
 * thread
 *
 *	cc -D_GNU_SOURCE -o httpd *.c $(pkg-config --cflags --libs parklot) \
 *		-lhttp_parser
 */
#include "httpd.h"

#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct config config = {
	.max_connections = 10000,
	.max_body = 1024 * 1024,
	.request_s = 30,
	.idle_s = 60,
	.drain_s = 10,
};

static const char usage[] =
"Usage: %s [OPTION]... DIRECTORY\n"
"Serves the files below DIRECTORY on 127.0.0.1 until SIGINT or SIGTERM; then\n"
"it finishes the requests that have begun.\n"
"  --port N         0, the default: a free one\n"
"  --connections N  at a time; more wait (10000)\n"
"  --body N         bytes of a request's body (1048576)\n"
"  --request S      seconds for a request to arrive (30)\n"
"  --idle S         seconds between requests (60)\n"
"  --drain S        seconds for requests after a signal (10)\n"
"%s  --help, --version\n";

static const char *cert, *key;

static const struct option options[] = {
	{ "port", required_argument, NULL, 'p' },
	{ "connections", required_argument, NULL, 'c' },
	{ "body", required_argument, NULL, 'b' },
	{ "request", required_argument, NULL, 'r' },
	{ "idle", required_argument, NULL, 'i' },
	{ "drain", required_argument, NULL, 'd' },
	{ "cert", required_argument, NULL, 'C' },
	{ "key", required_argument, NULL, 'K' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'v' },
	{ NULL, 0, NULL, 0 },
};

static void __attribute__((noreturn)) die(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s: %s\n", stream_program, what, why);
	exit(1);
}

static void __attribute__((noreturn)) print_usage(FILE *to, int status)
{
	fprintf(to, usage, stream_program, stream_usage);
	exit(status);
}

static uint64_t number(const char *name, uint64_t min, uint64_t max)
{
	char *end;
	unsigned long long n;

	errno = 0;
	n = strtoull(optarg, &end, 10);
	if (*optarg < '0' || *optarg > '9' || *end || errno || n < min ||
	    n > max) {
		fprintf(stderr, "%s: --%s: '%s' is not from %llu to %llu\n",
			stream_program, name, optarg, (unsigned long long)min,
			(unsigned long long)max);
		exit(2);
	}
	return n;
}

static void set_option(int opt)
{
	switch (opt) {
	case 'p':
		config.port = (uint16_t)number("port", 0, 65535);
		break;
	case 'c':
		config.max_connections =
			(uint32_t)number("connections", 1, 1000000);
		break;
	case 'b':
		config.max_body = number("body", 0, UINT64_MAX / 2);
		break;
	case 'r':
		config.request_s = number("request", 1, 86400);
		break;
	case 'i':
		config.idle_s = number("idle", 1, 86400);
		break;
	case 'd':
		config.drain_s = number("drain", 0, 86400);
		break;
	case 'C':
		cert = optarg;
		break;
	case 'K':
		key = optarg;
		break;
	case 'h':
		print_usage(stdout, 0);
	case 'v':
		printf("%s of parklot %s\n", stream_program, PARKLOT_VERSION);
		exit(0);
	default:
		print_usage(stderr, 2);
	}
}

static void parse(int argc, char **argv)
{
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1)
		set_option(opt);
	if (optind + 1 != argc)
		print_usage(stderr, 2);
	config.root = argv[optind];
	config.root_fd = open(config.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (config.root_fd < 0)
		die(config.root, strerror(errno));
}

/*
 * glibc gives free memory above 128 KiB back to the kernel at once, which the
 * next requests would have to ask for again, a page at a time.  So it is told
 * to keep what all connections have when each is amid a request.
 */
static void keep_memory(void)
{
#ifdef M_TRIM_THRESHOLD
	uint64_t all = config.max_connections * sizeof(struct exchange);

	mallopt(M_TRIM_THRESHOLD, all < INT_MAX ? (int)all : INT_MAX);
#endif
}

int main(int argc, char **argv)
{
	sigset_t set;
	uint32_t nr;
	int ret, sig;

	parse(argc, argv);
	keep_memory();
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (stream_init(cert, key))
		return 1;
	http_parser_set_max_header_size(MAX_HEAD);

	ret = server_start();
	if (ret)
		die("listen", strerror(-ret));
	printf("listening on 127.0.0.1:%u\n", config.port);
	fflush(stdout);
	sigwait(&set, &sig);
	nr = server_drain();
	if (nr)
		fprintf(stderr, "%s: %u connections were cut off\n",
			stream_program, nr);
	ret = pl_runtime_stop();
	stream_exit();
	return ret || nr ? 1 : 0;
}
