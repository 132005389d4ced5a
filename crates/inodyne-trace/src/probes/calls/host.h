/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* For the tests: the same histogram, and a row with a different value in each field. */
#include "histogram.h"
#include "intf.h"

__u32 host_bucket_of(__u64 ns) { return bucket_of(ns); }

void host_plant_call_stats(struct call_stats *to)
{
	*to = (struct call_stats){
		.calls = 101,
		.errors = 102,
		.wall_ns = 10300,
		.blocked_ns = 104,
		.ready_ns = 105,
		.min_ns = 106,
		.max_ns = 107,
		.failed_ns = 108,
		.bytes = 109,
		.histogram = { [0] = 110 },
		.errnos = { [1] = 111 },
	};
}
