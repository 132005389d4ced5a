/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* For the tests: a path with a different number in each field. */
#include "intf.h"

void host_plant_path_count(struct path_count *to)
{
	*to = (struct path_count){ .calls = 901, .not_found = 902, .wall_ns = 903, .length = 4, .call = 1, .unused = 1, .path = "/a/b" };
}
