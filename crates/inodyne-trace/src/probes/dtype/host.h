/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* For the tests: rows with a different value in each field. */
#include "intf.h"

void host_plant_walk(struct walk *to)
{
	*to = (struct walk){
		.all_reads = 11,
		.all_entries = 12,
		.all_unknown = 13,
		.buffer = 14,
		.total = 15,
		.done = 16,
		.at = 17,
		.end = 18,
		.tgid = 19,
		.entries = 20,
		.unknown = 21,
	};
}

void host_plant_dtype_fs(struct dtype_fs *to)
{
	*to = (struct dtype_fs){ .reads = 21, .entries = 22, .unknown = 23, .fs = "ext4" };
}

void host_plant_directory_key(struct directory_key *to)
{
	*to = (struct directory_key){ .inode = 31, .device = 7 << 20 | 3 };
}

void host_plant_directory(struct directory *to)
{
	*to = (struct directory){ .entries = 33, .unknown = 34, .names = 2, .cut = 0 };
	to->name[0] = 'd';
	to->name[PATH_NAME] = 'u';
	to->name[PATH_NAME + 1] = 'p';
}

void host_plant_forced_key(struct forced_key *to)
{
	*to = (struct forced_key){ .thread = 41, .call = 262 /* newfstatat */, .unused = 1 };
}

void host_plant_forced_sum(struct forced_sum *to)
{
	*to = (struct forced_sum){ .calls = 43, .wall_ns = 4400, .blocked_ns = 45, .ready_ns = 46 };
}
