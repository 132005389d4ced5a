/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * System calls: counts, errors and times by (command, call). This is the hot path: every instruction here is paid
 * for by every call of the traced command, and the first few by every call of every process.
 */
#ifndef INODYNE_CALLS_PROBE_H
#define INODYNE_CALLS_PROBE_H

#include "../../bpf/refuse.h"
#include "../../bpf/run.h"
#include "../dtype/probe.bpf.h"
#include "../files/probe.bpf.h"
#include "../paths/probe.bpf.h"
#include "../requests/probe.bpf.h"
#include "../samples/probe.bpf.h"
#include "histogram.h"
#include "tables.h"

/* The root's execve: from here on everything counts. */
static __noinline int start_of_trace(struct thread *t, __u16 call, __u64 now, __u64 runtime)
{
	if (call != __NR_execve && call != __NR_execveat)
		return 0;
	t->flags &= ~FLAG_ARMED;
	t->number = __sync_fetch_and_add(&shared.threads_born, 1) + 1;
	t->runtime_start = runtime;
	clock_born(t, now);
	return 1;
}

/* A thread that was armed, or is in the middle of a call that began before it was followed. False: nothing counts yet. */
static __noinline int enter_first(struct thread *t, __u16 call, __u64 now, __u64 runtime)
{
	t->flags &= ~FLAG_CHILD;
	return t->flags & FLAG_ARMED ? start_of_trace(t, call, now, runtime) : 1;
}

SEC("raw_tp/sys_enter")
int calls_enter(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_of(task);
	__u64 now;
	__u16 call;

	refusable(REFUSE_CALLS);
	if (!t)
		return 0;
	now = bpf_ktime_get_ns();
	call = call_of(task, ctx->args[1]);
	if (t->flags & (FLAG_ARMED | FLAG_CHILD) && !enter_first(t, call, now, task->se.sum_exec_runtime))
		return 0;
	thread_runs(t, now);
	clock_enter(t, now, call);
	if (untyped_now && dtype_is_lookup(call) && !(t->flags & FLAG_HELPER))
		dtype_lookup_enter(t, task->tgid, ctx->args[0], call);
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
	/* Older verifiers lose track of a number after its negation; and the compiler, which does not, leaves out what it need not ask. */
	barrier_var(slot);
	slot &= 0xff;
	if (slot < ERRNO_SLOTS)
		stats->errnos[slot]++;
}

static __always_inline void count_call(struct thread *t, call_ref ref, __u64 wall, long result)
{
	__u32 index = bpf_get_smp_processor_id() * max_call_stats + (ref >> 16) - 1;
	struct call_stats *stats;
	__u32 bucket;

	t->calls++;
	if (!(ref >> 16)) {
		lose(LOST_CALLS);
		return;
	}
	stats = bpf_map_lookup_elem(&call_stats, &index);
	if (!stats)
		return;
	stats->calls++;
	stats->wall_ns += wall;
	stats->blocked_ns += t->call_blocked_ns;
	stats->ready_ns += t->call_ready_ns;
	/* 0 stands for "no call yet"; a call of 0 ns is not possible. */
	if (wall < stats->min_ns || !stats->min_ns)
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
		/* Of all calls, since an add is cheaper than to ask which. */
		stats->bytes += result;
	}
}

/* The end of a call that a thread was in when it was joined on a CPU, where one cannot see whether it is in a call. */
static __noinline int exit_unseen(struct thread *t, __u16 call)
{
	__u64 now = bpf_ktime_get_ns();

	t->flags &= ~FLAG_CHILD;
	thread_runs(t, now);
	t->call = call;
	clock_exit(t, now, call_slot_in_progress(t));
	return 0;
}

SEC("raw_tp/sys_exit")
int calls_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_of(task);
	__u64 now, wall;
	call_ref ref;
	__u16 call;

	if (!t)
		return 0;
	call = t->call;
	/* Armed, or the call began before it was followed. */
	if (call == CALL_NONE) {
		if (t->flags & FLAG_CHILD)
			exit_unseen(t, call_of(task, CALL_NUMBER(ctx->args[0])));
		return 0;
	}
	now = bpf_ktime_get_ns();
	thread_runs(t, now);
	ref = call_ref_of(t->group, call);
	wall = clock_exit(t, now, call_slot_of_ref(ref));
	if (t->flags & (FLAG_CHILD | FLAG_HELPER)) {
		t->flags &= ~FLAG_CHILD;
		return 0;
	}
	count_call(t, ref, wall, ctx->args[1]);
	if (t->call_blocked_ns && t->number)
		samples_blocked(ctx, t, call);
	if (record_paths && t->number)
		paths_exit(call, ctx->args[0], ctx->args[1], wall);
	if (record_files && t->number)
		files_exit(t, ctx->args[0], call, ctx->args[1], wall);
	if (record_requests && t->number)
		requests_exit(t, ctx->args[0], call, ctx->args[1], now);
	if (call == __NR_getdents64 && record_types)
		dtype_read_exit(t, ctx->args[0], ctx->args[1]);
	else if (t->flags & FLAG_FORCED)
		dtype_lookup_exit(t, ctx->args[0], call, ctx->args[1], wall);
	return 0;
}

#endif
