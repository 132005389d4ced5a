/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* The probes by name, for tests that have one of them refused (refuse.h). */
#ifndef INODYNE_REFUSABLE_H
#define INODYNE_REFUSABLE_H

#include "export.h"

/* In the order of probes/mod.rs. */
enum refusable {
	REFUSE_NONE,
	REFUSE_CALLS,
	REFUSE_LIFECYCLE,
	REFUSE_SWITCHES,
	REFUSE_SAMPLES,
	REFUSE_PATHS,
	REFUSE_FILES,
	REFUSE_DTYPE,
	REFUSE_BLOCK,
	REFUSE_DIRTY,
	REFUSE_PAGE_CACHE,
	REFUSE_COMMITS,
	REFUSE_REQUESTS,
};
EXPORT(enum, refusable);

#endif
