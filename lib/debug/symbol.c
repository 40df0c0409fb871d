/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "debug/symbol.h"
#include "base/sys.h"

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
