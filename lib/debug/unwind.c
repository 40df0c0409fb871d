/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "debug/unwind.h"
#include "base/sys.h"

#define DEEP		(16 << 10)	/* bytes of a stack that are read */
#define NR_WORDS	64		/* words that are read at a time */

/* The section of what is marked __pl_entry, by the linker. */
extern const char entry_start[] __asm__("__start_pl_entry")
	__attribute__((visibility("hidden")));
extern const char entry_stop[] __asm__("__stop_pl_entry")
	__attribute__((visibility("hidden")));

static bool is_in_entry(uintptr_t pc)
{
	return pc > (uintptr_t)entry_start && pc <= (uintptr_t)entry_stop;
}

static void unwind_add(struct pl__unwind *tr, uintptr_t pc)
{
	if (tr->nr < PL__UNWIND_MAX)
		tr->pc[tr->nr++] = pc;
}

/*
 * Each frame has the address of the next one and, above it, a return address.
 * True: they lead down to the task's own function.  The library has frames of
 * its own where the program has none, and that of the outermost is no bottom.
 */
static bool follow(struct pl__unwind *tr, const struct pl__ctx_left *left,
		   uintptr_t high)
{
	uintptr_t frame[2], at = left->fp, low = left->sp;

	while (at >= low && at < high && !(at % sizeof(frame[0]))) {
		if (!pl__read_own_mem(frame, (void *)at, sizeof(frame)))
			return false;
		frame[1] = pl__ctx_return(frame[1]);
		if (!pl__symbol_is_return(frame[1]))
			return false;
		unwind_add(tr, frame[1]);
		if (is_in_entry(frame[1]))
			return true;
		low = at + sizeof(frame);
		at = frame[0];
	}
	return false;
}

static void scan_stack(struct pl__unwind *tr, uintptr_t at, uintptr_t high)
{
	uintptr_t words[NR_WORDS], pc;
	size_t i, nr;

	if (high - at > DEEP)
		high = at + DEEP;
	for (; at < high && tr->nr < PL__UNWIND_MAX;
	     at += nr * sizeof(*words)) {
		nr = (high - at + sizeof(*words) - 1) / sizeof(*words);
		nr = nr < NR_WORDS ? nr : NR_WORDS;
		if (!pl__read_own_mem(words, (void *)at, nr * sizeof(*words)))
			return;
		for (i = 0; i < nr; i++) {
			pc = pl__ctx_return(words[i]);
			/* An address within the stack is no code. */
			if ((pc < at || pc >= high) && pl__symbol_is_return(pc))
				unwind_add(tr, pc);
		}
	}
}

void pl__unwind_from(struct pl__unwind *tr, const void *sp, const void *high)
{
	struct pl__ctx_left left;

	tr->nr = 0;
	tr->is_guess = false;
	if (!pl__ctx_look(sp, &left) || left.sp >= (uintptr_t)high)
		return;
	unwind_add(tr, left.pc);
	if (follow(tr, &left, (uintptr_t)high))
		return;
	tr->nr = 1;
	tr->is_guess = true;
	scan_stack(tr, left.sp, (uintptr_t)high);
}

#if defined(__x86_64__)
# include "ctx/arch/x86_64/call.h"
#else
# include "ctx/arch/aarch64/call.h"
#endif

#include <dlfcn.h>
#include <link.h>
#include <string.h>

struct place {
	uintptr_t	pc;
	const char	*module;
	uintptr_t	offset;
};

static int look_in(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct place *p = arg;
	uintptr_t offset = p->pc - info->dlpi_addr;
	int i;

	(void)size;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X) ||
		    offset - ph->p_vaddr >= ph->p_memsz)
			continue;
		p->module = info->dlpi_name;
		p->offset = offset;
		return 1;
	}
	return 0;
}

static bool symbol_find(struct place *p)
{
	/* No program has code in its first page. */
	return p->pc >= 4096 && dl_iterate_phdr(look_in, p);
}

bool pl__symbol_is_return(uintptr_t pc)
{
	uint8_t before[PL__CALL_SIZE_MAX];
	struct place p = { .pc = pc - 1 };

	return symbol_find(&p) &&
	       pl__read_own_mem(before, (void *)(pc - sizeof(before)),
				sizeof(before)) &&
	       pl__is_call(before + sizeof(before));
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!*path)
		return program_invocation_short_name;
	return slash ? slash + 1 : path;
}

void pl__symbol_put(struct pl__sigsafe_buf *t, uintptr_t pc, bool is_return)
{
	struct place p = { .pc = pc - is_return };
	Dl_info symbol;

	if (!symbol_find(&p)) {
		pl__sigsafe_hex(t, p.pc);
		return;
	}
	pl__sigsafe_put(t, base_name(p.module));
	pl__sigsafe_put(t, "+");
	pl__sigsafe_hex(t, p.offset);
	if (!dladdr((void *)p.pc, &symbol) || !symbol.dli_sname)
		return;
	pl__sigsafe_put(t, " ");
	pl__sigsafe_put(t, symbol.dli_sname);
	pl__sigsafe_put(t, "+");
	pl__sigsafe_hex(t, p.pc - (uintptr_t)symbol.dli_saddr);
}
