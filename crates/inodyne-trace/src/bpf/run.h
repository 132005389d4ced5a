/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Running threads: what has to be settled before running time is charged to a thread, and the pieces of work that it sends.
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

	/* It left its CPU after its state was looked at, but before the point from which its switches are seen. */
	if (t->joined && t->state == STATE_RUNNING)
		t->state = t->wake_ns ? STATE_BLOCKED : STATE_READY;
	blocked = t->state == STATE_BLOCKED;
	/*
	 * Not every wakeup is reported: kernels that do not run programs for certain threads (see below) do not report what an interrupt
	 * does on top of one of those either. What is known about the last waker then belongs to another wait.
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
 * Not every return to a CPU is reported: some kernels leave out the switches away from certain threads (seen with those of
 * an init that runs a virtual machine for its host), and with them the tasks switched to. If a thread is running
 * that was last seen off-CPU, its return was missed. The scheduler's accounting tells how long ago that was: exactly at a
 * switch, to the last tick in between.
 */
static __noinline int thread_in_unseen(struct thread *t, __u64 now)
{
	struct task_struct *task = (struct task_struct *)t->task;
	__u64 ran = BPF_CORE_READ(task, se.sum_exec_runtime) - t->runtime_start - t->runtime;
	__u64 off = now - t->since;

	thread_in(t, now - (ran < off ? ran : off));
	return 0;
}

/* To be called before anything is charged as running time. */
static __always_inline void thread_runs(struct thread *t, __u64 now)
{
	if (t->state != STATE_RUNNING)
		thread_in_unseen(t, now);
}

/* Charges a running thread up to now, and sends what it did since work was last sent. */
static __always_inline void work_until(struct thread *t, __u64 now, __u32 user)
{
	if (!record_timeline)
		return;
	thread_runs(t, now);
	clock_charge_running(t, now, call_slot_in_progress(t));
	work_send(t, now, user);
}

#endif
