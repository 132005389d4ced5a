/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * The maps, settings and counters that all probes share: which threads are followed. Each probe's own are in its folder. Sizes
 * that depend on the machine or on an option are set before loading (session.rs, and `configure` of each probe).
 *
 * The tables that every syscall touches are plain arrays: a lookup is a few inlined instructions, and user space reads them
 * through mmap at no cost.
 */
#ifndef INODYNE_MAPS_H
#define INODYNE_MAPS_H

#include "intf.h"
#include "kernel.h"

/* Set before loading. */
const volatile __u32 max_threads = 1;
const volatile __u32 max_helpers = 1;
const volatile __u32 record_timeline = 1;
const volatile __u32 adopt_servers = 1;

struct shared shared;

/* 1: more threads than 16 bits can tell apart. */
const volatile __u32 wide_slots = 0;

/* pid -> slot in `threads`, or 0 if the thread is not followed; four to an element, or two if wide, as no element takes less than
 * eight bytes. Covers all pids up to pid_max, which is four million on most machines. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} slots SEC(".maps");

/* A table indexed by slot, in parts: the reader adds a part before the last one is full. */
#define TABLE_OF_THREADS(name, what, flags)                                                                                \
	struct {                                                                                                           \
		__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);                                                                  \
		__uint(max_entries, 1);                                                                                    \
		__type(key, __u32);                                                                                        \
		__array(values, struct {                                                                                   \
			__uint(type, BPF_MAP_TYPE_ARRAY);                                                                  \
			__uint(map_flags, flags);                                                                          \
			__uint(max_entries, THREADS_IN_PART);                                                              \
			__uint(key_size, sizeof(__u32));                                                                   \
			__uint(value_size, sizeof(what));                                                                  \
		});                                                                                                        \
	} name SEC(".maps")

TABLE_OF_THREADS(threads, struct thread, BPF_F_MMAPABLE);

/* Slots of threads that are gone. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 1);
	__type(value, __u32);
} free_slots SEC(".maps");

static __always_inline void lose_some(enum loss what, __u64 count)
{
	__sync_fetch_and_add(&shared.lost[what], count);
}

static __always_inline void lose(enum loss what)
{
	lose_some(what, 1);
}

/* The entry in this slot of a table; null if the table has not grown that far. */
static __always_inline void *at_slot(void *table, __u32 slot)
{
	__u32 part = slot / THREADS_IN_PART, at = slot % THREADS_IN_PART;
	void *there = bpf_map_lookup_elem(table, &part);

	return there ? bpf_map_lookup_elem(there, &at) : 0;
}

static __always_inline struct thread *thread_at(__u32 slot)
{
	return at_slot(&threads, slot);
}

/* Clears a slot by copying slot 0, which stands for "not followed" and is never written. */
static __always_inline bool blank_slot(void *table, __u32 slot)
{
	__u32 part = slot / THREADS_IN_PART, at = slot % THREADS_IN_PART;
	void *there = bpf_map_lookup_elem(table, &part), *blank = at_slot(table, 0);

	return there && blank && !bpf_map_update_elem(there, &at, blank, BPF_ANY);
}

static __always_inline __u32 slot_of(__u32 pid)
{
	__u32 at = pid >> (wide_slots ? 1 : 2);
	void *element = bpf_map_lookup_elem(&slots, &at);

	if (!element)
		return 0;
	return wide_slots ? ((__u32 *)element)[pid & 1] : ((__u16 *)element)[pid & 3];
}

static __always_inline void slot_bind(__u32 pid, __u32 slot)
{
	__u32 at = pid >> (wide_slots ? 1 : 2);
	void *element = bpf_map_lookup_elem(&slots, &at);

	if (!element)
		lose(LOST_THREADS);
	else if (wide_slots)
		((__u32 *)element)[pid & 1] = slot;
	else
		((__u16 *)element)[pid & 3] = slot;
}

#endif
