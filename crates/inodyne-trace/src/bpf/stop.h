/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * The end of a trace. Programs are detached one after the other, which takes a few milliseconds, and longer where some are at perf events (half a
 * second on an emulated 7.3). Some of them would record something else than all: a thread whose calls are still seen, but not its switches, would
 * seem to stay on its CPU. So all stop at once, before the first is detached.
 */
#ifndef INODYNE_STOP_H
#define INODYNE_STOP_H

#include "kernel.h"

/* Set by user space: nothing that happens from now on is recorded. */
__u32 stopped;

#endif
