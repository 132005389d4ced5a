/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Helpers: kernel threads (a journal, a worker) and threads of other processes (a FUSE server) that wake a followed thread.
 * They are followed from then on, so that the critical path can continue into what they did. They appear only in the
 * timeline: their syscalls are not counted, and their names are not in any table.
 *
 * Servers are helpers, too, and are followed from the time of the request: threads that are woken because a followed one sends
 * something over a socket. So are the threads of its process that a server wakes in turn, and its children: a daemon may have others
 * do what it is asked for.
 *
 * A thread that merely happens to be interrupted when another is woken has nothing to do with the wakeup. Nor does a thread that
 * gives work to an idle kernel thread.
 */
#ifndef INODYNE_ADOPT_H
#define INODYNE_ADOPT_H

#include "cgroup.h"
#include "file.h"
#include "task.h"

#define TASK_INTERRUPTIBLE 0x00000001 /* include/linux/sched.h */
#define TASK_NOLOAD 0x00000400        /* include/linux/sched.h */

/* An interrupt runs on a stack of its CPU, not on that of the thread it interrupts; the arguments of a program are on the
 * stack in use. Interrupts from user mode may run on the thread's own stack; those are recognised later, by the waker's stack. */
static __always_inline bool in_interrupt(void *ctx, struct task_struct *task)
{
	__u64 address = 0, arguments = (__u64)ctx;

	/* Read back like this, the pointer is a scalar to the verifier. */
	bpf_probe_read_kernel(&address, sizeof(address), &arguments);
	return !on_stack_of(task, address);
}

static __always_inline __u8 waker_kind(void *ctx, struct task_struct *waker)
{
	if (!waker->pid || in_interrupt(ctx, waker))
		return WAKER_INTERRUPT;
	return waker->flags & PF_KTHREAD ? WAKER_KTHREAD : WAKER_PROCESS;
}

/* Kernel threads wait for work in a state that does not count towards the load average, or that signals can interrupt. */
static __always_inline void note_idle(struct thread *t, __u32 state)
{
	if (state & (TASK_INTERRUPTIBLE | TASK_NOLOAD))
		t->flags |= FLAG_IDLE;
	else
		t->flags &= ~FLAG_IDLE;
}

/*
 * The syscall that a process is in; false if it is in none. Then an interrupt arrived in user mode, and what the process does there has
 * nothing to do with the wakeup. A page fault looks the same, and is taken for an interrupt. A task that exits because of a signal is in no
 * syscall either, hence the test for PF_EXITING.
 */
static __always_inline bool call_in_progress(struct task_struct *task, __u16 *call)
{
	struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs(task);
	long number = CALL_NUMBER(regs);

	*call = number >= 0 ? call_of(task, number) : CALL_NONE;
	return number >= 0 || task->flags & PF_EXITING;
}

/* Set while running threads are joined for the first time: until it is known which are wanted, none becomes a helper. */
__u32 nobody_helps_yet;

/* Follows a thread as a helper from now on, if there is room. */
static __noinline struct thread *helper_make(struct task_struct *task, __u8 flags, __u8 depth, __u16 call, __u64 now)
{
	__u32 pid, slot;
	struct thread *t;

	/*
	 * A thread in execve that is not its thread group's leader takes over the leader's pid before it is reported (take_over_pid): until
	 * then it is not found by its pid, and must not be taken for one that nobody follows.
	 */
	if (!task || nobody_helps_yet || is_execve(call))
		return 0;
	if (shared.helpers_alive >= max_helpers) {
		lose(LOST_HELPERS);
		return 0;
	}
	pid = task->pid;
	/* The pid is still another thread's: the leader's of a process in which this one calls execve (take_over_pid), or one just gone. */
	if (slot_of(pid))
		return 0;
	slot = slot_take();
	if (!slot) {
		lose(LOST_HELPERS);
		return 0;
	}
	t = thread_at(slot);
	if (!t)
		return 0;
	__sync_fetch_and_add(&shared.helpers_alive, 1);
	t->group = GROUP_CALIBRATION;
	t->flags = flags;
	t->depth = depth;
	t->call = call;
	t->runtime_start = task->se.sum_exec_runtime;
	clock_born(t, now);
	t->number = HELPER_FIRST + __sync_fetch_and_add(&shared.helpers_born, 1);
	t->pid = task->tgid;
	t->tid = pid;
	bpf_probe_read_kernel_str(t->comm, sizeof(t->comm), task->comm);
	if (!(flags & FLAG_KTHREAD)) {
		t->cgroup = cgroup_of(task);
		cgroup_show(t->cgroup);
	}
	t->task = (__u64)task;
	slot_bind(pid, slot);
	return t;
}

