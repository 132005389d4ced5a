/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * That a thread runs: what has to be settled before running time is charged to it, and the pieces of work that it sends.
 */
#ifndef INODYNE_RUN_H
#define INODYNE_RUN_H

#include "../probes/calls/tables.h"
#include "../probes/switches/tables.h"
#include "clock.h"
#include "maps.h"

static __always_inline void waker_unknown(struct thread *t)
{
	t->waker = WAKER_UNKNOWN;
	t->waker_tid = 0;
	t->waker_number = 0;
	t->waker_stack = 0;
}

static __always_inline void thread_in(struct thread *t, __u64 now)
{
	__u64 out = t->since, wake;
	bool blocked;

	/* It left its CPU between the look that was taken at it and the instant from which on its switches are seen. */
	if (t->joined && t->state == STATE_RUNNING)
		t->state = t->wake_ns ? STATE_BLOCKED : STATE_READY;
	blocked = t->state == STATE_BLOCKED;
	/*
	 * Not every wake-up is told: kernels that keep programs away from certain threads (see below) do not tell what an interrupt does
	 * on top of one of those either. What is known of the last waker is of another wait then.
	 */
	if (blocked && !t->wake_ns)
		waker_unknown(t);
	wake = clock_switch_in(t, now);
	if (blocked && !(t->flags & FLAG_HELPER))
		note_wait(t, wake - out);
	note_interval(t, out, wake, now, blocked);
	t->joined = 0;
}

/*
 * Not every return to a CPU is told: some kernels leave out the switches away from certain threads (seen with those of
 * an init that runs a virtual machine for its host), and with them whom they switch to. So where a thread runs that was
 * last seen off the CPU, its return was missed. How long ago it was, the scheduler's account knows: exactly at a switch,
 * to the last tick in between.
 */
static __noinline int thread_in_unseen(struct thread *t, __u64 now)
{
	struct task_struct *task = (struct task_struct *)t->task;
	__u64 ran = BPF_CORE_READ(task, se.sum_exec_runtime) - t->runtime_start - t->runtime;
	__u64 off = now - t->since;

	thread_in(t, now - (ran < off ? ran : off));
	return 0;
}

/* Before anything is charged as running time. */
static __always_inline void thread_runs(struct thread *t, __u64 now)
{
	if (t->state != STATE_RUNNING)
		thread_in_unseen(t, now);
}

/* Charges a running thread up to now, and sends what it did since it was last charged so. */
static __always_inline void work_until(struct thread *t, __u64 now, __u32 user)
{
	if (!record_timeline)
		return;
	thread_runs(t, now);
	clock_charge_running(t, now, call_slot_in_progress(t));
	work_send(t, now, user);
}

#endif
