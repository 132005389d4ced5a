/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * For tests: makes the verifier reject a chosen probe, so that tracing without it can be tried on a kernel that accepts them
 * all. Otherwise the verifier knows that the constant is zero, and removes all of this.
 */
#ifndef INODYNE_REFUSE_H
#define INODYNE_REFUSE_H

#include "kernel.h"
#include "refusable.h"

/* Set before loading: one of enum refusable. */
const volatile __u32 refused_probe = REFUSE_NONE;

/* Called at the beginning of one program of each probe. */
static __always_inline void refusable(enum refusable probe)
{
	/* A load through something that is not a pointer. */
	if (refused_probe == probe)
		asm volatile("r0 = 0; r0 = *(u64 *)(r0 + 0)" ::: "r0");
}

#endif
