/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Stacks by our own 64-bit hash. BPF_MAP_TYPE_STACK_TRACE keeps one stack a bucket, so two stacks that share
 * a bucket are taken for each other; here a stack is kept under its full hash, or counted as lost.
 */
#ifndef INODYNE_STACK_H
#define INODYNE_STACK_H

#include "maps.h"

/* The current kernel stack's identity; 0 where it could not be taken. */
static __always_inline __u64 take_stack(void *ctx, __u32 user)
{
	struct stack_frames *frames = bpf_map_lookup_elem(&stack_scratch, &user);
	__u64 hash = 0xcbf29ce484222325ULL;
	long bytes;
	__u32 depth;

	if (!frames)
		return 0;
	bytes = bpf_get_stack(ctx, frames->address, sizeof(frames->address), 0);
	if (bytes <= 0) {
		lose(LOST_STACKS);
		return 0;
	}
	depth = bytes / sizeof(__u64);
	/*
	 * A sample may hit any instruction, and a stack for each of them would fill the table. Functions of the kernel begin at
	 * multiples of 16 bytes (arch/x86/Kconfig: FUNCTION_ALIGNMENT_16B), so the function stays the same.
	 */
	if (user == STACK_OF_SAMPLE)
		frames->address[0] &= ~15ULL;
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
 * The identity of the current stack in user mode; 0 where there is none. The kernel follows frame pointers: of a program
 * that keeps none, the first frame is right and the others are whatever the register held.
 *
 * Finding the build ids costs some microseconds: for samples, not for every switch or call.
 */
static __always_inline __u64 take_user_stack(void *ctx, __u32 pid, __u32 user)
{
	struct user_frames *frames = bpf_map_lookup_elem(&user_stack_scratch, &user);
	__u64 hash = 0xcbf29ce484222325ULL;
	bool addresses = false, crowded = shared.user_stacks > USER_STACKS / 2;
	__u32 depth;
	long bytes;

	if (!frames)
		return 0;
	bytes = bpf_get_stack(ctx, frames->frame, sizeof(frames->frame), BPF_F_USER_STACK | BPF_F_USER_BUILD_ID);
	if (bytes <= 0)
		return 0;
	depth = bytes / sizeof(struct user_frame);
	/*
	 * A program that computes for long is seen at any of its instructions, and without frame pointers its callers are any numbers.
	 * Before they fill the table, instructions close together count as one (compilers begin functions at multiples of 16 bytes,
	 * unless they are told to save room), and what lies in no file ends the stack.
	 */
	if (crowded)
		frames->frame[0].place &= ~15ULL;
	for (__u32 i = 0; i < STACK_DEPTH; i++) {
		struct user_frame *frame = &frames->frame[i];
		const __u64 *words = (const __u64 *)frame;

		if (i >= depth)
			break;
		if (frame->status != BPF_STACK_BUILD_ID_VALID && crowded && i) {
			frame->status = BPF_STACK_BUILD_ID_EMPTY;
			frame->place = 0;
			depth = i + 1;
		} else if (frame->status != BPF_STACK_BUILD_ID_VALID) {
			addresses = true;
		}
		for (__u32 word = 0; word < sizeof(struct user_frame) / sizeof(__u64); word++)
			hash = (hash ^ words[word]) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 32;
	}
	frames->depth = depth;
	frames->pid = addresses ? pid : 0;
	hash ^= frames->pid;
	if (bpf_map_lookup_elem(&user_stacks, &hash))
		return hash;
	if (!bpf_map_update_elem(&user_stacks, &hash, frames, BPF_NOEXIST)) {
		__sync_fetch_and_add(&shared.user_stacks, 1);
		return hash;
	}
	/* Another CPU was faster with the same stack; or the table is full, and the sample is one without a stack. */
	return bpf_map_lookup_elem(&user_stacks, &hash) ? hash : 0;
}

#endif
