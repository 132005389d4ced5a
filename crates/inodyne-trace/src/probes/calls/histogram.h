/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * The log-linear histogram of call durations: eight buckets to a power of two, from 32 ns to 137 s. The twin of
 * `inodyne_model::histogram::bucket_of`; the test `histogram_twins` compares them.
 */
#ifndef INODYNE_CALLS_HISTOGRAM_H
#define INODYNE_CALLS_HISTOGRAM_H

#include "../../bpf/log2.h"
#include "intf.h"

static __always_inline __u32 bucket_of(__u64 ns)
{
	__u32 octave, bucket;

	if (ns < 32)
		return ns >> 2;
	octave = log2_of(ns);
	bucket = ((octave - 4) << 3) + ((ns >> (octave - 3)) & 7);
	return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

#endif
