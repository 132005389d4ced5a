/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Who is followed: from a task to its account, and the making and freeing of accounts.
 *
 * A thread is found by its pid and recognised by the address of its task_struct, which no other living task can have.
 * So a pid that is used again while its last owner is still leaving its CPU cannot be mistaken. Two array look-ups,
 * both inlined by the kernel: a task that is not followed pays for one of them only.
 */
#ifndef INODYNE_TASK_H
#define INODYNE_TASK_H

#include "clock.h"
#include "maps.h"

static __always_inline struct thread *thread_of(struct task_struct *task)
{
	__u32 pid = task->pid;
	__u32 *entry = bpf_map_lookup_elem(&slot_of, &pid);
	struct thread *t;
	__u32 slot;

	if (!entry)
		return 0;
	slot = *entry;
	if (!slot)
		return 0;
	t = bpf_map_lookup_elem(&threads, &slot);
	if (!t || t->task != (__u64)task)
		return 0;
	return t;
}

/* The group of a command name; all share the last one when there are too many names. */
static __noinline __u32 group_of(const char *comm)
{
	char key[COMM_LENGTH] = {};
	__u32 *known, group;

	if (!comm)
		return GROUP_OTHERS;
	bpf_probe_read_kernel_str(key, sizeof(key), comm);
	known = bpf_map_lookup_elem(&groups, &key);
	if (known)
		return *known;
	group = __sync_fetch_and_add(&shared.groups, 1) + 1;
	if (group >= GROUP_OTHERS)
		return GROUP_OTHERS;
	if (bpf_map_update_elem(&groups, &key, &group, BPF_NOEXIST)) {
		known = bpf_map_lookup_elem(&groups, &key);
		return known ? *known : GROUP_OTHERS;
	}
	return group;
}

static __noinline cell_ref cell_ref_make(__u32 index)
{
	__u32 call = index % CALLS;
	cell_ref *ref = bpf_map_lookup_elem(&cell_refs, &index);
	__u32 *ordinal = bpf_map_lookup_elem(&ordinals, &call);
	__u32 number, cell, made, before;

	if (!ref || !ordinal)
		return 0;
	number = *ordinal;
	if (!number) {
		made = __sync_fetch_and_add(&shared.ordinals, 1);
		if (made > ORDINAL_OTHERS)
			made = ORDINAL_OTHERS;
		before = __sync_val_compare_and_swap(ordinal, 0, made + 1);
		number = before ? before : made + 1;
	}
	cell = __sync_fetch_and_add(&shared.cells, 1);
	made = (cell < max_cells ? (cell + 1) << 16 : 0) | number;
	before = __sync_val_compare_and_swap(ref, 0, made);
	return before ? before : made;
}

/* Where the calls of a group are counted: see cell_ref. */
static __always_inline cell_ref cell_ref_of(__u16 group, __u16 call)
{
	__u32 index = (group & (GROUPS - 1)) * CALLS + (call & (CALLS - 1));
	cell_ref *ref = bpf_map_lookup_elem(&cell_refs, &index);

	if (!ref)
		return 0;
	return *ref ? *ref : cell_ref_make(index);
}

static __always_inline __u32 ordinal_of_ref(cell_ref ref)
{
	return ((ref & 0xffff) - 1) & (ORDINALS - 1);
}

static __always_inline __u32 ordinal_in_progress(struct thread *t)
{
	return t->call == CALL_NONE ? 0 : ordinal_of_ref(cell_ref_of(t->group, t->call));
}

/* A slot for a new thread, cleared; 0 where there is none. */
static __noinline __u32 slot_take(void)
{
	struct thread *t, *blank;
	struct mark *unmarked;
	__u32 slot, never = 0;

	if (bpf_map_pop_elem(&free_slots, &slot)) {
		slot = __sync_fetch_and_add(&shared.slots_used, 1) + 1;
		if (slot >= max_threads) {
			lose(LOST_THREADS);
			return 0;
		}
	}
	/* Slot 0 stands for "not followed", so it is never written: a blank to copy. */
	blank = bpf_map_lookup_elem(&threads, &never);
	unmarked = bpf_map_lookup_elem(&marks, &never);
	if (!blank || !unmarked || bpf_map_update_elem(&threads, &slot, blank, BPF_ANY) ||
	    bpf_map_update_elem(&marks, &slot, unmarked, BPF_ANY))
		return 0;
	t = bpf_map_lookup_elem(&threads, &slot);
	if (!t)
		return 0;
	t->call = CALL_NONE;
	t->slot = slot;
	return slot;
}

static __always_inline __u16 call_of(struct task_struct *task, __u64 number)
{
	if (task->thread_info.status & TS_COMPAT)
		return CALLS_64 + (number & (CALLS_64 - 1));
	return number < CALL_INVALID ? number : CALL_INVALID;
}

/* Unbinds a pid; returns the slot it had. */
static __always_inline __u32 slot_forget(__u32 pid)
{
	__u32 *entry = bpf_map_lookup_elem(&slot_of, &pid);
	__u32 slot;

	if (!entry)
		return 0;
	slot = *entry;
	*entry = 0;
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
