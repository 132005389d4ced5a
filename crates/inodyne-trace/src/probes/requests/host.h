/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* For the tests: a request with a different number in each field. */
#include "intf.h"

void host_plant_request_record(struct request_record *to)
{
	*to = (struct request_record){ .from = 10971, .to = 10981, .thread = 973 };
}
