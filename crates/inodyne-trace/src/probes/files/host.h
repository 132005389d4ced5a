/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* For the tests: a file with a different number in each field. */
#include "intf.h"

void host_plant_file_sum(struct file_sum *to)
{
	*to = (struct file_sum){
		.calls = { 951, 952, 953, 954, 955, 956, 957 },
		.read_bytes = 958,
		.written_bytes = 959,
		.wall_ns = 960,
		.blocked_ns = 961,
		.size = 962,
		.length = 4,
		.cut = 1,
		.directory = 0,
		.comm = "tar",
		.path = "/a/b",
	};
}
