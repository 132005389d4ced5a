/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Control groups: a number of each is all that is counted under. The user side is shown the numbers that appeared, and asks for their names
 * soon after that: a group may be gone in the end. Only groups of version 2 are known (cgroups(7)); without them everybody is in the
 * root, which says nothing.
 */
#ifndef INODYNE_CGROUP_H
#define INODYNE_CGROUP_H

#include "maps.h"

/* Numbers in the order in which they appeared. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, CGROUPS_NAMED);
	__type(key, __u32);
	__type(value, __u64);
} cgroups_seen SEC(".maps");

/* How many of them there are. */
__u32 cgroups_used;

/* Which have appeared. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CGROUPS_NAMED);
	__type(key, __u64);
	__type(value, __u8);
} cgroups_known SEC(".maps");

/* The group of a task; 0 where the kernel has none. */
static __always_inline __u64 cgroup_of(struct task_struct *task)
{
	return bpf_core_field_exists(task->cgroups) ? BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id) : 0;
}

/* The same of the current one, for less. */
static __always_inline __u64 cgroup_here(void)
{
	struct task_struct *task = 0;

	return bpf_core_field_exists(task->cgroups) ? bpf_get_current_cgroup_id() : 0;
}

/* Shows a number to the user side. One that finds no room has no name, and counts all the same. */
static __noinline int cgroup_show(__u64 cgroup)
{
	__u8 known = 1;
	__u32 place;

	if (!cgroup || bpf_map_lookup_elem(&cgroups_known, &cgroup) ||
	    bpf_map_update_elem(&cgroups_known, &cgroup, &known, BPF_NOEXIST))
		return 0;
	place = __sync_fetch_and_add(&cgroups_used, 1);
	bpf_map_update_elem(&cgroups_seen, &place, &cgroup, BPF_ANY);
	return 0;
}

#endif
