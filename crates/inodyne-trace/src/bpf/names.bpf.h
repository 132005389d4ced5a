/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Names of kernel functions, looked up by the kernel itself: it need not print its whole symbol table for that, nor reveal it to the
 * caller.
 */
#ifndef INODYNE_NAMES_H
#define INODYNE_NAMES_H

#include "kernel.h"

/* How many addresses are resolved at once. */
#define NAMED_AT_ONCE 256
/* Longer names are truncated. */
#define NAME_BYTES 128

/* Written by user space; below, the names that it reads back. */
__u64 named_addresses[NAMED_AT_ONCE];
char address_names[NAMED_AT_ONCE][NAME_BYTES];

static long name_address(__u32 at, void *unused)
{
	if (at >= NAMED_AT_ONCE)
		return 1;
	/* The function's name with the module's, or "0x…" if there is none (Documentation/core-api/printk-formats.rst). */
	BPF_SNPRINTF(address_names[at], NAME_BYTES, "%ps", named_addresses[at]);
	return 0;
}

/* Run by user space (BPF_PROG_TEST_RUN) with the number of addresses. */
SEC("raw_tp")
int name_addresses(struct bpf_raw_tracepoint_args *ctx)
{
	bpf_loop(ctx->args[0], name_address, 0, 0);
	return 0;
}

#endif
