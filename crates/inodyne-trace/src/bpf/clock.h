/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * The ledger of one thread as a state machine: every nanosecond between its birth and its end is charged exactly once.
 *
 * Pure C: no helper, no map. The kernel runs it; the tests of this crate compile the same file for the host and draw
 * its timelines. Each transition takes one timestamp, charges the time since the last one, and moves `since`; so the
 * sum telescopes to `end - birth` whatever the order of transitions.
 *
 *   user ----enter----> kernel ----switch_out(blocked)----> blocked ---(wake_ns)---> ready ----switch_in----> kernel
 *
 * A wake-up does not transit: it runs on another CPU, perhaps before the switch that it answers was seen here. It
 * only leaves its time in `wake_ns`; switch_in cuts the interval there. A wake-up before the switch out (the two raced)
 * means that the thread was ready all the time. Where none was seen since the thread last ran, when it was woken is not known: it is
 * blocked until it runs.
 *
 * A call that is not timed makes no transition. What ran from the last one before it to the next one after it, be that a timed
 * call or the switch away, is charged to `untimed_ns`: in user mode and in such calls, nobody knows how much in which. A call
 * that was drawn to be timed stands for N - 1 others, so N times what it ran until it ended or left the CPU is in `kernel_ns`,
 * and what of that was not measured in `stood_ns`, which estimates the part of `untimed_ns` that is the kernel's. From the
 * first switch on every call is timed, so waiting is never estimated:
 *
 *   user ----enter, not timed----> user or kernel ----switch_out----> blocked ---> ready ----switch_in----> kernel
 *   `---------------- untimed_ns -----------------'
 *
 * What was measured sums to the lifetime: user_ns + untimed_ns + kernel_ns - stood_ns + blocked_ns + ready_ns.
 */
#ifndef INODYNE_CLOCK_H
#define INODYNE_CLOCK_H

#include "intf.h"

/* Set before loading: 0 where every call is timed, which then costs nothing. */
const volatile __u32 calls_may_go_untimed = 1;

/* Charges what ran since the last transition where there were calls in it that are not timed. False: there were none. */
static __always_inline int clock_charge_untimed(struct thread *t, __u64 ran)
{
	if (!calls_may_go_untimed || !t->untimed)
		return 0;
	t->untimed_ns += ran;
	t->untimed = 0;
	return 1;
}

/* Charges running time since the last transition to user mode or to the call in progress. */
static __always_inline void clock_charge_running(struct thread *t, __u64 now, __u32 call_slot)
{
	__u64 ran = now - t->since;

	t->since = now;
	if (clock_charge_untimed(t, ran))
		return;
	if (t->call == CALL_NONE)
		t->user_ns += ran;
	else if (call_slot < CALL_SLOTS) {
		if (calls_may_go_untimed && t->stands_for) {
			t->stood_ns += ran * t->stands_for;
			ran += ran * t->stands_for;
			t->stands_for = 0;
		}
		t->kernel_ns[call_slot] += ran;
		t->touched[call_slot / 32] |= 1u << call_slot % 32;
	}
}

static __always_inline void clock_born(struct thread *t, __u64 now)
{
	t->born = now;
	t->since = now;
}

static __always_inline void clock_enter(struct thread *t, __u64 now, __u16 call)
{
	if (!clock_charge_untimed(t, now - t->since))
		t->user_ns += now - t->since;
	t->since = now;
	t->call = call;
	t->call_start = now;
	t->call_blocked_ns = 0;
	t->call_ready_ns = 0;
}

/* The entry of a call that is not timed. */
static __always_inline void clock_enter_untimed(struct thread *t, __u16 call)
{
	t->untimed = 1;
	t->call = call;
	t->call_blocked_ns = 0;
	t->call_ready_ns = 0;
}

/* The end of such a call, unless it has left the CPU: then it ends as every other. False: it is none. */
static __always_inline int clock_exit_untimed(struct thread *t)
{
	if (!calls_may_go_untimed || !t->untimed)
		return 0;
	t->call = CALL_NONE;
	return 1;
}

/* Returns the call's wall time. */
static __always_inline __u64 clock_exit(struct thread *t, __u64 now, __u32 call_slot)
{
	clock_charge_running(t, now, call_slot);
	t->call = CALL_NONE;
	return now - t->call_start;
}

static __always_inline void clock_switch_out(struct thread *t, __u64 now, __u32 call_slot, int blocked)
{
	clock_charge_running(t, now, call_slot);
	t->state = blocked ? STATE_BLOCKED : STATE_READY;
	if (blocked)
		t->waits++;
	else
		t->preemptions++;
}

/* Returns the instant at which the thread became ready. */
static __always_inline __u64 clock_switch_in(struct thread *t, __u64 now)
{
	__u64 out = t->since;
	__u64 wake = out;

	if (t->state == STATE_BLOCKED && !t->wake_ns)
		wake = now;
	else if (t->state == STATE_BLOCKED && t->wake_ns > out)
		wake = t->wake_ns < now ? t->wake_ns : now;
	t->wake_ns = 0;
	t->blocked_ns += wake - out;
	t->call_blocked_ns += wake - out;
	t->ready_ns += now - wake;
	t->call_ready_ns += now - wake;
	t->since = now;
	t->state = STATE_RUNNING;
	return wake;
}

#endif
