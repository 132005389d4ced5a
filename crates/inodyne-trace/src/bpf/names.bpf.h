/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Names of the kernel's functions, by the kernel itself: it need not print its whole table of symbols for that, nor show it to whoever
 * asks.
 */
#ifndef INODYNE_NAMES_H
#define INODYNE_NAMES_H

#include "kernel.h"

/* How many addresses are named at once. */
#define NAMED_AT_ONCE 256
/* A longer name is cut off there. */
#define NAME_BYTES 128

/* Written by the user side, and what it reads. */
__u64 named_addresses[NAMED_AT_ONCE];
char address_names[NAMED_AT_ONCE][NAME_BYTES];

static long name_address(__u32 at, void *unused)
{
	if (at >= NAMED_AT_ONCE)
		return 1;
	/* The name of the function with the module's, "0x…" where there is none (Documentation/core-api/printk-formats.rst). */
	BPF_SNPRINTF(address_names[at], NAME_BYTES, "%ps", named_addresses[at]);
	return 0;
}

/* Run by the user side (BPF_PROG_TEST_RUN), with the number of addresses. */
SEC("raw_tp")
int name_addresses(struct bpf_raw_tracepoint_args *ctx)
{
	bpf_loop(ctx->args[0], name_address, 0, 0);
	return 0;
}

#endif
