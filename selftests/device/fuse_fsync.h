/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A file with an fsync() that lasts until the test lets it through. It is the
 * only file of a file system that a thread serves by FUSE. mod.h is included
 * before this header.
 */
#ifndef SELFTESTS_FUSE_FSYNC_H
#define SELFTESTS_FUSE_FSYNC_H

#include <linux/fuse.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>

struct fuse_fsync {
	int			fd;
	int			dev;	/* source of the requests */
	char			path[32];
	pthread_t		server;
	atomic_ullong		held;	/* the fsync() that waits, or 0 */
};

static inline void fuse_fsync_answer(struct fuse_fsync *f, uint64_t unique,
				     int error, const void *body, size_t size)
{
	struct fuse_out_header head = {
		.len = sizeof(head) + size, .error = error, .unique = unique,
	};
	struct iovec iov[] = {
		{ .iov_base = &head, .iov_len = sizeof(head) },
		{ .iov_base = (void *)body, .iov_len = size },
	};

	/* The process may have cancelled its request. */
	if (writev(f->dev, iov, ARRAY_SIZE(iov)) < 0 && errno != ENOENT)
		abort();
}

static inline void fuse_fsync_do(struct fuse_fsync *f,
				 const struct fuse_in_header *in)
{
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.max_write = 4096,
	};
	struct fuse_attr_out attr = {
		.attr = { .ino = 1, .mode = S_IFREG | 0600, .nlink = 1 },
	};
	struct fuse_open_out open = {};

	switch (in->opcode) {
	case FUSE_INIT:
		fuse_fsync_answer(f, in->unique, 0, &init, sizeof(init));
		break;
	case FUSE_GETATTR:
		fuse_fsync_answer(f, in->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		fuse_fsync_answer(f, in->unique, 0, &open, sizeof(open));
		break;
	case FUSE_FSYNC:
		atomic_store(&f->held, in->unique);
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
		fuse_fsync_answer(f, in->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		fuse_fsync_answer(f, in->unique, -ENOSYS, NULL, 0);
	}
}

/* Serves until the file system is unmounted. */
static inline void *slow_file_serve(void *arg)
{
	union {
		struct fuse_in_header head;
		char all[FUSE_MIN_READ_BUFFER + 4096];
	} in;
	struct fuse_fsync *f = arg;

	for (;;) {
		if (read(f->dev, &in, sizeof(in)) > 0)
			fuse_fsync_do(f, &in.head);
		else if (errno == ENODEV)
			return NULL;
	}
}

static inline int fuse_fsync_mount(struct fuse_fsync *f)
{
	char options[96];
	int fd;

	strcpy(f->path, "/tmp/fuse_fsync.XXXXXX");
	mkdir("/tmp", 01777);
	fd = mkstemp(f->path);
	if (fd < 0)
		return -errno;
	close(fd);
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=%o,user_id=%u,group_id=%u", f->dev, S_IFREG,
		 getuid(), getgid());
	if (!mount("fuse_fsync", f->path, "fuse", MS_NOSUID | MS_NODEV,
		   options))
		return 0;
	fd = -errno;
	unlink(f->path);
	return fd;
}

/* Returns 0, or -errno: -ENOENT or -ENODEV where there is no FUSE. */
static inline int fuse_fsync_open(struct fuse_fsync *f)
{
	int err;

	memset(f, 0, sizeof(*f));
	f->dev = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (f->dev < 0)
		return -errno;
	err = fuse_fsync_mount(f);
	if (!err)
		err = -pthread_create(&f->server, NULL, slow_file_serve, f);
	if (err)
		return err;
	f->fd = open(f->path, O_RDWR | O_CLOEXEC);
	return f->fd < 0 ? -errno : 0;
}

/* Waits for the one fsync() and lets it through. */
static inline void fuse_fsync_let_through(struct fuse_fsync *f)
{
	UNTIL(atomic_load(&f->held));
	fuse_fsync_answer(f, atomic_exchange(&f->held, 0), 0, NULL, 0);
}

static inline void fuse_fsync_close(struct fuse_fsync *f)
{
	close(f->fd);
	umount2(f->path, MNT_DETACH);
	pthread_join(f->server, NULL);
	close(f->dev);
	unlink(f->path);
}

#endif /* SELFTESTS_FUSE_FSYNC_H */
