// SPDX-License-Identifier: GPL-2.0-only
/*
 * pl_getaddrinfo(), getaddrinfo() and popen(), from 200 tasks
 *
 * Names are asked of /etc/hosts and of a name server of the test, an ordinary
 * thread here, that knows some of them and answers after a while.  A quarter of
 * the tasks asks by pl_getaddrinfo(), and does not always wait long.  A program
 * that popen() starts says its number, and what it was started with: the
 * signals that are blocked and ignored, and its descriptors, are those of one
 * that an ordinary thread has started before there were tasks.  Its status
 * arrives, and none is left to be waited for.  Half of the tasks read its
 * output by pl_read(), which a cancel ends, the others by fread().
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <nss.h>
#include <poll.h>
#include <pthread.h>
#include <resolv.h>
#include <signal.h>
#include <sys/socket.h>

#include "app.h"

#define ANSWER_MS	5
#define NO_NAME		"no"		/* begins the names that are not known */

static struct sockaddr_in server_addr;
static int server_fd = -1;
static pthread_t server;
static atomic_bool is_server_over;
static atomic_long nr_names, nr_given_up, nr_children;

/* ---- the name server ---- */

/* 10.1.x.y for "x-y.test", in the first question. */
static void put_answer(unsigned char *message, int *len, const char *name)
{
	static const unsigned char rest[] = { 0xc0, 12, 0, ns_t_a, 0, ns_c_in,
					      0, 0, 0, 60, 0, 4, 10, 1 };
	unsigned int x = 0, y = 0;

	sscanf(name, "%u-%u", &x, &y);
	memcpy(message + *len, rest, sizeof(rest));
	message[*len + (int)sizeof(rest)] = (unsigned char)x;
	message[*len + (int)sizeof(rest) + 1] = (unsigned char)y;
	*len += (int)sizeof(rest) + 2;
	message[7] = 1;			/* answers */
}

/* The question that it was, with its answer if there is one. */
static int answer(unsigned char *message, int len)
{
	char name[NS_MAXDNAME];
	int n = ns_name_uncompress(message, message + len,
				   message + NS_HFIXEDSZ, name, sizeof(name));

	if (n < 0)
		app_fail("not a question");
	len = NS_HFIXEDSZ + n + NS_QFIXEDSZ;
	message[2] = 0x84 | (message[2] & 1);
	message[3] = 0x80;
	memset(message + 6, 0, 6);	/* numbers of what follows */
	if (!strncmp(name, NO_NAME, strlen(NO_NAME)))
		message[3] |= ns_r_nxdomain;
	else if (message[NS_HFIXEDSZ + n + 1] == ns_t_a)
		put_answer(message, &len, name);
	return len;
}

static void *serve(void *unused)
{
	unsigned char message[1024];
	struct sockaddr_in from;
	socklen_t size;
	ssize_t len;

	(void)unused;
	while (!is_server_over) {
		struct pollfd pollfd = { .fd = server_fd, .events = POLLIN };

		if (poll(&pollfd, 1, 50) <= 0)
			continue;
		/* All that have come in meanwhile are answered together. */
		usleep(ANSWER_MS * 1000);
		for (;;) {
			size = sizeof(from);
			len = recvfrom(server_fd, message,
				       sizeof(message) - 64, MSG_DONTWAIT,
				       (struct sockaddr *)&from, &size);
			if (len < NS_HFIXEDSZ + NS_QFIXEDSZ)
				break;
			len = answer(message, (int)len);
			sendto(server_fd, message, (size_t)len, 0,
			       (struct sockaddr *)&from, size);
		}
	}
	return NULL;
}

/* ---- what tasks do ---- */

/* The shell itself looks; to list a directory it needs descriptor 3. */
#define LOOK \
	"while read -r key value; do case $key in " \
	"SigBlk: | SigIgn:) echo $value; esac; done </proc/self/status; " \
	"cd /proc/self/fd && echo *; "

static char look[256];			/* what one of the main thread says */

static const struct addrinfo hints = {
	.ai_family = AF_INET,
	.ai_socktype = SOCK_STREAM,
};

/* A name, and what ought to be found. */
struct question {
	char name[32];
	int want_err;
	char want[INET_ADDRSTRLEN];	/* "": nothing */
};

static void check_answer(const struct question *q, int err,
			 struct addrinfo *found)
{
	char text[INET_ADDRSTRLEN] = "";

	if (err != q->want_err)
		app_fail("%s: %s", q->name, err ? gai_strerror(err) : "found");
	if (!err)
		inet_ntop(AF_INET, &((struct sockaddr_in *)(void *)
				     found->ai_addr)->sin_addr,
			  text, sizeof(text));
	if (strcmp(text, q->want))
		app_fail("%s: %s, and ought to be %s", q->name, text, q->want);
	if (found)
		freeaddrinfo(found);
	nr_names++;
}

static struct question make_question(struct member *m)
{
	const uint32_t x = m->nr % 256, y = app_random(&m->seed, 256);
	struct question q = { .want_err = 0 };

	switch (app_random(&m->seed, 4)) {
	case 0:
		strcpy(q.name, "localhost");
		strcpy(q.want, "127.0.0.1");
		break;
	case 1:
		snprintf(q.name, sizeof(q.name), NO_NAME "%u-%u.test.", x, y);
		q.want_err = EAI_NONAME;
		break;
	default:
		snprintf(q.name, sizeof(q.name), "%u-%u.test.", x, y);
		snprintf(q.want, sizeof(q.want), "10.1.%u.%u", x, y);
	}
	return q;
}

