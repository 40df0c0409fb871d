// SPDX-License-Identifier: GPL-2.0-only
/*
 * libcurl from 200 tasks, with examples/httpd
 *
 * Each task has a handle of its own, keeps its connection for some requests,
 * and gets files of several sizes; names that are not there; a port at which
 * nothing listens; and one that accepts and never answers, which a timeout has
 * to end, and not before its time.  A third of the tasks is spawned as one that
 * blocks, and calls curl_easy_perform(); a third calls it in pl_blocking(); the
 * callback for progress gives up if the task is cancelled.  The others have the
 * multi interface say what to wait for, and do so by pl_poll_many().
 *
 * Its argument is the server's port.  The files are "0" to "4", of 10 to the
 * power of 2 to 6 bytes, the alphabet again and again.
 */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <poll.h>
#include <sys/socket.h>

#include "app.h"

#define PERFORM_MS	(long)(app_limit_ns() / NSEC_PER_MSEC)
#define MOST_REQUESTS	20	/* of a connection, and of a handle */
#define MOST_FDS	16	/* of a handle at a time */

enum kind { SPAWNED_BLOCKING, IN_BLOCKING, WAITS, NR_KINDS };

/* What a member that waits by itself has besides its handle. */
struct waits {
	CURLM *multi;
	uint64_t due_ns;		/* when libcurl has to be called */
	unsigned int nr_fds;
	struct pollfd fds[MOST_FDS];
};

/* Of a request, for the callbacks. */
struct answer {
	CURL *curl;
	CURLcode code;
	size_t len;
	bool is_wrong;
};

/* What a file has, from any letter on. */
static char letters[CURL_MAX_WRITE_SIZE + 26];
static const size_t sizes[] = { 100, 1000, 10000, 100000, 1000000 };

static CURL *handles[NR_MEMBERS];
static struct waits waits[NR_MEMBERS];
static int nr_requests[NR_MEMBERS];	/* of the handle */
static int silent_fd = -1;		/* listens, and accepts nothing */
static int refusing_fd = -1;		/* has a port, and does not listen */
static char silent_url[64], refusing_url[64];
static atomic_long nr_files, nr_timeouts, nr_bytes;

static size_t take(char *data, size_t size, size_t nr, void *arg)
{
	const size_t n = size * nr;
	struct answer *a = arg;

	a->is_wrong |= n > CURL_MAX_WRITE_SIZE ||
		       memcmp(data, letters + a->len % 26, n);
	a->len += n;
	return n;
}

/* Not 0: end the transfer. */
static int progress(void *unused, curl_off_t dltotal, curl_off_t dlnow,
		    curl_off_t ultotal, curl_off_t ulnow)
{
	(void)unused, (void)dltotal, (void)dlnow, (void)ultotal, (void)ulnow;
	return pl_cancelled();
}

static void perform(void *arg)
{
	struct answer *a = arg;

	a->code = curl_easy_perform(a->curl);
}

/* ---- the multi interface ---- */

/* Sets or removes what libcurl wants to know of @fd. */
static int note_socket(CURL *curl, curl_socket_t fd, int what, void *arg,
		       void *unused)
{
	struct waits *w = arg;
	unsigned int i;

	(void)curl, (void)unused;
	for (i = 0; i < w->nr_fds && w->fds[i].fd != fd; i++)
		;
	if (what == CURL_POLL_REMOVE) {
		if (i < w->nr_fds)
			w->fds[i] = w->fds[--w->nr_fds];
		return 0;
	}
	if (i == MOST_FDS)
		app_fail("more than %d descriptors", MOST_FDS);
	if (i == w->nr_fds)
		w->nr_fds++;
	w->fds[i].fd = fd;
	w->fds[i].events = (short)((what & CURL_POLL_IN ? POLLIN : 0) |
				   (what & CURL_POLL_OUT ? POLLOUT : 0));
	return 0;
}

static int note_timer(CURLM *multi, long ms, void *arg)
{
	struct waits *w = arg;

	(void)multi;
	w->due_ns = ms < 0 ? PL_FOREVER :
		    pl_now() + (uint64_t)ms * NSEC_PER_MSEC;
	return 0;
}

