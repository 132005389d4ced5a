/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Leaving a CPU and coming back to one: time on the run queue, waits by place in the kernel, and the timeline. Also a
 * thread's last switch, which closes its account.
 */
#ifndef INODYNE_SWITCHES_PROBE_H
#define INODYNE_SWITCHES_PROBE_H

#include "../../bpf/adopt.h"
#include "../../bpf/known_stack.h"
#include "../../bpf/refuse.h"
#include "../../bpf/run.h"
#include "../lifecycle/end.h"
#include "tables.h"

/*
 * A signal arrived before the thread went to sleep, so it does not sleep and nobody wakes it: the kernel makes it runnable again as it is
 * switched out (__schedule() in kernel/sched/core.c). On older kernels the tracepoint still reports the state in which it wanted to sleep.
 */
static __always_inline void wake_by_signal(struct thread *t, __u64 now)
{
	t->wake_ns = now;
	waker_unknown(t);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(switches_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	struct thread *from, *to;
	__u64 now;

	refusable(REFUSE_SWITCHES);
	from = thread_of(prev);
	to = thread_of(next);
	if (!from) {
		/* Otherwise the compiler tests both at once by OR-ing the two pointers, which the verifier rejects. */
		barrier();
		if (!to)
			return 0;
	}
	now = bpf_ktime_get_ns();
	if (from && from->number) {
		thread_runs(from, now);
		from->runtime = prev->se.sum_exec_runtime - from->runtime_start;
		if (prev_state & TASK_DEAD) {
			thread_end(from, slot_forget(prev->pid), now);
		} else {
			bool blocked = !preempt && prev_state;

			if (blocked)
				from->stack = take_known_stack(ctx, known_stack_of(ctx, prev, from->call, STACK_OF_SWITCH), STACK_OF_SWITCH);
			if (from->flags & FLAG_KTHREAD)
				note_idle(from, prev_state);
			from->joined = 0;
			clock_switch_out(from, now, call_slot_in_progress(from), blocked);
			if (blocked && !prev->__state)
				wake_by_signal(from, now);
			work_send(from, now, WORK_OF_SWITCH);
		}
	}
	if (to && to->number)
		thread_in(to, now);
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(switches_waking, struct task_struct *task)
{
	struct thread *t = thread_of(task), *by = 0;
	struct task_struct *waker;
	struct known_stack *known;
	__u8 kind;

	waker = bpf_get_current_task_btf();
	if (!t) {
		if (record_timeline && adopt_servers)
			adopt_asked(ctx, waker, task);
		return 0;
	}
	if (!t->number)
		return 0;
	if (record_timeline && adopt_servers && (t->flags & (FLAG_HELPER | FLAG_SERVER)) == FLAG_HELPER)
		helper_asked(ctx, waker, task);
	kind = waker_kind(ctx, waker);
	t->waker_tid = waker->pid;
	if (kind == WAKER_INTERRUPT) {
		by = record_timeline ? sender(ctx, waker) : 0;
		/* What the task sends shows only below the interrupt. */
		known = by ? 0 : known_interrupt_of(ctx, waker, t->tid * 31 + t->call);
		t->waker_stack = take_interrupt_stack(ctx, known);
		t->wake_ns = bpf_ktime_get_ns();
		if (by)
			kind = WAKER_PROCESS;
	} else {
		by = thread_of(waker);
		if (by && !by->number)
			by = 0;
		known = known_stack_of(ctx, waker, by ? by->call : CALL_NONE, STACK_OF_WAKING);
		t->waker_stack = take_known_stack(ctx, known, STACK_OF_WAKING);
		t->wake_ns = bpf_ktime_get_ns();
		if (by)
			work_until(by, t->wake_ns, WORK_OF_WAKING);
		else if (record_timeline)
			by = adopt(waker, t, t->wake_ns);
	}
	t->waker = by && !(by->flags & FLAG_HELPER) ? WAKER_TRACED : kind;
	t->waker_number = by ? by->number : 0;
	return 0;
}

#endif
