/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Which tasks are followed: from a task to its account, and the creation and freeing of accounts.
 *
 * A thread is found by its pid and recognised by the address of its task_struct, which no other living task can have.
 * So a pid that is reused while its last owner is still leaving its CPU cannot be mistaken. This takes two array lookups,
 * both inlined by the kernel; a task that is not followed pays for only one of them. Once the trace has ended, none is followed.
 */
#ifndef INODYNE_TASK_H
#define INODYNE_TASK_H

#include "../probes/switches/tables.h"
#include "clock.h"
#include "maps.h"
#include "stop.h"
#include "x32.h"

/* The size of a thread's kernel stack: THREAD_SIZE in arch/x86/include/asm/page_64_types.h, arch/arm64/include/asm/memory.h. */
const volatile __u32 kernel_stack_bytes = 16384;

static __always_inline bool on_stack_of(struct task_struct *task, __u64 address)
{
	return address - (__u64)task->stack < kernel_stack_bytes;
}

static __always_inline struct thread *thread_of(struct task_struct *task)
{
	__u32 slot = slot_of(task->pid);
	struct thread *t;

	if (!slot || stopped)
		return 0;
	t = thread_at(slot);
	if (!t || t->task != (__u64)task)
		return 0;
	return t;
}

/* A slot for a new thread, cleared; 0 if there is none. */
static __noinline __u32 slot_take(void)
{
	struct thread *t;
	__u32 slot;

	if (bpf_map_pop_elem(&free_slots, &slot)) {
		slot = __sync_fetch_and_add(&shared.slots_used, 1) + 1;
		if (slot >= max_threads)
			return 0;
	}
	if (!blank_slot(&threads, slot) || !blank_slot(&last_sent, slot)) {
		/* For a later thread, once the table has grown. */
		bpf_map_push_elem(&free_slots, &slot, BPF_ANY);
		return 0;
	}
	t = thread_at(slot);
	if (!t)
		return 0;
	t->call = CALL_NONE;
	t->slot = slot;
	return slot;
}

static __always_inline __u16 call_of(struct task_struct *task, __u64 number)
{
	if (IS_COMPAT(task->thread_info))
		return CALLS_64 + (number < CALL_INVALID ? number : CALL_INVALID);
	return call_of_number(number);
}

/* Whether a call replaces the program by another. */
static __always_inline bool is_execve(__u16 call)
{
	return call == __NR_execve || call == __NR_execveat || call == CALL_EXECVE_32 || call == CALL_EXECVEAT_32;
}

/* Unbinds a pid; returns the slot it had. */
static __always_inline __u32 slot_forget(__u32 pid)
{
	__u32 slot = slot_of(pid);

	slot_bind(pid, 0);
	return slot;
}

static __always_inline void thread_free(struct thread *t, __u32 slot)
{
	t->task = 0;
	t->number = 0;
	if (bpf_map_push_elem(&free_slots, &slot, BPF_ANY))
		lose(LOST_THREADS);
}

#endif
