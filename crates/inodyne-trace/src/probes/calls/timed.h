/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Which calls are timed: all of them or, where that would cost too much, one in N. Each is drawn independently, with a pseudo-random
 * number generator in the thread's account (xorshift: George Marsaglia, Xorshift RNGs, 2003): in a program that repeats the same
 * calls in a loop of any length, each call of the loop is timed as often as the others, which timing every Nth call would not ensure.
 *
 * Only the accounts of threads can do without times: everything else that is recorded at the end of a call needs its time, so this
 * and the table of calls are mutually exclusive.
 */
#ifndef INODYNE_CALLS_TIMED_H
#define INODYNE_CALLS_TIMED_H

#include "../../bpf/clock.h"
#include "../../bpf/maps.h"

/* One call in this many is timed; 0 and 1 mean all of them. */
__u32 time_one_call_in;

static __always_inline bool call_is_timed(struct thread *t)
{
	__u32 one_in, drawn;

	if (!calls_may_go_untimed)
		return true;
	one_in = time_one_call_in;
	/* Threads that have more to be settled are left out of the draw. */
	if (one_in <= 1 || t->flags & (FLAG_ARMED | FLAG_CHILD | FLAG_HELPER) || t->state != STATE_RUNNING)
		return true;
	drawn = t->random;
	if (!drawn)
		drawn = bpf_get_prandom_u32() | 1;
	drawn ^= drawn << 13;
	drawn ^= drawn >> 17;
	drawn ^= drawn << 5;
	t->random = drawn;
	if ((__u64)drawn * one_in >> 32)
		return false;
	t->stands_for = one_in - 1;
	return true;
}

#endif
