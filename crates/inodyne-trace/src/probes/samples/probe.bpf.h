/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * On-CPU samples, from a timer on each CPU: what the kernel did inside a call, how much of the time outside of calls was
 * really page faults and interrupts, and from where in the program.
 *
 * Off the CPU there is no timer. Instead, the end of a call counts as one sample for every period that its thread was blocked since
 * the last one: a program that waits a million times for a microsecond pays no more than one that waits for a second.
 */
#ifndef INODYNE_SAMPLES_PROBE_H
#define INODYNE_SAMPLES_PROBE_H

#include "../../bpf/refuse.h"
#include "../../bpf/stack.h"
#include "../../bpf/task.h"
#include "intf.h"
#include "user_stack.h"

const volatile __u64 blocked_sample_ns = 0; /* 0: off-CPU time is not sampled */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 131072);
	__type(key, struct sample_key);
	__type(value, __u64);
} samples SEC(".maps");

static __always_inline void count_sample(const struct sample_key *key, __u64 times)
{
	__u64 *count = bpf_map_lookup_elem(&samples, key);

	if (count)
		__sync_fetch_and_add(count, times);
	else if (bpf_map_update_elem(&samples, key, &times, BPF_NOEXIST))
		lose_some(LOST_SAMPLES, times);
}

SEC("perf_event")
int samples_take(struct bpf_perf_event_data *ctx)
{
	struct thread *t = thread_of(bpf_get_current_task_btf());
	struct sample_key key = {};

	refusable(REFUSE_SAMPLES);
	if (!t || !t->number)
		return 0;
	key.thread = t->number;
	key.call = t->call;
	key.user_mode = IN_USER_MODE(ctx->regs);
	if (!key.user_mode)
		key.stack = take_stack(ctx, STACK_OF_SAMPLE);
	/* While execve replaces one program by another, there is none. For a helper, it would not be known later whose files its frames are in. */
	if (!is_execve(t->call) && !(t->flags & FLAG_HELPER))
		key.user_stack = user_stack_of_sample(ctx, t->pid_here);
	count_sample(&key, 1);
	return 0;
}

/* At the end of a call in which the thread was blocked. */
__noinline int samples_blocked(struct thread *t, __u16 call)
{
	struct sample_key key = { .blocked = 1 };
	__u64 times;

	if (!t || !blocked_sample_ns || is_execve(call))
		return 0;
	t->unseen_ns += t->call_blocked_ns;
	times = t->unseen_ns / blocked_sample_ns;
	if (!times)
		return 0;
	t->unseen_ns -= times * blocked_sample_ns;
	key.thread = t->number;
	key.call = call;
	key.user_stack = user_stack_of_call(t->pid_here);
	count_sample(&key, times);
	return 0;
}

#endif
