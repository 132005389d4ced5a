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
 * means that the thread was ready all the time.
 */
#ifndef INODYNE_CLOCK_H
#define INODYNE_CLOCK_H

#include "intf.h"

/* Charges running time since the last transition to user mode or to the call in progress. */
static __always_inline void clock_charge_running(struct thread *t, __u64 now, __u32 call_slot)
{
	__u64 ran = now - t->since;

	if (t->call == CALL_NONE)
		t->user_ns += ran;
	else if (call_slot < CALL_SLOTS) {
		t->kernel_ns[call_slot] += ran;
		t->touched[call_slot / 32] |= 1u << call_slot % 32;
	}
	t->since = now;
}

static __always_inline void clock_born(struct thread *t, __u64 now)
{
	t->born = now;
	t->since = now;
}

static __always_inline void clock_enter(struct thread *t, __u64 now, __u16 call)
{
	t->user_ns += now - t->since;
	t->since = now;
	t->call = call;
	t->call_start = now;
	t->call_blocked_ns = 0;
	t->call_ready_ns = 0;
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

	if (t->state == STATE_BLOCKED && t->wake_ns > out)
		wake = t->wake_ns < now ? t->wake_ns : now;
	t->blocked_ns += wake - out;
	t->call_blocked_ns += wake - out;
	t->ready_ns += now - wake;
	t->call_ready_ns += now - wake;
	t->since = now;
	t->state = STATE_RUNNING;
	return wake;
}

#endif