/* The current task, `task`, wakes `woken`: follows the waker if that is of use. */
static __always_inline struct thread *adopt(struct task_struct *task, struct thread *woken, __u64 now)
{
	__u16 call = CALL_NONE;
	bool kthread;

	if (!task || !woken)
		return 0;
	kthread = task->flags & PF_KTHREAD;
	if (woken->depth >= HELPER_DEPTH || woken->flags & FLAG_IDLE || (__u32)task->tgid == shared.tracer)
		return 0;
	if (!kthread && !call_in_progress(task, &call))
		return 0;
	return helper_make(task, kthread ? FLAG_HELPER | FLAG_KTHREAD : FLAG_HELPER, woken->depth + 1, call, now);
}

static __always_inline bool sends(__u16 call)
{
	return call == __NR_sendto || call == __NR_sendmsg || call == __NR_sendmmsg || call == __NR_connect || call == __NR_write ||
	       call == __NR_writev || call == __NR_sendfile;
}

/*
 * The current task's account if it is followed and is sending something over a socket. This holds in an interrupt, too: a packet to this
 * machine arrives while it is being sent, on top of the syscall that sends it. User space tells that from other interrupts by the stack.
 * What is sent over a Unix socket arrives without an interrupt: a thread that an interrupt wakes meanwhile was not asked for anything.
 */
static __always_inline struct thread *sender(void *ctx, struct task_struct *task)
{
	struct thread *t = thread_of(task);
	__u16 family;

	if (!t || !t->number || !sends(t->call))
		return 0;
	family = socket_family(CALL_ARG1(bpf_task_pt_regs(task)));
	return family && (family != AF_UNIX || !in_interrupt(ctx, task)) ? t : 0;
}

/* Whether `asker`, followed as `by`, asks `task` for something by waking it: returns the depth of `task` then, or -1. */
static __always_inline int asked_depth(void *ctx, struct task_struct *asker, struct thread *by, struct task_struct *task)
{
	if (by->flags & FLAG_SERVER && asker->tgid == task->tgid && !in_interrupt(ctx, asker))
		return by->depth;
	return by->depth < HELPER_DEPTH && sender(ctx, asker) ? by->depth + 1 : -1;
}

/* The current task wakes one that is not followed: follows the woken task if it is asked for something. */
static __noinline int adopt_asked(void *ctx, struct task_struct *asker, struct task_struct *task)
{
	struct thread *by, *t;
	__u16 call = CALL_NONE;
	int depth;

	if (!asker || !task)
		return 0;
	by = thread_of(asker);
	if (!by || !by->number || by->flags & FLAG_KTHREAD || task->flags & (PF_KTHREAD | PF_EXITING) ||
	    (__u32)task->tgid == shared.tracer)
		return 0;
	depth = asked_depth(ctx, asker, by, task);
	if (depth < 0)
		return 0;
	if (!call_in_progress(task, &call))
		call = CALL_NONE;
	t = helper_make(task, FLAG_HELPER | FLAG_SERVER, depth, call, bpf_ktime_get_ns());
	if (t && !task->on_cpu)
		t->state = STATE_READY;
	return 0;
}

/* The same for a task that is a helper already: it answered before it was asked again, or happened to run while a thread was woken. */
static __noinline int helper_asked(void *ctx, struct task_struct *asker, struct task_struct *task)
{
	struct thread *by, *t;

	if (!asker || !task)
		return 0;
	by = thread_of(asker);
	t = thread_of(task);
	if (!by || !t || !by->number || by->flags & FLAG_KTHREAD || t->flags & FLAG_KTHREAD)
		return 0;
	if (asked_depth(ctx, asker, by, task) >= 0)
		t->flags |= FLAG_SERVER;
	return 0;
}

#endif
