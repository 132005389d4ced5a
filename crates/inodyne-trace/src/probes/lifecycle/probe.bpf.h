/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Forks, execs, renames and exits: which threads are followed, and what they are called.
 */
#ifndef INODYNE_LIFECYCLE_PROBE_H
#define INODYNE_LIFECYCLE_PROBE_H

#include "../../bpf/adopt.h"
#include "../../bpf/pid_namespace.h"
#include "../../bpf/preempt.h"
#include "../../bpf/refuse.h"
#include "../../bpf/run.h"
#include "../../bpf/task.h"
#include "end.h"

/* Helpers are not in the table of command names. */
static __always_inline void take_name(struct thread *t, const char *comm)
{
	if (!(t->flags & FLAG_HELPER))
		t->group = group_of(comm);
	bpf_probe_read_kernel_str(t->comm, sizeof(t->comm), comm);
}

/* Of the helpers, only servers have their children followed: they have others work for them. */
static __noinline int fork_of_helper(struct thread *of, struct task_struct *child)
{
	struct thread *t;
	__u64 now;

	if (!of || !child || !(of->flags & FLAG_SERVER))
		return 0;
	now = bpf_ktime_get_ns();
	t = helper_make(child, FLAG_CHILD | FLAG_HELPER | FLAG_SERVER, of->depth, CHILD_ENDS_CALL ? of->call : CALL_NONE, now);
	if (!t)
		return 0;
	t->state = STATE_READY;
	t->parent = of->number;
	work_until(of, now, WORK_OF_FORK);
	return 0;
}

