/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Syscalls: counts, errors and times by (command, call). This is the hot path: every instruction here is paid
 * for by every call of the traced command, and the first few by every call of every process.
 */
#ifndef INODYNE_CALLS_PROBE_H
#define INODYNE_CALLS_PROBE_H

#include "../../bpf/cgroup.h"
#include "../../bpf/preempt.h"
#include "../../bpf/refuse.h"
#include "../../bpf/run.h"
#include "../dtype/probe.bpf.h"
#include "../files/probe.bpf.h"
#include "../paths/probe.bpf.h"
#include "../requests/probe.bpf.h"
#include "../samples/probe.bpf.h"
#include "histogram.h"
#include "tables.h"
#include "timed.h"

/* Set before loading: 0 if only the accounts of threads are wanted, without a table of calls. */
const volatile __u32 record_calls = 1;

/* The root's execve: from here on, everything counts. */
static __noinline int start_of_trace(struct thread *t, __u16 call, __u64 now, __u64 runtime)
{
	if (call != __NR_execve && call != __NR_execveat)
		return 0;
	t->flags &= ~FLAG_ARMED;
	t->number = __sync_fetch_and_add(&shared.threads_born, 1) + 1;
	t->runtime_start = runtime;
	t->cgroup = cgroup_here();
	cgroup_show(t->cgroup);
	clock_born(t, now);
	return 1;
}

/* A thread that was armed, or is in the middle of a call that began before it was followed. False: nothing counts yet. */
static __noinline int enter_first(struct thread *t, __u16 call, __u64 now, __u64 runtime)
{
	t->flags &= ~FLAG_CHILD;
	return t->flags & FLAG_ARMED ? start_of_trace(t, call, now, runtime) : 1;
}

static __always_inline void call_enters(struct task_struct *task, struct thread *t, __u64 regs, __u64 number)
{
	__u16 call = call_of(task, number);
	__u64 now;

	if (!call_is_timed(t)) {
		clock_enter_untimed(t, call);
		return;
	}
	now = bpf_ktime_get_ns();
	if (t->flags & (FLAG_ARMED | FLAG_CHILD) && !enter_first(t, call, now, task->se.sum_exec_runtime))
		return;
	thread_runs(t, now);
	clock_enter(t, now, call);
	if (untyped_now && dtype_is_lookup(call) && !(t->flags & FLAG_HELPER))
		dtype_lookup_enter(t, task->tgid, regs, call);
}

SEC("raw_tp/sys_enter")
int calls_enter(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t;

	refusable(REFUSE_CALLS);
	cpu_hold();
	t = thread_of(task);
	if (t)
		call_enters(task, t, ctx->args[0], ctx->args[1]);
	cpu_release();
	return 0;
}

DONE_AGAIN(calls_enter_again);
DONE_AGAIN(calls_exit_again);

/* Where programs cannot avoid preemption: handles entries for which the first one was skipped, as then no call is in progress yet. */
SEC("raw_tp/sys_enter")
int calls_enter_again(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t;

	cpu_hold();
	t = thread_of(task);
	if (t && t->call == CALL_NONE) {
		call_enters(task, t, ctx->args[0], ctx->args[1]);
		if (t->call != CALL_NONE)
			do_again(calls_enter_again);
	}
	cpu_release();
	return 0;
}

/* The address of the current task's saved user registers, as a scalar: for the verifier, only the difference of two pointers is one.
 * The task is fetched again, as the compiler would otherwise use the number in its account, which is equal. */
static __always_inline __u64 regs_of(struct task_struct *task, struct thread *t)
{
	__u64 below = (__u64)bpf_task_pt_regs(task) - (__u64)bpf_get_current_task_btf();

	barrier_var(below);
	return t->task + below;
}

struct trace_event_raw_sys_enter {
	long id;
} __attribute__((preserve_access_index));

SEC("tp/raw_syscalls/sys_enter")
int calls_enter_held(struct trace_event_raw_sys_enter *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t;

	refusable(REFUSE_CALLS);
	t = thread_of(task);
	if (t)
		call_enters(task, t, regs_of(task, t), ctx->id);
	return 0;
}

static __always_inline void count_errno(struct call_stats *stats, long result)
{
	__u32 error = -result, slot = error;

	if (error >= ERRNO_PLAIN) {
		slot = error - ERRNO_RESTART_FIRST + ERRNO_PLAIN;
		if (error < ERRNO_RESTART_FIRST || slot >= ERRNO_OTHERS)
			slot = ERRNO_OTHERS;
	}
	stats->errors++;
	/* Older verifiers lose track of a scalar after it is negated, while the compiler does not, and drops checks it finds redundant. */
	barrier_var(slot);
	slot &= 0xff;
	if (slot < ERRNO_SLOTS)
		stats->errnos[slot]++;
}

