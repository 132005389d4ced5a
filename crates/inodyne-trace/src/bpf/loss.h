/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Kinds of loss, in the order of `Loss` in crates/inodyne-model/src/loss.rs, which says what each means: the test
 * `losses_are_those_of_the_model` compares the names.
 */
#ifndef INODYNE_LOSS_H
#define INODYNE_LOSS_H

#include "export.h"

enum loss {
	LOST_CALLS,
	LOST_THREADS,
	LOST_RECORDS,
	LOST_INTERVALS,
	LOST_WAITS,
	LOST_SAMPLES,
	LOST_STACKS,
	LOST_DTYPE,
	LOST_WORK,
	LOST_HELPERS,
	LOST_SKIPPED, /* counted by the kernel, and read by user space */
	LOST_REQUESTS,
	LOSSES,
};
EXPORT(enum, loss);

#endif
