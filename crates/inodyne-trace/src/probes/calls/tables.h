/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Where a call is counted: a row for each pair of command name and call, and for each call a call slot, which is its index
 * in a thread's account. Both are handed out when first needed.
 */
#ifndef INODYNE_CALLS_TABLES_H
#define INODYNE_CALLS_TABLES_H

#include "../../bpf/maps.h"
#include "intf.h"

/* Set before loading: the number of possible CPUs, and how many rows the array has for each of them. */
const volatile __u32 call_cpus = 1;
const volatile __u32 call_rows = 1;

struct calls_used calls_used;

/* Command name -> group. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GROUPS);
	__type(key, __u8[COMM_LENGTH]);
	__type(value, __u32);
} call_groups SEC(".maps");

/* group * CALLS + call -> call_ref, two per element, as no element takes less than eight bytes. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, GROUPS * CALLS / 2);
	__type(key, __u32);
	__type(value, call_ref[2]);
} call_refs SEC(".maps");

/* row * call_cpus + cpu -> counts, for the first rows. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct call_stats);
} call_stats SEC(".maps");

/* The same for all other rows, only for CPUs on which there are such calls. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct call_stats);
} more_call_stats SEC(".maps");

/* How many calls are counted in more_call_stats. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} more_calls SEC(".maps");

/* New elements of more_call_stats are copies of this. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct call_stats);
} no_calls SEC(".maps");

/* call -> call slot + 1. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CALLS);
	__type(key, __u32);
	__type(value, __u32);
} call_slots SEC(".maps");

/* The group of a command name; if there are too many names, all further ones share the last group. */
static __noinline __u32 group_of(const char *comm)
{
	__u8 key[COMM_LENGTH] = {};
	__u32 *known, group;

	if (!comm)
		return GROUP_OTHERS;
	bpf_probe_read_kernel_str(key, sizeof(key), comm);
	known = bpf_map_lookup_elem(&call_groups, &key);
	if (known)
		return *known;
	group = __sync_fetch_and_add(&calls_used.groups, 1) + 1;
	if (group >= GROUP_OTHERS)
		return GROUP_OTHERS;
	if (bpf_map_update_elem(&call_groups, &key, &group, BPF_NOEXIST)) {
		known = bpf_map_lookup_elem(&call_groups, &key);
		return known ? *known : GROUP_OTHERS;
	}
	return group;
}

static __always_inline call_ref *call_ref_at(__u32 index)
{
	__u32 pair = index / 2;
	call_ref *refs = bpf_map_lookup_elem(&call_refs, &pair);

	return refs ? &refs[index % 2] : 0;
}

static __noinline call_ref call_ref_make(__u32 index)
{
	__u32 call = index % CALLS;
	call_ref *ref = call_ref_at(index);
	__u32 *slot = bpf_map_lookup_elem(&call_slots, &call);
	__u32 number, row, made, before;

	if (!ref || !slot)
		return 0;
	number = *slot;
	if (!number) {
		made = __sync_fetch_and_add(&calls_used.call_slots, 1);
		if (made > CALL_SLOT_OTHERS)
			made = CALL_SLOT_OTHERS;
		before = __sync_val_compare_and_swap(slot, 0, made + 1);
		number = before ? before : made + 1;
	}
	row = __sync_fetch_and_add(&calls_used.rows, 1);
	made = (row < CALL_ROWS ? (row + 1) << 16 : 0) | number;
	before = __sync_val_compare_and_swap(ref, 0, made);
	return before ? before : made;
}

/* A CPU's part of a row beyond the array; 0 if there is no memory. Not inlined, so that the other rows do not pay for it. */
static __noinline struct call_stats *more_call_stats_at(__u32 place)
{
	struct call_stats *stats = bpf_map_lookup_elem(&more_call_stats, &place), *none;
	__u32 zero = 0;
	__u64 *calls = bpf_map_lookup_elem(&more_calls, &zero);

	if (calls)
		++*calls;
	if (stats)
		return stats;
	none = bpf_map_lookup_elem(&no_calls, &zero);
	if (!none || bpf_map_update_elem(&more_call_stats, &place, none, BPF_NOEXIST))
		return 0;
	return bpf_map_lookup_elem(&more_call_stats, &place);
}

/* A CPU's part of a row, by its index. */
static __always_inline struct call_stats *call_stats_at(__u32 place)
{
	return place < call_rows * call_cpus ? bpf_map_lookup_elem(&call_stats, &place) : more_call_stats_at(place);
}

/* Where a group's calls of one kind are counted: see call_ref. */
static __always_inline call_ref call_ref_of(__u16 group, __u16 call)
{
	__u32 index = (group & (GROUPS - 1)) * CALLS + (call & (CALLS - 1));
	call_ref *ref = call_ref_at(index);

	if (!ref)
		return 0;
	return *ref ? *ref : call_ref_make(index);
}

static __always_inline __u32 call_slot_of_ref(call_ref ref)
{
	return ((ref & 0xffff) - 1) & (CALL_SLOTS - 1);
}

static __always_inline __u32 call_slot_in_progress(struct thread *t)
{
	return t->call == CALL_NONE ? 0 : call_slot_of_ref(call_ref_of(t->group, t->call));
}

#endif
