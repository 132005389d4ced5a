/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * The maps, settings and counters that all probes share: who is followed. Each probe's own lie in its folder. Sizes that
 * depend on the machine or on an option are set before loading (session.rs, and `configure` of each probe).
 *
 * The tables that every call touches are plain arrays: their look-up is a few inlined instructions, and the user side
 * reads them through mmap at no cost.
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

/* pid -> slot in `threads`; 0 where the thread is not followed. pid_max entries. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} slot_of SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct thread);
} threads SEC(".maps");

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

#endif