/* In each worker: the resolver's state is the thread's. */
static void use_server(void *unused)
{
	(void)unused;
	if (res_init())
		app_fail("res_init: %s", strerror(errno));
	_res.retrans = 30;
	_res.nscount = 1;
	_res.nsaddr_list[0] = server_addr;
}

static void ask_name(void *arg)
{
	const struct question q = make_question(arg);
	struct addrinfo *found = NULL;
	int err = getaddrinfo(q.name, "80", &hints, &found);

	check_answer(&q, err, found);
}

/* Half of the deadlines pass now and then. */
static void ask_name_of_parklot(struct member *m)
{
	const struct question q = make_question(m);
	uint64_t deadline = PL_FOREVER;
	struct addrinfo *found;
	int ret, eai;

	if (app_random(&m->seed, 2))
		deadline = pl_now() + app_random(&m->seed, 2 * ANSWER_MS *
						 NSEC_PER_MSEC);
	ret = pl_getaddrinfo_until(q.name, "80", &hints, &found, &eai,
				   deadline);
	if (ret == -ETIMEDOUT || (ret == -ECANCELED && pl_cancelled())) {
		nr_given_up++;
		return;
	}
	if (ret != (eai ? -ENXIO : 0))
		app_fail("%s: %s", q.name, strerror(-ret));
	check_answer(&q, eai, found);
}

/* All that it says; -1: the task was cancelled. */
static int read_output(FILE *in, bool waits, char *text, size_t size)
{
	size_t len = 0;
	ssize_t n = 1;

	while (waits && n > 0 && len < size - 1) {
		n = pl_read(fileno(in), text + len, size - 1 - len);
		len += n > 0 ? (size_t)n : 0;
	}
	if (!waits)
		len = fread(text, 1, size - 1, in);
	text[len] = '\0';
	if (n < 0 && n != -ECANCELED)
		app_fail("pl_read: %s", strerror((int)-n));
	return n < 0 ? -1 : 0;
}

struct child {
	int status;
	FILE *in;
};

static void close_child(void *arg)
{
	struct child *c = arg;

	c->status = pclose(c->in);
}

static void run_child(struct member *m)
{
	const int number = (int)app_random(&m->seed, 100);
	const bool waits = m->nr % 4 < 2;
	char command[256], text[512], want[sizeof(look) + 16];
	struct child c;
	int err;

	snprintf(command, sizeof(command), LOOK "sleep 0.0%d; echo %d; exit %d",
		 (int)(m->nr % 5), number, number);
	/* Without "e" the C library's pclose() has others inherit it. */
	c.in = popen(command, "re");
	if (!c.in)
		app_fail("popen: %s", strerror(errno));
	snprintf(want, sizeof(want), "%s%d\n", look, number);
	err = read_output(c.in, waits, text, sizeof(text));
	pl_blocking(close_child, &c);
	if (!err && strcmp(text, want))
		app_fail("a child says '%s', and ought to say '%s'", text,
			 want);
	/* A child is ended by what is not read. */
	if (!err && (!WIFEXITED(c.status) || WEXITSTATUS(c.status) != number))
		app_fail("a child's status is %#x, and ought to be %d",
			 (unsigned int)c.status, number);
	nr_children++;
}

static void name_or_child(struct member *m)
{
	if (m->nr % 4 == 1)
		ask_name_of_parklot(m);
	else if (m->nr % 2)
		pl_blocking(ask_name, m);
	else
		ask_name(m);
	run_child(m);
}

/* ---- the rounds ---- */

static void look_first(void)
{
	FILE *in = popen(LOOK, "r");

	if (!in || read_output(in, false, look, sizeof(look)) || pclose(in))
		app_fail("popen: %s", strerror(errno));
	if (strncmp(look, "0000000000000000\n", 17))
		app_fail("signals are blocked: %s", look);
}

static void open_server(void)
{
	socklen_t len = sizeof(server_addr);

	server_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	server_addr = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	if (server_fd < 0 ||
	    bind(server_fd, (struct sockaddr *)&server_addr, len) ||
	    getsockname(server_fd, (struct sockaddr *)&server_addr, &len))
		app_fail("name server: %s", strerror(errno));
	if (__nss_configure_lookup("hosts", "files dns"))
		app_fail("the name server cannot be chosen");
}

static void begin(void)
{
	is_server_over = false;
	if (pthread_create(&server, NULL, serve, NULL))
		app_fail("name server: no thread");
	look_first();
	nr_names = nr_given_up = nr_children = 0;
}

/* The server answers also calls that were given up. */
static void end(void)
{
	app_wait(app_has_no_tasks, "the end of all calls of the resolver");
	is_server_over = true;
	pthread_join(server, NULL);
	printf("names: %ld names, %ld given up, %ld children\n",
	       (long)nr_names, (long)nr_given_up, (long)nr_children);
}

static uint32_t flags(uint32_t nr)
{
	return nr % 2 ? 0 : PL_SPAWN_BLOCKING;
}

int main(int argc, char **argv)
{
	static const struct app names = {
		.name = "names", .cancel_ns = 5 * NSEC_PER_MSEC,
		.worker_start = use_server, .begin = begin,
		.work = name_or_child, .flags = flags, .end = end,
	};

	open_server();
	return app_main(argc, argv, &names);
}
