/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* For the tests: a key and a stack with a different number in each field. */
#include "intf.h"

void host_plant_sample_key(struct sample_key *to)
{
	*to = (struct sample_key){ .thread = 701, .call = 1, .user_mode = 1, .blocked = 0, .stack = 705, .user_stack = 706 };
}

void host_plant_user_frames(struct user_frames *to)
{
	*to = (struct user_frames){
		.depth = 2,
		.pid = 801,
		.frame = { { .status = FRAME_IN_FILE, .build_id = { 9 }, .place = 802 }, { .status = 2, .place = 803 } },
	};
}
