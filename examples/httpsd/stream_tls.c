// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * httpsd: what httpd's connections read and write, by TLS
 *
 * OpenSSL keeps errors in a queue of the thread.  A task may go on in another
 * thread after each call that waits.  So OpenSSL never waits here: it reads and
 * writes memory, and no wait stands between a call and the look at its error.
 * What is in memory is received and sent in between.
 *
 *	cc -D_GNU_SOURCE -I../httpd -o httpsd *.c \
 *		$(ls ../httpd/[!s]*.c) ../httpd/server.c \
 *		$(pkg-config --cflags --libs parklot openssl) -lhttp_parser
 */
#include "stream.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <sys/socket.h>

#define LAST_NS	1000000000ULL	/* to send the last bytes */

const char stream_program[] = "httpsd";
const char stream_usage[] =
"  --cert FILE      certificates, in PEM: the server's first\n"
"  --key FILE       its key\n";
const uint32_t stream_stack = PL_STACK_NORMAL;
const bool stream_sends_files;

static SSL_CTX *context;

static int tls_refused(const char *file)
{
	fprintf(stderr, "httpsd: %s: %s\n", file,
		ERR_reason_error_string(ERR_peek_last_error()) ?:
		"not as it should be");
	return -EINVAL;
}

int stream_init(const char *cert, const char *key)
{
	if (!cert || !key) {
		fprintf(stderr, "httpsd: --cert and --key are needed\n");
		return -EINVAL;
	}
	context = SSL_CTX_new(TLS_server_method());
	if (!context)
		return -ENOMEM;
	SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
	SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
	if (SSL_CTX_use_certificate_chain_file(context, cert) != 1)
		return tls_refused(cert);
	if (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
		return tls_refused(key);
	return 0;
}

void stream_exit(void)
{
	SSL_CTX_free(context);
}

int stream_open(struct stream *s)
{
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());

	s->tls = in && out ? SSL_new(context) : NULL;
	if (!s->tls) {
		BIO_free(in);
		BIO_free(out);
		return -ENOMEM;
	}
	SSL_set_bio(s->tls, in, out);
	SSL_set_accept_state(s->tls);
	return 0;
}

/* Sends what OpenSSL has written. */
static int tls_flush(struct stream *s, uint64_t deadline_ns)
{
	BIO *out = SSL_get_wbio(s->tls);
	char *at;
	long n = BIO_get_mem_data(out, &at);
	int ret = n > 0 ? stream_send_plain(s, at, (size_t)n, 0,
					    deadline_ns) : 0;

	BIO_reset(out);
	return ret;
}

/* Receives what OpenSSL wants to read: as pl_recv_until(). */
static ssize_t tls_fill(struct stream *s, uint64_t deadline_ns)
{
	char buf[2048];
	ssize_t n = pl_recv_until(s->fd, buf, sizeof(buf), 0, deadline_ns);

	if (n > 0 && BIO_write(SSL_get_rbio(s->tls), buf, (int)n) != n)
		return -ENOMEM;
	return n;
}

/* The first one also shakes hands. */
ssize_t stream_recv(struct stream *s, void *buf, size_t size,
		    uint64_t deadline_ns)
{
	ssize_t ret;
	int n, err;

	do {
		ERR_clear_error();
		n = SSL_read(s->tls, buf, (int)size);
		err = n > 0 ? SSL_ERROR_NONE : SSL_get_error(s->tls, n);
		ret = tls_flush(s, deadline_ns);
		if (n > 0)
			return ret ? ret : n;
		if (err != SSL_ERROR_WANT_READ) {
			s->has_failed = err != SSL_ERROR_ZERO_RETURN;
			return s->has_failed ? -EPROTO : 0;
		}
		if (!ret)
			ret = tls_fill(s, deadline_ns);
	} while (ret > 0);
	return ret;
}

int stream_send(struct stream *s, const void *buf, size_t n, bool has_more,
		uint64_t deadline_ns)
{
	(void)has_more;
	ERR_clear_error();
	if (SSL_write(s->tls, buf, (int)n) != (int)n) {
		s->has_failed = true;
		return -EPROTO;
	}
	return tls_flush(s, deadline_ns);
}

ssize_t stream_sendfile(struct stream *s, int in, off_t *offset, size_t n,
			uint64_t deadline_ns)
{
	(void)s, (void)in, (void)offset, (void)n, (void)deadline_ns;
	return -EOPNOTSUPP;
}

/* Tells the peer that this is the end, and no one else's cut. */
void stream_shutdown(struct stream *s)
{
	if (!s->has_failed && SSL_is_init_finished(s->tls)) {
		ERR_clear_error();
		SSL_shutdown(s->tls);
		tls_flush(s, pl_now() + LAST_NS);
	}
	shutdown(s->fd, SHUT_WR);
}

void stream_close(struct stream *s)
{
	if (s->tls && !(SSL_get_shutdown(s->tls) & SSL_SENT_SHUTDOWN))
		stream_shutdown(s);
	SSL_free(s->tls);
	pl_close(s->fd);
}
