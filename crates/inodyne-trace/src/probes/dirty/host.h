/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* For the tests: dirty pages with a different value in each field. */
#include "../block/intf.h"
#include "intf.h"

void host_plant_dirty_key(struct dirty_key *to)
{
	*to = (struct dirty_key){ .superblock = 431, .cgroup = 433, .asker = BLOCK_OF_OTHERS, .comm = "planted" };
}

void host_plant_dirty_sum(struct dirty_sum *to)
{
	*to = (struct dirty_sum){ .bytes = 432, .disk = 259 << 20 | 2 };
}
