/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Recognises a stack that is the same as the last time without unwinding it.
 *
 * Unwinding is the largest cost at a switch (a walk through the ORC tables for each frame), and a thread that waits often mostly waits
 * in the same place. So the last stack is remembered for a thread and a syscall: each return address, and its place on the stack. If
 * the same addresses are in the same places again, it is the same stack: the first return address is at a fixed distance from
 * a program's arguments, and a function's return address determines the size of its frame, so each tells where the next one is.
 *
 * Distances are counted from the program's arguments (in bpf_trace_run's frame), except for the last address, that of the kernel
 * entry, which is counted from the top of the stack: the kernel leaves a random gap in between (RANDOMIZE_KSTACK_OFFSET).
 *
 * The unwinder does not say where it found an address, and there are stale values between the frames. So the addresses are searched
 * for in all words: in their order from below, and again from above. If both searches find the same places, there are no others, and
 * the stack is remembered. Otherwise, and if the processor signs its return addresses (arm64), each stack is unwound as usual.
 */
#ifndef INODYNE_KNOWN_STACK_H
#define INODYNE_KNOWN_STACK_H

#include "stack.h"
#include "task.h"

enum known_stack_limits {
	KNOWN_STACKS = 64,    /* for each program on each CPU: a power of two */
	KNOWN_BELOW = OWN_ADDRESSES, /* they are below the arguments */
	KNOWN_PAYS = 4,       /* remembering a stack costs as much as unwinding this many */
	KNOWN_PAUSE_MOST = 63, /* most stacks not remembered after one that did not pay off: a power of two minus one */
};

/* For tests: unwinds a recognised stack as well. */
const volatile __u32 check_known_stacks = 0;
__u64 known_stacks_met;
__u64 known_stacks_wrong;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, KNOWING_STACK_USERS * KNOWN_STACKS);
	__type(key, __u32);
	__type(value, struct known_stack);
} known_stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, KNOWING_STACK_USERS);
	__type(key, __u32);
	__type(value, struct stack_words);
} stack_words SEC(".maps");

/*
 * What is remembered of the current task's stacks; null if running on a stack other than its own. A program uses it with preemption
 * disabled, and interrupts do not run the program here again: they are on a stack of the CPU.
 */
static __always_inline struct known_stack *known_stack_of(void *ctx, struct task_struct *task, __u16 call, enum stack_user user)
{
	__u32 at = ((__u32)task->pid * 31 + call) % KNOWN_STACKS + user * KNOWN_STACKS;
	struct known_stack *known = bpf_map_lookup_elem(&known_stacks, &at);

	if (!known)
		return 0;
	*(void *volatile *)&known->arguments = ctx;
	known->top = (__u64)task->stack + kernel_stack_bytes;
	return on_stack_of(task, *(volatile __u64 *)&known->arguments) ? known : 0;
}

/* Stands for any eight-byte integer of the kernel. */
struct timespec64 {
	__s64 tv_sec;
} __attribute__((preserve_access_index));

/* Its type ID in the kernel's BTF; 0 if it has none. Not found by CO-RE, which may be given only some of the kernel's types. */
const volatile __u32 number_of_word;

void *bpf_rdonly_cast(const void *object, __u32 type) __weak __ksym;

/* Reads a word; false if there is none. The cast makes this one instruction (from Linux 6.2 on), which reads 0 if there is none. */
static __always_inline bool word_at(__u64 place, __u64 *word)
{
	__u32 type = number_of_word;

	if (type && bpf_ksym_exists(bpf_rdonly_cast)) {
		struct timespec64 *at = bpf_rdonly_cast((void *)place, type);

		*word = at->tv_sec;
		return true;
	}
	return !bpf_probe_read_kernel(word, sizeof(*word), (void *)place);
}

/* Whether the current stack is the remembered one. Not static, and so verified only once. */
__noinline int is_known(struct known_stack *known)
{
	__u64 arguments, word;
	__u32 depth;

	if (!known || !known->stack)
		return false;
	arguments = *(volatile __u64 *)&known->arguments;
	depth = known->depth;
	for (__u32 i = 0; i < KNOWN_DEPTH; i++) {
		__u64 place = arguments + 8 * known->words[i];

		if (i + 1 == depth)
			place = known->top - 8 * known->words[i];
		if (!word_at(place, &word) || word != known->address[i])
			return false;
		if (i + 1 == depth)
			return true;
	}
	return false;
}

