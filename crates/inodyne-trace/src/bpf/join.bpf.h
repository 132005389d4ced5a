/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Joining threads that already exist: the kernel calls a program for each task, and those that are wanted are followed from then on.
 * All other programs are attached before, so a thread's events are seen from the moment its account can be found.
 *
 * What it did before is unknown, and is not guessed. Its present state is looked at: whether it is running, ready or blocked, and
 * where; and, if it is off-CPU, in which syscall. Nothing stops it meanwhile, so its state may change between the look and the moment
 * its account can be found: the first switch seen after that corrects the state (`thread_in`), and the next syscall entry the syscall.
 *
 * A thread that is just being created is left out: if its parent is followed, its fork adds it; if not, the next round finds it.
 * User space makes rounds until one finds none.
 */
#ifndef INODYNE_JOIN_H
#define INODYNE_JOIN_H

#include "../probes/calls/tables.h"
#include "../probes/lifecycle/end.h"
#include "adopt.h"
#include "pid_namespace.h"
#include "stack.h"
#include "task.h"

/* Processes to join, by their pid in the tracer's PID namespace; all that it sees if `join_all` is set. */
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
 * The kernel stack of an off-CPU thread; the kernel leaves scheduler and lock functions out of it. A thread that resumes meanwhile has
 * none, which is no loss.
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

/* What it is doing now. On a CPU, it may be in a syscall, but one cannot see which: its sys_exit will tell. */
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

/* Looks at a dead thread's CPU; more looks than its last switch takes. */
#define LONGEST_SWITCH 100000

static long is_still_on_cpu(__u64 look, struct task_struct **task)
{
	return !BPF_CORE_READ_BITFIELD_PROBED(*task, on_cpu);
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
	/* Its value is used, so this is a barrier: either the thread's last switch finds the account, or it is seen here that it is dead. */
	if (__sync_fetch_and_add(&threads_joined, 1) + 1 && task->__state & TASK_DEAD) {
		/* It ended meanwhile. Once that switch is over: if it found no account, nothing else will end it. */
		bpf_loop(LONGEST_SWITCH, is_still_on_cpu, &task, 0);
		if (t->task == (__u64)task && slot_of(pid) == slot) {
			t->runtime = task->se.sum_exec_runtime - t->runtime_start;
			thread_end(t, slot_forget(pid), bpf_ktime_get_ns());
		}
		return;
	}
	/* As long as nothing has happened since, a second look is as good as the first. */
	if (t->joined)
		t->state = state_of(task);
}

/* Run for each task by whoever reads the iterator. */
SEC("iter/task")
int follow_running(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	__u32 number;

	if (!task)
		return 0;
	/* io_uring and virtual-machine workers are not followed at birth as threads of their process, either (lifecycle_fork_held). */
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