static __always_inline int forked(struct task_struct *parent, struct task_struct *child)
{
	struct thread *of = thread_of(parent), *t;
	__u32 pid = child->pid, slot;
	__u64 now;

	/* If this runs when the child is woken (lifecycle_fork_held), the child may have been joined already. */
	if (!of || !of->number || thread_of(child))
		return 0;
	if (of->flags & FLAG_HELPER)
		return fork_of_helper(of, child);
	slot = slot_take();
	if (!slot) {
		lose(LOST_THREADS);
		return 0;
	}
	t = thread_at(slot);
	if (!t)
		return 0;
	t->group = of->group;
	if (CHILD_ENDS_CALL)
		t->call = of->call;
	t->flags = FLAG_CHILD;
	t->state = STATE_READY;
	t->parent = of->number;
	__builtin_memcpy(t->comm, of->comm, COMM_LENGTH);
	now = bpf_ktime_get_ns();
	clock_born(t, now);
	work_until(of, now, WORK_OF_FORK);
	t->number = __sync_fetch_and_add(&shared.threads_born, 1) + 1;
	t->pid = child->tgid;
	t->pid_here = number_here(child);
	t->tid = child->pid;
	t->task = (__u64)child;
	slot_bind(pid, slot);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int HOLDING_PROG(lifecycle_fork, struct task_struct *parent, struct task_struct *child)
{
	refusable(REFUSE_LIFECYCLE);
	return forked(parent, child);
}

/* A moment later, under a run queue lock: the parent makes the child runnable (kernel_clone in kernel/fork.c). Workers of io_uring
 * and of virtual machines get here too, although there is no sched_process_fork event for them. */
SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(lifecycle_fork_held, struct task_struct *child)
{
	refusable(REFUSE_LIFECYCLE);
	if (child->flags & (PF_IO_WORKER | PF_USER_WORKER))
		return 0;
	return forked(bpf_get_current_task_btf(), child);
}

/* What thread.renamed says; 0 if it was not renamed since it was born, or executed a program. */
enum {
	RENAMED_NOW = 1,    /* by the event that is being handled */
	RENAMED_BEFORE = 2, /* by an earlier one */
};

static __always_inline int renamed(struct task_struct *task, const char *comm)
{
	struct thread *t = thread_of(task);

	if (!t || (t->group == GROUP_CALIBRATION && !(t->flags & FLAG_HELPER)))
		return 0;
	take_name(t, comm);
	t->renamed = RENAMED_NOW;
	return 0;
}

SEC("tp_btf/task_rename")
int HOLDING_PROG(lifecycle_rename, struct task_struct *task, const char *comm)
{
	return renamed(task, comm);
}

DONE_AGAIN(lifecycle_rename_again);

/* The perf event does not say which task is renamed; it may be another thread of the process (comm_write in fs/proc/base.c). */
SEC("tp_btf/task_rename")
int HOLDING_PROG(lifecycle_rename_again, struct task_struct *task, const char *comm)
{
	struct thread *t = thread_of(task);

	if (!t)
		return 0;
	if (t->renamed != RENAMED_NOW) {
		do_again(lifecycle_rename_again);
		renamed(task, comm);
	}
	t->renamed = RENAMED_BEFORE;
	return 0;
}

/* A thread that calls execve and is not its thread group's leader takes over the leader's pid (de_thread in fs/exec.c).
 * The leader has exited by then, but its last switch may not have happened yet, or not under its own pid. */
static __noinline struct thread *take_over_pid(struct task_struct *task, __u32 old_pid)
{
	__u32 slot = slot_forget(old_pid), pid = task->pid, leader_slot = slot_forget(pid);
	struct thread *t = thread_at(slot);
	struct thread *leader = thread_at(leader_slot);

	if (leader_slot && leader && leader->task) {
		struct task_struct *first = (struct task_struct *)leader->task;

		leader->runtime = BPF_CORE_READ(first, se.sum_exec_runtime) - leader->runtime_start;
		thread_end(leader, leader_slot, bpf_ktime_get_ns());
	}
	if (!slot || !t || t->task != (__u64)task)
		return 0;
	slot_bind(pid, slot);
	t->tid = pid;
	/* It was renamed while it could not be found by its pid. */
	take_name(t, task->comm);
	t->renamed = RENAMED_BEFORE;
	return t;
}

static __always_inline int executed(struct task_struct *task, int old_pid, const char *file)
{
	struct thread *t = thread_of(task);
	struct program_record *record;
	unsigned long start, end;
	__u32 length;

	if (!t && task->pid != old_pid)
		t = take_over_pid(task, old_pid);
	if (!t || t->flags & FLAG_HELPER)
		return 0;
	t->executed = 1;
	record = ring_reserve(records, sizeof(*record));
	if (!record) {
		lose(LOST_RECORDS);
		return 0;
	}
	start = BPF_CORE_READ(task, mm, arg_start);
	end = BPF_CORE_READ(task, mm, arg_end);
	length = end > start ? end - start : 0;
	record->kind = RECORD_PROGRAM;
	record->thread = t->number;
	record->pid = task->tgid;
	record->at = bpf_ktime_get_ns();
	record->args_length = length;
	if (length > PROGRAM_ARGS)
		length = PROGRAM_ARGS;
	if (bpf_probe_read_user(record->args, length, (void *)start))
		record->args_length = 0;
	if (bpf_probe_read_kernel_str(record->file, sizeof(record->file), file) < 0)
		record->file[0] = 0;
	ring_submit(records, record);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int HOLDING_PROG(lifecycle_exec, struct task_struct *task, int old_pid, struct linux_binprm *binprm)
{
	return executed(task, old_pid, BPF_CORE_READ(binprm, filename));
}

DONE_AGAIN(lifecycle_exec_again);
DONE_AGAIN(lifecycle_exit_again);

/* For kernels where nothing prevents the first program from being preempted. */
SEC("tp_btf/sched_process_exec")
int HOLDING_PROG(lifecycle_exec_again, struct task_struct *task, int old_pid, struct linux_binprm *binprm)
{
	struct thread *t = thread_of(task);

	if (!t || !t->executed) {
		executed(task, old_pid, BPF_CORE_READ(binprm, filename));
		t = thread_of(task);
		if (t && t->executed)
			do_again(lifecycle_exec_again);
	}
	if (t)
		t->executed = 0;
	return 0;
}

struct trace_event_raw_sched_process_exec {
	__u32 __data_loc_filename; /* lower half: the file name's offset from the start of this struct */
	int old_pid;
} __attribute__((preserve_access_index));

SEC("tp/sched/sched_process_exec")
int lifecycle_exec_held(struct trace_event_raw_sched_process_exec *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t;

	executed(task, ctx->old_pid, (const char *)ctx + (ctx->__data_loc_filename & 0xffff));
	/* Just before, it was renamed to the program's name: both programs for that may have been skipped. If it had been renamed before, that is
	 * not known, and counts as lost.
	 */
	t = thread_of(task);
	if (t && t->group != GROUP_CALIBRATION) {
		take_name(t, task->comm);
		if (!t->renamed)
			do_again(lifecycle_rename_again);
		t->renamed = 0;
	}
	return 0;
}

/* How a process ends: the status that its waiter gets (wait_task_zombie in kernel/exit.c). */
static __always_inline void send_exit(struct task_struct *task, const struct thread *t)
{
	struct signal_struct *signal = BPF_CORE_READ(task, signal);
	struct exit_record *record;

	if (BPF_CORE_READ(signal, live.counter) > 0 || t->flags & FLAG_HELPER)
		return;
	record = ring_reserve(records, sizeof(*record));
	if (!record) {
		lose(LOST_RECORDS);
		return;
	}
	record->kind = RECORD_EXIT;
	record->thread = t->number;
	record->status = BPF_CORE_READ(signal, flags) & SIGNAL_GROUP_EXIT ? BPF_CORE_READ(signal, group_exit_code)
									  : BPF_CORE_READ(task, group_leader, exit_code);
	ring_submit(records, record);
}

/* It is killed in the middle of whatever it was doing: what remains is the work of exiting. */
static __always_inline void dies(struct thread *t)
{
	__u64 now;

	if (t->call == __NR_exit || t->call == __NR_exit_group)
		return;
	now = bpf_ktime_get_ns();
	thread_runs(t, now);
	clock_charge_running(t, now, call_slot_in_progress(t));
	t->call = __NR_exit_group;
}

/* Whether a process dies of a signal that it does not handle: get_signal in kernel/signal.c. */
static __always_inline bool kills(int signal, struct k_sigaction *action)
{
	if (BPF_CORE_READ(action, sa.sa_handler))
		return false;
	switch (signal) {
	case SIGCHLD:
	case SIGCONT:
	case SIGSTOP:
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
	case SIGURG:
	case SIGWINCH:
		return false;
	case SIGKILL:
		return true;
	default:
		/* The first process of a PID namespace does not. */
		return !(BPF_CORE_READ(bpf_get_current_task_btf(), signal, flags) & SIGNAL_UNKILLABLE);
	}
}

/* Writes a core dump, if it is to, and up to Linux 6.15 gives back its memory, before it is reported as exiting. */
SEC("raw_tp/signal_deliver")
int HOLDING_PROG(lifecycle_killed, int signal, void *info, struct k_sigaction *action)
{
	struct thread *t = thread_of(bpf_get_current_task_btf());

	if (t && t->number && kills(signal, action))
		dies(t);
	return 0;
}

static __always_inline int exits(struct task_struct *task)
{
	struct thread *t = thread_of(task);

	if (!t || !t->number)
		return 0;
	send_exit(task, t);
	t->flags |= FLAG_EXITING;
	dies(t);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int HOLDING_PROG(lifecycle_exit, struct task_struct *task)
{
	return exits(task);
}

SEC("tp_btf/sched_process_exit")
int HOLDING_PROG(lifecycle_exit_again, struct task_struct *task)
{
	struct thread *t = thread_of(task);

	if (!t || t->flags & FLAG_EXITING)
		return 0;
	do_again(lifecycle_exit_again);
	return exits(task);
}

SEC("tp/sched/sched_process_exit")
int lifecycle_exit_held(void *ctx)
{
	return exits(bpf_get_current_task_btf());
}

#endif