struct stack_search {
	struct known_stack *known;
	const struct stack_words *words;
	__u32 count;
	__u32 found;
};

/* From below: finds the place of the next address. */
static long search_upwards(__u64 at, struct stack_search *search)
{
	struct known_stack *known = search->known;
	__u32 next = search->found;

	if (at >= KNOWN_WORDS || next >= KNOWN_DEPTH || next >= known->depth)
		return 1;
	if (search->words->word[at] == known->address[next]) {
		known->words[next] = at;
		search->found = next + 1;
	}
	return 0;
}

/* From above: stops if an address is in another place, too. */
static long search_downwards(__u64 steps, struct stack_search *search)
{
	struct known_stack *known = search->known;
	__u64 at = search->count - 1 - steps;
	__u32 next = search->found - 1;

	if (at >= KNOWN_WORDS || next >= KNOWN_DEPTH)
		return 1;
	if (search->words->word[at] == known->address[next]) {
		if (known->words[next] != at)
			return 1;
		search->found = next;
	}
	return 0;
}

/* Finds the place of each address; false unless each has only one. */
static __always_inline bool find_places(struct known_stack *known, __u32 user)
{
	struct stack_search search = { .known = known };
	__u64 bytes = known->top - known->arguments;
	struct stack_words *words = bpf_map_lookup_elem(&stack_words, &user);
	__u32 last = known->depth - 1;

	if (!words || bytes >= sizeof(words->word))
		return false;
	/* Masked, since some verifiers forget the bounds that a comparison gives. */
	barrier_var(bytes);
	bytes &= sizeof(words->word) - 1;
	if (bpf_probe_read_kernel(words->word, bytes, (void *)known->arguments))
		return false;
	search.words = words;
	search.count = bytes / sizeof(__u64);
	bpf_loop(search.count, search_upwards, &search, 0);
	if (search.found != known->depth)
		return false;
	bpf_loop(search.count, search_downwards, &search, 0);
	if (search.found)
		return false;
	barrier_var(last);
	last &= KNOWN_DEPTH - 1;
	known->words[last] = search.count - known->words[last];
	return true;
}

/* Remembers the current stack, which was just taken into the scratch record. */
__noinline int remember_stack(struct known_stack *known, __u64 stack, __u32 user)
{
	struct stack_record *record = bpf_map_lookup_elem(&stack_scratch, &user);
	__u32 depth;

	if (!known || !record)
		return 0;
	if (known->pause) {
		known->pause--;
		return 0;
	}
	if (known->met >= KNOWN_PAYS)
		known->next_pause = 0;
	else
		known->next_pause = (known->next_pause * 2 + 1) & KNOWN_PAUSE_MOST;
	known->pause = known->next_pause;
	known->met = 0;
	known->stack = 0;
	depth = record->depth - KNOWN_BELOW;
	if (!stack || depth < 2 || depth > KNOWN_DEPTH)
		return 0;
	known->depth = depth;
	__builtin_memcpy(known->address, record->address + KNOWN_BELOW, sizeof(known->address));
	if (find_places(known, user))
		known->stack = stack;
	return 0;
}

/* The current kernel stack's identity, like take_stack_if_any. */
static __always_inline __u64 take_known_stack(void *ctx, struct known_stack *known, enum stack_user user, bool may_be_none)
{
	__u64 expected = 0, stack;

	if (known && is_known(known)) {
		known->met++;
		expected = known->stack;
		if (!check_known_stacks)
			return expected;
	}
	stack = take_stack_if_any(ctx, user, may_be_none);
	if (expected) {
		__sync_fetch_and_add(&known_stacks_met, 1);
		if (stack != expected)
			__sync_fetch_and_add(&known_stacks_wrong, 1);
	} else if (known) {
		remember_stack(known, stack, user);
	}
	return stack;
}

#endif
