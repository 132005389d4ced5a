/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Stacks by our own 64-bit hash. BPF_MAP_TYPE_STACK_TRACE keeps one stack a bucket, so two stacks that share
 * a bucket are taken for each other; here a stack is kept under its full hash, or counted as lost.
 */
#ifndef INODYNE_STACK_H
#define INODYNE_STACK_H

#include <linux/errno.h>

#include "maps.h"

/*
 * Preallocated (39 MB): of memory to be had at a switch the kernel keeps a few elements of this size on each CPU, so several new
 * stacks in a row would find none (-ENOMEM).
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, struct stack_frames);
} stacks SEC(".maps");

/* A stack under construction, one for each program that can be interrupted by another. */
enum stack_user { STACK_OF_SWITCH, STACK_OF_WAKING, STACK_OF_SAMPLE, STACK_OF_OTHER, STACK_OF_REQUEST, STACK_USERS };
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, STACK_USERS);
	__type(key, __u32);
	__type(value, struct stack_frames);
} stack_scratch SEC(".maps");

/* Keeps a stack that was taken into the scratch; its identity, 0 where it could not be taken. */
static __always_inline __u64 keep_stack(struct stack_frames *frames, long bytes)
{
	__u64 hash = 0xcbf29ce484222325ULL;
	__u32 depth;

	if (bytes <= 0) {
		lose(LOST_STACKS);
		return 0;
	}
	depth = bytes / sizeof(__u64);
	for (__u32 i = 0; i < STACK_DEPTH; i++) {
		if (i >= depth)
			break;
		hash = (hash ^ frames->address[i]) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 32;
	}
	if (bpf_map_lookup_elem(&stacks, &hash))
		return hash;
	frames->depth = depth;
	frames->truncated = depth == STACK_DEPTH;
	/* -EEXIST: another CPU was faster with the same stack. */
	if (bpf_map_update_elem(&stacks, &hash, frames, BPF_NOEXIST) && !bpf_map_lookup_elem(&stacks, &hash))
		lose(LOST_STACKS);
	return hash;
}

/*
 * The current kernel stack's identity; 0 where it could not be taken, which is a loss unless there may be none.
 *
 * The kernel has one buffer for stacks at each level of interrupts (kernel/events/callchain.c). Whom an interrupt wakes on its way out
 * (wakeup_softirqd in kernel/softirq.c, always where the kernel is PREEMPT_RT) is woken at the level of what it interrupted; if that was
 * having its stack taken, too, there is no buffer left.
 */
static __always_inline __u64 take_stack_if_any(void *ctx, __u32 user, bool may_be_none)
{
	struct stack_frames *frames = bpf_map_lookup_elem(&stack_scratch, &user);
	long bytes;

	if (!frames)
		return 0;
	bytes = bpf_get_stack(ctx, frames->address, sizeof(frames->address), 0);
	if (bytes == -EFAULT && may_be_none)
		return 0;
	/*
	 * A sample may hit any instruction, and a stack for each of them would fill the table. Functions of the kernel begin at
	 * multiples of 16 bytes (arch/x86/Kconfig: FUNCTION_ALIGNMENT_16B), so the function stays the same.
	 */
	if (user == STACK_OF_SAMPLE)
		frames->address[0] &= ~15ULL;
	return keep_stack(frames, bytes);
}

static __always_inline __u64 take_stack(void *ctx, __u32 user)
{
	return take_stack_if_any(ctx, user, false);
}

#endif
