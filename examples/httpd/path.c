// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The file that a request names
 *
 * Two things keep a request below the root: no ".." survives normalisation, and
 * the kernel refuses to follow a link that leads out of it.
 */
#include "httpd.h"

#include <ctype.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int hex(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : (c | 32) - 'a' + 10;
}

/* %XX becomes what it stands for, which is never a NUL. */
static int decode(char *to, const char *from)
{
	for (; *from; from++) {
		if (*from != '%') {
			*to++ = *from;
			continue;
		}
		if (!isxdigit((unsigned char)from[1]) ||
		    !isxdigit((unsigned char)from[2]))
			return 400;
		*to = (char)(hex(from[1]) << 4 | hex(from[2]));
		if (!*to++)
			return 400;
		from += 2;
	}
	*to = '\0';
	return 0;
}

/* Empty names, "." and ".." go; a "/" at the end stays. */
static int resolve(char *path)
{
	char *to = path + 1;
	const char *from = path;
	size_t n;

	while (*from) {
		from += strspn(from, "/");
		n = strcspn(from, "/");
		if (n == 2 && !memcmp(from, "..", 2)) {
			if (to == path + 1)
				return 400;
			for (to--; to[-1] != '/'; to--)
				;
		} else if (n && !(n == 1 && *from == '.')) {
			memmove(to, from, n);
			to += n;
			if (from[n])
				*to++ = '/';
		}
		from += n;
	}
	*to = '\0';
	return 0;
}

int path_normalise(char *target)
{
	struct http_parser_url url;
	char *path = target;
	size_t len = 0;

	http_parser_url_init(&url);
	if (*target != '/') {
		if (http_parser_parse_url(target, strlen(target), 0, &url) ||
		    !(url.field_set & 1 << UF_HOST))
			return 400;
		if (url.field_set & 1 << UF_PATH) {
			path += url.field_data[UF_PATH].off;
			len = url.field_data[UF_PATH].len;
		} else {
			path = memcpy(target, "/", 2);
			len = 1;
		}
	} else {
		len = strcspn(target, "?#");
	}
	path[len] = '\0';
	return decode(target, path) ?: resolve(target);
}

/*
 * A descriptor, or -errno.  Nothing here waits for a pipe's other end; should
 * it be for the disk, another worker runs the tasks that are ready.
 */
int path_open(const char *path)
{
	struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(SYS_openat2, config.root_fd,
			      path[1] ? path + 1 : ".", &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

const char *path_type(const char *path)
{
	static const char *const types[][2] = {
		{ ".html", "text/html" }, { ".css", "text/css" },
		{ ".txt", "text/plain" }, { ".js", "application/javascript" },
		{ ".json", "application/json" }, { ".svg", "image/svg+xml" },
		{ ".png", "image/png" }, { ".jpg", "image/jpeg" },
	};
	const char *dot = strrchr(path, '.');
	size_t i;

	for (i = 0; dot && i < sizeof(types) / sizeof(*types); i++)
		if (!strcmp(dot, types[i][0]))
			return types[i][1];
	return "application/octet-stream";
}