static __always_inline void count_call(struct thread *t, call_ref ref, __u64 wall, long result)
{
	struct call_stats *stats;
	__u32 bucket;

	t->calls++;
	if (!record_calls)
		return;
	if (!(ref >> 16)) {
		lose(LOST_CALLS);
		return;
	}
	stats = call_stats_at(((ref >> 16) - 1) * call_cpus + bpf_get_smp_processor_id());
	if (!stats) {
		lose(LOST_CALLS);
		return;
	}
	stats->calls++;
	stats->wall_ns += wall;
	stats->blocked_ns += t->call_blocked_ns;
	stats->ready_ns += t->call_ready_ns;
	/* 0 stands for "no call yet", and for the time of a call that was answered, which is not known: less 1, it is the largest number. */
	if (wall - 1 < stats->min_ns - 1)
		stats->min_ns = wall;
	if (wall > stats->max_ns)
		stats->max_ns = wall;
	bucket = bucket_of(wall);
	if (bucket < HISTOGRAM_BUCKETS)
		stats->histogram[bucket]++;
	if (result < 0 && result >= -4095) {
		count_errno(stats, result);
		stats->failed_ns += wall;
	} else {
		/* For all calls, since adding is cheaper than checking which. */
		stats->bytes += result;
	}
}

/*
 * The end of a call that seccomp or a ptracer answered instead of the kernel: no tracepoint fires at its beginning (syscall_trace_enter in
 * kernel/entry/common.c and arch/arm64/kernel/ptrace.c), so how long it took is unknown and counts as time outside of calls. Global, so
 * that it is verified only once.
 */
__noinline int exit_answered(struct thread *t, __u16 call, long result)
{
	if (!t)
		return 0;
	t->call_blocked_ns = 0;
	t->call_ready_ns = 0;
	count_call(t, call_ref_of(t->group, call), 0, result);
	return 0;
}

/*
 * Whether a call ends because its thread is being killed: it never returns to user space. Everything that kills a thread (do_group_exit,
 * complete_signal and zap_other_threads in kernel/signal.c) sets the SIGKILL bit in the thread's own pending signals.
 */
static __always_inline bool ends_by_kill(struct task_struct *task, long result)
{
	if (result != -EINTR && (result > -ERRNO_RESTART_FIRST || result <= -ERRNO_RESTART_FIRST - ERRNO_RESTARTS))
		return false;
	return BPF_CORE_READ(task, pending.signal.sig[0]) & (1 << (SIGKILL - 1));
}

/* The end of a call that a thread was in when it was joined while on a CPU, where it cannot be told whether a thread is in a call. */
static __noinline int exit_unseen(struct thread *t, __u16 call)
{
	__u64 now = bpf_ktime_get_ns();

	t->flags &= ~FLAG_CHILD;
	thread_runs(t, now);
	t->call = call;
	clock_exit(t, now, call_slot_in_progress(t));
	return 0;
}

static __always_inline void call_exits(struct task_struct *task, struct thread *t, __u64 regs, long result)
{
	__u64 now, wall;
	call_ref ref;
	__u16 call;

	call = t->call;
	/* Armed, or the call began before it was followed. */
	if (call == CALL_NONE) {
		if (t->flags & FLAG_CHILD)
			exit_unseen(t, call_of(task, CALL_NUMBER(regs)));
		else if (!(t->flags & (FLAG_ARMED | FLAG_HELPER)) && (long)CALL_NUMBER(regs) >= 0)
			exit_answered(t, call_of(task, CALL_NUMBER(regs)), result);
		return;
	}
	if (clock_exit_untimed(t)) {
		t->calls++;
		return;
	}
	now = bpf_ktime_get_ns();
	thread_runs(t, now);
	ref = call_ref_of(t->group, call);
	wall = clock_exit(t, now, call_slot_of_ref(ref));
	if (t->flags & (FLAG_CHILD | FLAG_HELPER)) {
		t->flags &= ~FLAG_CHILD;
		return;
	}
	if (ends_by_kill(task, result))
		return;
	count_call(t, ref, wall, result);
	if (t->call_blocked_ns && t->number)
		samples_blocked(t, call);
	if (record_paths && t->number)
		paths_exit(call, regs, result, wall);
	if (record_files && t->number)
		files_exit(t, regs, call, result, wall);
	if (record_requests && t->number)
		requests_exit(t, regs, call, result, now);
	if (call == __NR_getdents64 && record_types)
		dtype_read_exit(t, regs, result);
	else if (t->flags & FLAG_FORCED)
		dtype_lookup_exit(t, regs, call, result, wall);
}

SEC("raw_tp/sys_exit")
int calls_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t;

	cpu_hold();
	t = thread_of(task);
	if (t)
		call_exits(task, t, ctx->args[0], ctx->args[1]);
	cpu_release();
	return 0;
}

/* Likewise for exits, as then the call is still in progress. */
SEC("raw_tp/sys_exit")
int calls_exit_again(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t;

	cpu_hold();
	t = thread_of(task);
	if (t && t->call != CALL_NONE) {
		do_again(calls_exit_again);
		call_exits(task, t, ctx->args[0], ctx->args[1]);
	}
	cpu_release();
	return 0;
}

struct trace_event_raw_sys_exit {
	long ret;
} __attribute__((preserve_access_index));

SEC("tp/raw_syscalls/sys_exit")
int calls_exit_held(struct trace_event_raw_sys_exit *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_of(task);

	if (t)
		call_exits(task, t, regs_of(task, t), ctx->ret);
	return 0;
}

#endif
