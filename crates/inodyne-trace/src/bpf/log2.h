/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* The logarithm that histograms begin with. */
#ifndef INODYNE_LOG2_H
#define INODYNE_LOG2_H

#include <linux/types.h>

/* Returns 0 for 0. */
static __always_inline __u32 log2_of(__u64 v)
{
	__u32 r = 0;

	if (v >> 32) { v >>= 32; r += 32; }
	if (v >> 16) { v >>= 16; r += 16; }
	if (v >> 8) { v >>= 8; r += 8; }
	if (v >> 4) { v >>= 4; r += 4; }
	if (v >> 2) { v >>= 2; r += 2; }
	return r + (__u32)(v >> 1);
}

#endif
