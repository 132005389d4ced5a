/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* For the tests: requests and a disk with a different value in each field. */
#include "intf.h"

void host_plant_block_key(struct block_key *to)
{
	*to = (struct block_key){
		.stack = 401,
		.cgroup = 402,
		.asker = BLOCK_OF_OTHERS,
		.comm = "planted",
		.device = 259 << 20 | 3,
		.disk = 259 << 20 | 2,
		.flags = BLOCK_META,
		.op = 2, /* REQ_OP_FLUSH */
		.after = 1,
	};
}

void host_plant_block_row(struct block_row *to)
{
	*to = (struct block_row){
		.requests = 411,
		.bytes = 412,
		.sequential = 413,
		.timed = 414,
		.queue_ns = 415,
		.device_ns = 416,
		.sizes = { 417 },
		.queue_times = { 418 },
		.device_times = { 419 },
	};
}

void host_plant_block_disk(struct block_disk *to)
{
	*to = (struct block_disk){
		.merged = 421,
		.busy_ns = 422,
		.since = 423,
		.next_sector = { 424, 425 },
		.requests = 426,
		.read_bytes = 427,
		.written_bytes = 428,
		.device_ns = 429,
		.in_flight = 1,
		.number = 259 << 20 | 2,
	};
}
