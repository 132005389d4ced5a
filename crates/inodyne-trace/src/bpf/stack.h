/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Stacks, identified by our own 64-bit hash. BPF_MAP_TYPE_STACK_TRACE keeps one stack per bucket, so two stacks that share
 * a bucket are mistaken for each other; here a stack is sent to user space under its full hash, or counted as lost.
 */
#ifndef INODYNE_STACK_H
#define INODYNE_STACK_H

#include "maps.h"
#include "ring.h"

/* Each new stack, once. */
RING(stacks);

/* Identities of the stacks that were sent. One that finds no room here is sent again, and user space keeps it once. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, __u8);
} stacks_sent SEC(".maps");

/* A stack under construction, one for each program that can be interrupted by another. */
enum stack_user {
	/* These remember stacks (known_stack.h). */
	STACK_OF_SWITCH,
	STACK_OF_WAKING,
	STACK_OF_REQUEST,
	STACK_OF_INTERRUPT,
	KNOWING_STACK_USERS,

	STACK_OF_SAMPLE = KNOWING_STACK_USERS,
	STACK_OF_OTHER,
	STACK_USERS,
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, STACK_USERS);
	__type(key, __u32);
	__type(value, struct stack_record);
} stack_scratch SEC(".maps");

/*
 * Addresses at the start of a stack taken by a tracepoint program: its own and its caller's. They are left out of the stack's identity,
 * since the caller's differs while the kernel measures the run time of BPF programs (__bpf_prog_run in include/linux/filter.h).
 */
#define OWN_ADDRESSES 2

/* The hash of the addresses from this one on. Not static, and so verified only once. */
__noinline __u64 stack_hash(struct stack_record *record, __u32 from)
{
	__u64 hash = 0xcbf29ce484222325ULL;

	if (!record)
		return 0;
	for (__u32 i = 0; i < STACK_DEPTH; i++) {
		__u32 at = from + i;

		if (at >= record->depth)
			break;
		/* Masked, since some verifiers forget the bounds that a comparison gives. */
		barrier_var(at);
		at &= STACK_DEPTH - 1;
		hash = (hash ^ record->address[at]) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 32;
	}
	return hash;
}

/* Sends the stack in the scratch record if it is new; returns its identity, or 0 if it was not taken. `own` addresses are our own. */
static __always_inline __u64 send_stack(struct stack_record *record, long bytes, __u32 own)
{
	__u64 hash;
	__u32 depth;
	__u8 sent = 1;

	if (bytes <= 0) {
		lose(LOST_STACKS);
		return 0;
	}
	depth = bytes / sizeof(__u64);
	record->depth = depth;
	hash = stack_hash(record, own);
	if (bpf_map_lookup_elem(&stacks_sent, &hash))
		return hash;
	record->stack = hash;
	record->truncated = depth == STACK_DEPTH;
	if (depth > STACK_DEPTH)
		return 0;
	if (!ring_send(stacks, record, sizeof(*record) - (STACK_DEPTH - depth) * sizeof(__u64))) {
		lose(LOST_STACKS);
		record->depth = 0; /* keeps it from being remembered (known_stack.h), so that the next one is sent */
	} else {
		bpf_map_update_elem(&stacks_sent, &hash, &sent, BPF_ANY);
	}
	return hash;
}

/* The current kernel stack's identity; 0 if it could not be taken. */
static __always_inline __u64 take_stack(void *ctx, __u32 user)
{
	struct stack_record *record = bpf_map_lookup_elem(&stack_scratch, &user);
	long bytes;

	if (!record)
		return 0;
	bytes = bpf_get_stack(ctx, record->address, sizeof(record->address), 0);
	/*
	 * A sample may hit any instruction, and a separate stack for each would fill the table. Kernel functions begin at
	 * multiples of 16 bytes (arch/x86/Kconfig: FUNCTION_ALIGNMENT_16B), so the function stays the same.
	 */
	if (user == STACK_OF_SAMPLE)
		record->address[0] &= ~15ULL;
	return send_stack(record, bytes, user == STACK_OF_SAMPLE ? 0 : OWN_ADDRESSES);
}

#endif
