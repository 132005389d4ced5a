/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* For the tests: a journal with a different value in each field. */
#include "intf.h"

void host_plant_journal_key(struct journal_key *to)
{
	*to = (struct journal_key){ .device = 259 << 20 | 2, .kind = JOURNAL_JBD2 };
}

void host_plant_journal_row(struct journal_row *to)
{
	*to = (struct journal_row){
		.commits = 501,
		.handles = 502,
		.blocks = 503,
		.locked_ns = 504,
		.flushing_ns = 505,
		.logging_ns = 506,
		.longest_ns = 507,
		.checkpoints = 508,
		.checkpointed = 509,
		.forces = 510,
		.full = 511,
		.began = 512,
		.since = 513,
	};
}

void host_plant_commit_key(struct commit_key *to)
{
	*to = (struct commit_key){ .device = 259 << 20 | 2, .kind = JOURNAL_JBD2, .number = 520 };
}

void host_plant_commit_span(struct commit_span *to)
{
	*to = (struct commit_span){ .began = 521, .ended = 531, .blocks = 522 };
}
