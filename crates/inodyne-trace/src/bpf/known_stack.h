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

#include <linux/errno.h>

#include "folio.h"
#include "stack.h"
#include "task.h"
#include "word.h"

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
 * What is remembered of the current task's stacks while it does this, a syscall for example; null if running on a stack other than its
 * own. A program uses it with preemption disabled, and interrupts do not run the program here again: they are on a stack of the CPU.
 */
static __always_inline struct known_stack *known_stack_of(void *ctx, struct task_struct *task, __u32 doing, enum stack_user user)
{
	__u32 at = ((__u32)task->pid * 31 + doing) % KNOWN_STACKS + user * KNOWN_STACKS;
	struct known_stack *known = bpf_map_lookup_elem(&known_stacks, &at);

	if (!known)
		return 0;
	*(void *volatile *)&known->arguments = ctx;
	known->top = (__u64)task->stack + kernel_stack_bytes;
	return on_stack_of(task, *(volatile __u64 *)&known->arguments) ? known : 0;
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

/* Finds the first place of each address, up to one that is nowhere above those before it. */
static __always_inline void find_first_places(struct stack_search *search, __u32 user)
{
	struct known_stack *known = search->known;
	__u64 bytes = known->top - known->arguments;
	struct stack_words *words = bpf_map_lookup_elem(&stack_words, &user);

	search->found = 0;
	if (!words || bytes >= sizeof(words->word))
		return;
	/* Masked, since some verifiers forget the bounds that a comparison gives. */
	barrier_var(bytes);
	bytes &= sizeof(words->word) - 1;
	if (bpf_probe_read_kernel(words->word, bytes, (void *)known->arguments))
		return;
	search->words = words;
	search->count = bytes / sizeof(__u64);
	bpf_loop(search->count, search_upwards, search, 0);
}

/* After that, if all were found: whether they are nowhere else. */
static __always_inline bool have_one_place(struct stack_search *search)
{
	struct known_stack *known = search->known;
	__u32 last = known->depth - 1;

	bpf_loop(search->count, search_downwards, search, 0);
	if (search->found)
		return false;
	barrier_var(last);
	last &= KNOWN_DEPTH - 1;
	known->words[last] = search->count - known->words[last];
	return true;
}

/* Remembers the current stack, which was just taken into the scratch record. */
__noinline int remember_stack(struct known_stack *known, __u64 stack, __u32 user)
{
	struct stack_record *record = bpf_map_lookup_elem(&stack_scratch, &user);
	struct stack_search search = { .known = known };
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
	find_first_places(&search, user);
	if (search.found == depth && have_one_place(&search))
		known->stack = stack;
	return 0;
}

/* The current kernel stack's identity, like take_stack. */
static __always_inline __u64 take_known_stack(void *ctx, struct known_stack *known, enum stack_user user)
{
	__u64 expected = 0, stack;

	if (known && is_known(known)) {
		known->met++;
		expected = known->stack;
		if (!check_known_stacks)
			return expected;
	}
	stack = take_stack(ctx, user);
	if (expected) {
		__sync_fetch_and_add(&known_stacks_met, 1);
		if (stack != expected)
			__sync_fetch_and_add(&known_stacks_wrong, 1);
	} else if (known) {
		remember_stack(known, stack, user);
	}
	return stack;
}

/*
 * Interrupts
 *
 * An interrupt has a stack of its CPU, which ends with a page; its last word is where the interrupted stack is, and the word before is the
 * return address of the first function that is called on it (call_on_stack in arch/x86/include/asm/irq_stack.h). What the interrupted task was doing differs each time, and has nothing to do with the wakeup. So a
 * stack in an interrupt ends where the interrupt's own does, and the places of its addresses, which tell where that is, are looked for
 * each time that it is not the remembered one.
 */

/* What is remembered of such stacks; null if the current one does not end like that. */
static __always_inline struct known_stack *known_interrupt_of(void *ctx, struct task_struct *interrupted, __u32 doing)
{
	__u32 at = doing % KNOWN_STACKS + STACK_OF_INTERRUPT * KNOWN_STACKS;
	struct known_stack *known = bpf_map_lookup_elem(&known_stacks, &at);
	__u64 below;

	if (!known)
		return 0;
	*(void *volatile *)&known->arguments = ctx;
	known->top = (*(volatile __u64 *)&known->arguments | (page_bytes - 1)) + 1;
	return word_at(known->top - sizeof(below), &below) && on_stack_of(interrupted, below) ? known : 0;
}

enum { REMEMBERED = 0x100 };

/* Looks for the addresses of the stack in the scratch record, of this depth. Returns how many of them are on the interrupt's own, 0 if
 * that cannot be told; plus REMEMBERED if they can be recognised there. Not static, and so verified only once. */
__noinline int find_interrupt(struct known_stack *known, __u32 depth)
{
	__u32 user = STACK_OF_INTERRUPT, own;
	struct stack_record *record = bpf_map_lookup_elem(&stack_scratch, &user);
	struct stack_search search = { .known = known };
	__u64 first;

	if (!known || !record || depth > STACK_DEPTH)
		return 0;
	known->stack = 0;
	known->depth = depth - KNOWN_BELOW < KNOWN_DEPTH ? depth - KNOWN_BELOW : KNOWN_DEPTH;
	__builtin_memcpy(known->address, record->address + KNOWN_BELOW, sizeof(known->address));
	find_first_places(&search, user);
	own = search.found;
	if (own < 2 || own >= KNOWN_DEPTH)
		return 0;
	/* All of them are there, unless somebody has replaced an address, as a kretprobe does. */
	if (!word_at(known->top - 2 * sizeof(first), &first) || first != known->address[(own - 1) & (KNOWN_DEPTH - 1)])
		return 0;
	known->depth = own;
	return have_one_place(&search) ? own + REMEMBERED : own;
}

/*
 * The identity of the current stack in an interrupt, up to where its own stack ends if that is known; 0 if there is none.
 *
 * The kernel has one stack buffer for each interrupt level (kernel/events/callchain.c). A thread that an interrupt wakes on its way out
 * (wakeup_softirqd in kernel/softirq.c, always on PREEMPT_RT) is woken at the level of the interrupted context; if a stack was just being
 * taken there, too, no buffer is left.
 */
static __always_inline __u64 take_interrupt_stack(void *ctx, struct known_stack *known)
{
	__u32 user = STACK_OF_INTERRUPT, own = 0;
	struct stack_record *record = bpf_map_lookup_elem(&stack_scratch, &user);
	__u64 expected = 0, stack;
	long bytes;

	if (known && is_known(known)) {
		expected = known->stack;
		if (!check_known_stacks)
			return expected;
	}
	if (!record)
		return 0;
	bytes = bpf_get_stack(ctx, record->address, sizeof(record->address), 0);
	if (bytes == -EFAULT)
		return 0;
	if (known && bytes > (long)(KNOWN_BELOW * sizeof(__u64)))
		own = find_interrupt(known, bytes / sizeof(__u64));
	if (own)
		bytes = ((own & (KNOWN_DEPTH - 1)) + KNOWN_BELOW) * sizeof(__u64);
	stack = send_stack(record, bytes, OWN_ADDRESSES);
	if (own >= REMEMBERED && record->depth)
		known->stack = stack;
	if (expected) {
		__sync_fetch_and_add(&known_stacks_met, 1);
		if (stack != expected)
			__sync_fetch_and_add(&known_stacks_wrong, 1);
	}
	return stack;
}

#endif
