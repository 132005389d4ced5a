/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Joining threads that run already: the kernel calls a program for each task there is, and those that are wanted are followed from
 * then on. All other programs are attached before, so from the instant at which a thread can be found its events are seen.
 *
 * What it did before is not known, and not guessed. What it does just now is looked at: whether it runs, is ready or blocked, and
 * where; and off a CPU, in which call. Nobody holds it meanwhile, so it may go on between the look and the instant from which on it is
 * found: the first switch that is seen after that corrects the state (`thread_in`), and the next entry of a call the call.
 *
 * A thread that is just being born is left out: if its parent is followed, so will it be, by its fork; if not, the next round finds it.
 * The user side makes rounds until one has found nobody.
 */
#ifndef INODYNE_JOIN_H
#define INODYNE_JOIN_H

#include "../probes/calls/tables.h"
#include "adopt.h"
#include "pid_namespace.h"
#include "stack.h"
#include "task.h"

/* Processes to join, by their number in the tracer's PID namespace; all that it sees, where `join_all` is set. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 20);
	__type(key, __u32);
	__type(value, __u32);
} joining SEC(".maps");

__u32 join_all;
__u32 threads_joined;

static __always_inline __u8 state_of(struct task_struct *task)
{
	if (task->on_cpu)
		return STATE_RUNNING;
	return task->__state ? STATE_BLOCKED : STATE_READY;
}

/*
 * The kernel stack of a thread that is off the CPU; the kernel leaves the functions of the scheduler and of locks out of it. One that
 * goes on meanwhile has none, and nothing is lost.
 */
static __always_inline __u64 take_stack_of(struct task_struct *task)
{
	__u32 user = STACK_OF_OTHER;
	struct stack_record *record = bpf_map_lookup_elem(&stack_scratch, &user);
	long bytes;

	if (!record)
		return 0;
	bytes = bpf_get_task_stack(task, record->address, sizeof(record->address), 0);
	if (bytes <= 0 && state_of(task) != STATE_BLOCKED)
		return 0;
	return send_stack(record, bytes, 0);
}

/* What it does just now. On a CPU, it may be in a call, and cannot be asked in which: its end will tell. */
static __always_inline void look_at(struct thread *t, struct task_struct *task)
{
	t->state = state_of(task);
	t->flags = FLAG_CHILD;
	if (t->state == STATE_RUNNING)
		return;
	if (!call_in_progress(task, &t->call) || t->call == CALL_NONE)
		t->flags = 0;
	if (t->state == STATE_BLOCKED)
		t->stack = take_stack_of(task);
}

static __always_inline void join(struct task_struct *task)
{
	__u32 pid = task->pid, slot = slot_take();
	struct thread *t = thread_at(slot);
	__u64 now;

	if (!slot || !t) {
		lose(LOST_THREADS);
		return;
	}
	t->group = group_of(task->comm);
	bpf_probe_read_kernel_str(t->comm, sizeof(t->comm), task->comm);
	t->pid = task->tgid;
	t->pid_here = number_here(task);
	t->tid = pid;
	t->joined = 1;
	t->cgroup = cgroup_of(task);
	cgroup_show(t->cgroup);
	look_at(t, task);
	t->runtime_start = task->se.sum_exec_runtime;
	now = bpf_ktime_get_ns();
	clock_born(t, now);
	t->call_start = now;
	t->number = __sync_fetch_and_add(&shared.threads_born, 1) + 1;
	t->task = (__u64)task;
	slot_bind(pid, slot);
	/* As long as nothing has happened, a second look is as good as the first would have been. */
	if (t->joined)
		t->state = state_of(task);
	__sync_fetch_and_add(&threads_joined, 1);
}

/* Run for each task by whoever reads the iterator. */
SEC("iter/task")
int follow_running(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	__u32 number;

	if (!task)
		return 0;
	/* Workers of io_uring and of virtual machines are not born as threads of their process either (lifecycle_fork_held). */
	if (task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER | PF_EXITING) || task->__state & TASK_NEW || (__u32)task->tgid == shared.tracer)
		return 0;
	if (!join_all) {
		number = number_here(task);
		if (!bpf_map_lookup_elem(&joining, &number))
			return 0;
	}
	if (!thread_of(task))
		join(task);
	return 0;
}

#endif