/* libcurl changes the list as it is told of each. */
static void tell_events(struct waits *w, int *nr_running)
{
	struct pollfd fds[MOST_FDS];
	unsigned int nr = w->nr_fds, i;
	int what;

	memcpy(fds, w->fds, sizeof(fds));
	for (i = 0; i < nr; i++) {
		what = (fds[i].revents & POLLIN ? CURL_CSELECT_IN : 0) |
		       (fds[i].revents & POLLOUT ? CURL_CSELECT_OUT : 0) |
		       (fds[i].revents & (POLLERR | POLLHUP) ?
			CURL_CSELECT_ERR : 0);
		if (what)
			curl_multi_socket_action(w->multi, fds[i].fd, what,
						 nr_running);
	}
}

static CURLcode perform_waiting(struct waits *w, CURL *curl)
{
	CURLcode code = CURLE_ABORTED_BY_CALLBACK;
	int nr_running = 1, nr = 0;
	CURLMsg *message;

	curl_multi_add_handle(w->multi, curl);
	while (nr_running && nr != -ECANCELED) {
		nr = pl_poll_many(w->fds, w->nr_fds, w->due_ns);
		if (nr > 0)
			tell_events(w, &nr_running);
		else if (nr == -ETIMEDOUT)
			curl_multi_socket_action(w->multi, CURL_SOCKET_TIMEOUT,
						 0, &nr_running);
		else if (nr != -ECANCELED)
			app_fail("pl_poll_many: %s", strerror(-nr));
	}
	message = curl_multi_info_read(w->multi, &nr);
	if (message)
		code = message->data.result;
	else if (!nr_running)
		app_fail("a request ended without a message");
	curl_multi_remove_handle(w->multi, curl);
	return code;
}

static void open_multi(struct waits *w)
{
	w->multi = curl_multi_init();
	if (!w->multi)
		app_fail("curl_multi_init");
	w->due_ns = PL_FOREVER;
	w->nr_fds = 0;
	curl_multi_setopt(w->multi, CURLMOPT_SOCKETFUNCTION, note_socket);
	curl_multi_setopt(w->multi, CURLMOPT_SOCKETDATA, w);
	curl_multi_setopt(w->multi, CURLMOPT_TIMERFUNCTION, note_timer);
	curl_multi_setopt(w->multi, CURLMOPT_TIMERDATA, w);
}

/* ---- a request ---- */

static struct answer get(struct member *m, const char *url, long timeout_ms)
{
	struct answer a = { .curl = handles[m->nr] };

	curl_easy_setopt(a.curl, CURLOPT_URL, url);
	curl_easy_setopt(a.curl, CURLOPT_TIMEOUT_MS, timeout_ms);
	curl_easy_setopt(a.curl, CURLOPT_WRITEDATA, &a);
	switch ((enum kind)(m->nr % NR_KINDS)) {
	case SPAWNED_BLOCKING:
		perform(&a);
		break;
	case IN_BLOCKING:
		pl_blocking(perform, &a);
		break;
	default:
		a.code = perform_waiting(&waits[m->nr], a.curl);
	}
	if (a.code == CURLE_ABORTED_BY_CALLBACK && !pl_cancelled())
		app_fail("%s: given up, by no cancel", url);
	return a;
}

static bool is_given_up(const struct answer *a)
{
	return a->code == CURLE_ABORTED_BY_CALLBACK;
}

static void must_be(const char *url, CURLcode code, CURLcode want)
{
	if (code != want)
		app_fail("%s: %s, and ought to be: %s", url,
			 curl_easy_strerror(code), curl_easy_strerror(want));
}

static void get_file(struct member *m)
{
	const unsigned int which = app_random(&m->seed, 5);
	struct answer a;
	char url[128];
	long status = 0;

	/* For a name libcurl has a thread that resolves it. */
	snprintf(url, sizeof(url), "http://%s:%s/%u",
		 app_random(&m->seed, 2) ? "localhost" : "127.0.0.1",
		 app_argument, which);
	a = get(m, url, PERFORM_MS);
	if (is_given_up(&a))
		return;
	must_be(url, a.code, CURLE_OK);
	curl_easy_getinfo(a.curl, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200 || a.len != sizes[which] || a.is_wrong)
		app_fail("%s: status %ld, %zu bytes%s", url, status, a.len,
			 a.is_wrong ? ", not the right ones" : "");
	nr_files++;
	nr_bytes += (long)a.len;
}

