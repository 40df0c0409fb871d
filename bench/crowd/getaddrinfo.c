// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A crowd that asks for the address of a name; the name server, a process of
 * the case, takes 20 ms for each
 */
#include <netdb.h>
#include <nss.h>
#include <poll.h>
#include <resolv.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "crowd.h"

#define ANSWER_NS	(20 * NSEC_PER_MSEC)
#define NR_QUESTIONS	4096		/* on their way at a time, at most */

struct question {
	uint64_t due_ns;
	struct sockaddr_in from;
	ssize_t len;
	unsigned char message[256];
};

static struct sockaddr_in server_addr;
static struct question questions[NR_QUESTIONS];
static uint64_t nr_asked, nr_answered;

static void take_question(int fd)
{
	struct question *q = &questions[nr_asked % NR_QUESTIONS];
	socklen_t len = sizeof(q->from);

	if (nr_asked - nr_answered == NR_QUESTIONS)
		die("more than %d questions at a time", NR_QUESTIONS);
	q->len = recvfrom(fd, q->message, sizeof(q->message), 0,
			  (struct sockaddr *)&q->from, &len);
	q->due_ns = now_ns() + ANSWER_NS;
	if (q->len >= NS_HFIXEDSZ)
		nr_asked++;
}

/* That there is no such name: the question, with two fields changed. */
static void answer_question(int fd)
{
	struct question *q = &questions[nr_answered++ % NR_QUESTIONS];

	q->message[2] |= 0x80;
	q->message[3] = ns_r_nxdomain;
	sendto(fd, q->message, (size_t)q->len, 0, (struct sockaddr *)&q->from,
	       sizeof(q->from));
}

__attribute__((noreturn))
static void serve(int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	uint64_t now, due;
	int ms;

	for (;;) {
		now = now_ns();
		ms = -1;
		if (nr_answered < nr_asked) {
			due = questions[nr_answered % NR_QUESTIONS].due_ns;
			ms = due > now ?
			     (int)((due - now) / NSEC_PER_MSEC) + 1 : 0;
		}
		if (poll(&pollfd, 1, ms) > 0)
			take_question(fd);
		else if (nr_answered < nr_asked)
			answer_question(fd);
	}
}

/* Ends with us. */
static void start_server(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(server_addr);
	const pid_t parent = getpid();

	server_addr.sin_family = AF_INET;
	server_addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&server_addr, len) ||
	    getsockname(fd, (struct sockaddr *)&server_addr, &len))
		die("name server: %s", strerror(errno));
	switch (fork()) {
	case -1:
		die("fork: %s", strerror(errno));
	case 0:
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			serve(fd);
		_exit(0);
	}
	close(fd);
}

/* A task is in one thread until it waits for another, so _res is that one's. */
static void ask_name(uint32_t member)
{
	const struct addrinfo hints = { .ai_family = AF_INET };
	struct addrinfo *found;
	int err;

	(void)member;
	if (res_init())
		die("res_init: %s", strerror(errno));
	_res.retrans = 30;
	_res.nscount = 1;
	_res.nsaddr_list[0] = server_addr;
	err = getaddrinfo("parklot.invalid.", NULL, &hints, &found);
	if (err != EAI_NONAME)
		die("getaddrinfo: %s", err ? gai_strerror(err) : "a name");
}

static void among_questions(void)
{
	if (__nss_configure_lookup("hosts", "dns"))
		die("the name server cannot be chosen");
	start_server();
	crowd_run(ask_name);
}

int main(int argc, char **argv)
{
	static const struct bench_case cases[] = {
		{ "getaddrinfo:100", among_questions },
		{ NULL, NULL },
	};

	return crowd_main(argc, argv, cases);
}
