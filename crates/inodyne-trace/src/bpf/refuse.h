/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * For tests: a probe that the verifier refuses on purpose, so that what becomes of a trace without it can be tried on a kernel
 * that accepts them all. Anywhere else the verifier knows the constant to be zero, and takes all of this out.
 */
#ifndef INODYNE_REFUSE_H
#define INODYNE_REFUSE_H

#include "kernel.h"
#include "refusable.h"

/* Set before loading: one of enum refusable. */
const volatile __u32 refused_probe = REFUSE_NONE;

/* At the beginning of one program of each probe. */
static __always_inline void refusable(enum refusable probe)
{
	/* A read from where no pointer leads. */
	if (refused_probe == probe)
		asm volatile("r0 = 0; r0 = *(u64 *)(r0 + 0)" ::: "r0");
}

#endif
