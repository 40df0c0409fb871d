/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * peek: the memory of another process, and the table of stat_export.h in it
 *
 * Whatever is in the way ends the program, with a word that says why.
 */
#ifndef TOOLS_PEEK_H
#define TOOLS_PEEK_H

#include "debug/stat_export.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#define NR_ENTRIES_MAX	256
#define NR_WORKERS_MAX	65536

static pid_t pid;
static struct pl__stat_export_table table;
static struct pl__stat_export entries[NR_ENTRIES_MAX];

/* What has to happen before the last words can be read, such as of a screen. */
static void (*before_last_words)(void);

static void __attribute__((noreturn, format(printf, 1, 2)))
die(const char *format, ...)
{
	va_list args;

	if (before_last_words)
		before_last_words();
	fputs("plstat: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

/* Of what is wrong in the command, not in the process. */
static void __attribute__((noreturn))
die_of_argument(const char *argument, const char *what)
{
	fprintf(stderr, "plstat: %s: %s\n", argument, what);
	exit(2);
}

static void __attribute__((noreturn)) die_of_access(int error)
{
	if (error == ESRCH)
		die("process %d has ended", pid);
	if (error == EPERM || error == EACCES)
		die("process %d may not be looked at: it is not yours, or sysctl kernel.yama.ptrace_scope restricts it",
		    pid);
	die("process %d: %s", pid, strerror(error));
}

/* By the clock of its notes, and of the start of its runtime. */
static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* False: nothing is mapped there. */
static bool peek(void *to, uint64_t from, size_t size)
{
	struct iovec here = { to, size };
	struct iovec there = { (void *)(uintptr_t)from, size };
	ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);

	if (n < 0 && errno != EFAULT)
		die_of_access(errno);
	return n == (ssize_t)size;
}

static bool is_table(uint64_t at)
{
	if (!peek(&table, at, sizeof(table)) ||
	    strncmp(table.magic, "parklot", sizeof(table.magic)))
		return false;
	if (table.version != PL__EXPORT_VERSION || table.nr > NR_ENTRIES_MAX)
		die("process %d has parklot %.16s, which this plstat does not know",
		    pid, table.library);
	return peek(entries, table.entries, table.nr * sizeof(*entries));
}

/* In notes of @size bytes at @at. */
static bool find_in_notes(uint64_t at, uint64_t size)
{
	uint64_t end = at + size;
	Elf64_Nhdr note;
	char owner[8];
	int64_t offset;

	while (at + sizeof(note) <= end && peek(&note, at, sizeof(note))) {
		at += sizeof(note);
		if (note.n_namesz == sizeof(owner) &&
		    note.n_descsz == sizeof(offset) &&
		    note.n_type == PL__EXPORT_NOTE &&
		    peek(owner, at, sizeof(owner)) &&
		    !memcmp(owner, "parklot", sizeof(owner)) &&
		    peek(&offset, at + sizeof(owner), sizeof(offset)))
			return is_table(at + sizeof(owner) + (uint64_t)offset);
		at += (note.n_namesz + 3ULL) / 4 * 4;
		at += (note.n_descsz + 3ULL) / 4 * 4;
	}
	return false;
}

/* In the file that is mapped from its beginning at @base. */
static bool find_in_file(uint64_t base)
{
	Elf64_Ehdr header;
	Elf64_Phdr ph[64];
	uint64_t bias = 0;
	bool has_bias = false;
	int i;

	if (!peek(&header, base, sizeof(header)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phnum > 64 ||
	    !peek(ph, base + header.e_phoff, header.e_phnum * sizeof(*ph)))
		return false;
	for (i = 0; i < header.e_phnum; i++) {
		if (ph[i].p_type == PT_LOAD && !has_bias) {
			bias = base - (ph[i].p_vaddr - ph[i].p_offset);
			has_bias = true;
		}
	}
	for (i = 0; i < header.e_phnum; i++)
		if (ph[i].p_type == PT_NOTE &&
		    find_in_notes(bias + ph[i].p_vaddr, ph[i].p_memsz))
			return true;
	return false;
}

static void find_table(void)
{
	char path[64], line[4096 + 128];
	uint64_t base, offset;
	bool is_found = false, is_mapped = false;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	if (!maps && errno == ENOENT)
		die("there is no process %d", pid);
	if (!maps)
		die_of_access(errno);
	while (!is_found && fgets(line, sizeof(line), maps)) {
		is_mapped = true;
		is_found = sscanf(line, "%" SCNx64 "-%*x r%*3s %" SCNx64, &base,
				  &offset) == 2 && !offset &&
			   find_in_file(base);
	}
	if (ferror(maps))
		die_of_access(errno);
	fclose(maps);
	if (!is_mapped)
		die("process %d has no memory: it has ended, or is the kernel's",
		    pid);
	if (!is_found)
		die("process %d does not use parklot", pid);
}

#endif /* TOOLS_PEEK_H */