static void get_missing(struct member *m)
{
	struct answer a;
	char url[128];
	long status = 0;

	snprintf(url, sizeof(url), "http://127.0.0.1:%s/none", app_argument);
	a = get(m, url, PERFORM_MS);
	if (is_given_up(&a))
		return;
	must_be(url, a.code, CURLE_OK);
	curl_easy_getinfo(a.curl, CURLINFO_RESPONSE_CODE, &status);
	if (status != 404)
		app_fail("%s: status %ld", url, status);
}

static void get_silence(struct member *m)
{
	const long timeout_ms = 1 + (long)app_random(&m->seed, 100);
	const uint64_t start = pl_now();
	struct answer a = get(m, silent_url, timeout_ms);

	if (is_given_up(&a))
		return;
	must_be(silent_url, a.code, CURLE_OPERATION_TIMEDOUT);
	if (pl_now() - start < (uint64_t)(timeout_ms - 1) * NSEC_PER_MSEC)
		app_fail("timeout of %ld ms: after %llu ns", timeout_ms,
			 (unsigned long long)(pl_now() - start));
	nr_timeouts++;
}

static void get_refusal(struct member *m)
{
	struct answer a = get(m, refusing_url, PERFORM_MS);

	if (!is_given_up(&a))
		must_be(refusing_url, a.code, CURLE_COULDNT_CONNECT);
}

static void close_handle(struct member *m)
{
	curl_multi_cleanup(waits[m->nr].multi);
	waits[m->nr].multi = NULL;
	curl_easy_cleanup(handles[m->nr]);
	handles[m->nr] = NULL;
	nr_requests[m->nr] = 0;
}

static void open_handle(struct member *m)
{
	CURL *curl = curl_easy_init();

	if (!curl)
		app_fail("curl_easy_init");
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, progress);
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	handles[m->nr] = curl;
	if (m->nr % NR_KINDS == WAITS)
		open_multi(&waits[m->nr]);
}

static void get_once(struct member *m)
{
	if (!handles[m->nr])
		open_handle(m);
	switch (app_random(&m->seed, 16)) {
	case 0:
		get_silence(m);
		break;
	case 1:
		get_refusal(m);
		break;
	case 2:
		get_missing(m);
		break;
	default:
		get_file(m);
	}
	if (++nr_requests[m->nr] == MOST_REQUESTS || pl_cancelled())
		close_handle(m);
}

/* ---- the rounds ---- */

/* A socket with a port of its own; @url gets it. */
static int bind_port(char *url, size_t size)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(addr);

	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, len) ||
	    getsockname(fd, (struct sockaddr *)&addr, &len))
		app_fail("socket: %s", strerror(errno));
	snprintf(url, size, "http://127.0.0.1:%u/", ntohs(addr.sin_port));
	return fd;
}

static void begin(void)
{
	size_t i;

	if (!app_argument)
		app_fail("the argument is missing: a port");
	for (i = 0; i < sizeof(letters); i++)
		letters[i] = (char)('a' + i % 26);
	silent_fd = bind_port(silent_url, sizeof(silent_url));
	refusing_fd = bind_port(refusing_url, sizeof(refusing_url));
	if (listen(silent_fd, SOMAXCONN))
		app_fail("listen: %s", strerror(errno));
	nr_files = nr_timeouts = nr_bytes = 0;
}

static void end(void)
{
	int i;

	for (i = 0; i < NR_MEMBERS; i++)
		if (handles[i])
			close_handle(&app_members[i]);
	close(silent_fd);
	close(refusing_fd);
	printf("curl: %ld files, %ld KiB, %ld timeouts\n", (long)nr_files,
	       (long)nr_bytes / 1024, (long)nr_timeouts);
}

static uint32_t flags(uint32_t nr)
{
	return nr % NR_KINDS == SPAWNED_BLOCKING ? PL_SPAWN_BLOCKING : 0;
}

int main(int argc, char **argv)
{
	static const struct app curl = {
		.name = "curl", .cancel_ns = 5 * NSEC_PER_MSEC,
		.begin = begin, .work = get_once, .flags = flags, .end = end,
	};

	/* Before there are threads. */
	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	return app_main(argc, argv, &curl);
}
