/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* For the tests: records with a different number in each field. */
#include "intf.h"

void host_plant_wait_key(struct wait_key *to)
{
	*to = (struct wait_key){ .thread = 401, .call = 1, .waker = WAKER_KTHREAD, .began_before = 1, .stack = 403, .waker_stack = 404 };
}

void host_plant_wait_sum(struct wait_sum *to)
{
	*to = (struct wait_sum){ .ns = 405, .count = 406, .max_ns = 407 };
}

void host_plant_interval(struct interval_record *to)
{
	*to = (struct interval_record){
		.kind = TIMELINE_INTERVAL,
		.thread = 501,
		.waker_tid = 502,
		.waker_number = 503,
		.out = 1504,
		.wake = 1514,
		.in = 1515,
		.stack = 507,
		.waker_stack = 508,
		.call = 1,
		.waker = WAKER_PROCESS,
	};
}

void host_plant_work(struct work_record *to)
{
	*to = (struct work_record){
		.kind = TIMELINE_WORK,
		.thread = 601,
		.at = 1602,
		.count = 3,
		.part = { { .call_slot = 5, .ns = 604 }, { .call_slot = CALL_SLOTS, .ns = 605 }, { .call_slot = 5, .ns = 606 } },
	};
}
