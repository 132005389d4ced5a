/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * User stacks, identified by our own hash like kernel stacks (bpf/stack.h).
 */
#ifndef INODYNE_SAMPLES_USER_STACK_H
#define INODYNE_SAMPLES_USER_STACK_H

#include "../../bpf/maps.h"
#include "intf.h"

/* Stacks in `user_stacks` so far. */
__u32 user_stacks_kept;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, USER_STACKS);
	__type(key, __u64);
	__type(value, struct user_frames);
} user_stacks SEC(".maps");

/* User stacks under construction: a sample may interrupt the end of a call, but not another sample. */
enum user_stack_user { USER_STACK_OF_SAMPLE, USER_STACK_OF_CALL, USER_STACK_USERS };
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, USER_STACK_USERS);
	__type(key, __u32);
	__type(value, struct user_frames);
} user_stack_scratch SEC(".maps");

/* A stack being hashed, frame by frame. */
struct user_stack_walk {
	struct user_frames *frames;
	__u64 hash;
	__u32 depth;
	bool crowded;
	bool addresses; /* some frames are not in a file */
};

/* Hashes one frame. Returns 1 to stop after the last. */
static long take_user_frame(__u64 index, struct user_stack_walk *walk)
{
	struct user_frame *frame;
	const __u64 *words;
	__u64 hash = walk->hash;

	if (index >= walk->depth || index >= STACK_DEPTH)
		return 1;
	frame = &walk->frames->frame[index];
	words = (const __u64 *)frame;
	if (frame->status != BPF_STACK_BUILD_ID_VALID && walk->crowded && index) {
		frame->status = BPF_STACK_BUILD_ID_EMPTY;
		frame->place = 0;
		walk->depth = index + 1;
	} else if (frame->status != BPF_STACK_BUILD_ID_VALID) {
		walk->addresses = true;
	}
	for (__u32 word = 0; word < sizeof(struct user_frame) / sizeof(__u64); word++)
		hash = (hash ^ words[word]) * 0x9e3779b97f4a7c15ULL;
	walk->hash = hash ^ hash >> 32;
	return 0;
}

static __always_inline struct user_frames *user_frames_for(__u32 user)
{
	return bpf_map_lookup_elem(&user_stack_scratch, &user);
}

/*
 * Keeps a user stack that was taken into a scratch; returns its identity, or 0 if there is none. The kernel follows frame pointers: for a
 * program built without them, the first frame is right and the others are whatever the register held.
 *
 * Finding the build ids takes a few microseconds: affordable for samples, but not for every switch or call.
 */
static __always_inline __u64 keep_user_stack(struct user_frames *frames, long bytes, __u32 pid)
{
	struct user_stack_walk walk = {
		.frames = frames,
		.hash = 0xcbf29ce484222325ULL,
		.crowded = user_stacks_kept > USER_STACKS / 2,
	};
	__u64 hash;

	if (bytes <= 0)
		return 0;
	walk.depth = bytes / sizeof(struct user_frame);
	/*
	 * A program that computes for a long time may be sampled at any of its instructions, and without frame pointers its callers are
	 * arbitrary numbers. Before these fill the table, nearby instructions are made to count as one (compilers align functions to
	 * 16 bytes, unless told to optimise for size), and a frame that is not in a file ends the stack.
	 */
	if (walk.crowded)
		frames->frame[0].place &= ~15ULL;
	/* Not a plain loop: the verifier would explore every path through all of its iterations. */
	bpf_loop(STACK_DEPTH, take_user_frame, &walk, 0);
	frames->depth = walk.depth;
	frames->pid = walk.addresses ? pid : 0;
	hash = walk.hash ^ frames->pid;
	if (bpf_map_lookup_elem(&user_stacks, &hash))
		return hash;
	if (!bpf_map_update_elem(&user_stacks, &hash, frames, BPF_NOEXIST)) {
		__sync_fetch_and_add(&user_stacks_kept, 1);
		return hash;
	}
	/* Another CPU was first to add the same stack; or the table is full, and the sample goes without a stack. */
	return bpf_map_lookup_elem(&user_stacks, &hash) ? hash : 0;
}

#define USER_STACK_FLAGS (BPF_F_USER_STACK | BPF_F_USER_BUILD_ID)

/* The user stack of what a sample interrupted. */
static __always_inline __u64 user_stack_of_sample(void *ctx, __u32 pid)
{
	struct user_frames *frames = user_frames_for(USER_STACK_OF_SAMPLE);

	if (!frames)
		return 0;
	return keep_user_stack(frames, bpf_get_stack(ctx, frames->frame, sizeof(frames->frame), USER_STACK_FLAGS), pid);
}

/* The user stack from which the current call was made. */
static __always_inline __u64 user_stack_of_call(__u32 pid)
{
	struct user_frames *frames = user_frames_for(USER_STACK_OF_CALL);
	struct task_struct *task = bpf_get_current_task_btf();

	if (!frames)
		return 0;
	return keep_user_stack(frames, bpf_get_task_stack(task, frames->frame, sizeof(frames->frame), USER_STACK_FLAGS), pid);
}

#endif
