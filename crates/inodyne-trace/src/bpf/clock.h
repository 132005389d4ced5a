/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * The ledger of one thread as a state machine: every nanosecond between its birth and its end is charged exactly once.
 *
 * Pure C: no BPF helpers, no maps. The kernel runs it; this crate's tests compile the same file for the host and draw its
 * timelines. Each transition takes one timestamp, charges the time since the last one, and advances `since`, so the sum
 * telescopes to `end - birth` whatever the order of transitions.
 *
 *   user ----enter----> kernel ----switch_out(blocked)----> blocked ---(wake_ns)---> ready ----switch_in----> kernel
 *
 * A wakeup is not a transition: it runs on another CPU, perhaps before the switch-out that it ends was seen here. It only
 * records its time in `wake_ns`, where switch_in splits the interval. A wakeup before the switch-out (the two raced) means
 * that the thread was ready all the time. If none was seen since the thread last ran, the time of the wakeup is unknown, and
 * the thread counts as blocked until it runs.
 *
 * An untimed call makes no transition. Running time from the last transition before it to the next one after it, be that a
 * timed call or the switch-out, is charged to `untimed_ns`: it was spent in user mode and in such calls, in unknown shares. A
 * call that was drawn to be timed stands for N - 1 others, so N times its running time until it ended or left the CPU is in
 * `kernel_ns`. The part of that which was not measured is in `stood_ns`, which estimates the kernel's part of `untimed_ns`.
 * From its first switch-out on, every call is timed, so waiting is never estimated:
 *
 *   user ----enter, not timed----> user or kernel ----switch_out----> blocked ---> ready ----switch_in----> kernel
 *   `---------------- untimed_ns -----------------'
 *
 * What was measured sums to the lifetime: user_ns + untimed_ns + kernel_ns - stood_ns + blocked_ns + ready_ns.
 */
#ifndef INODYNE_CLOCK_H
#define INODYNE_CLOCK_H

#include "intf.h"

/* Set before loading: 0 if every call is timed; the code for untimed ones then costs nothing. */
const volatile __u32 calls_may_go_untimed = 1;

/* Charges the running time since the last transition if there were untimed calls in it. Returns false if there were none. */
static __always_inline int clock_charge_untimed(struct thread *t, __u64 ran)
{
	if (!calls_may_go_untimed || !t->untimed)
		return 0;
	t->untimed_ns += ran;
	t->untimed = 0;
	return 1;
}

/* Charges the running time since the last transition to user mode or to the call in progress. */
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

/* Entry of an untimed call. */
static __always_inline void clock_enter_untimed(struct thread *t, __u16 call)
{
	t->untimed = 1;
	t->call = call;
	t->call_blocked_ns = 0;
	t->call_ready_ns = 0;
}

/* Exit of an untimed call; one that has left the CPU ends like a timed one. Returns false if it is not untimed. */
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

/* Returns the time at which the thread became ready. */
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
