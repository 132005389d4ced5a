/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Control groups: counting needs only each group's ID. User space is shown the IDs that have appeared, and looks up their names soon
 * after that, since a group may be gone by the end. Only cgroup v2 is known (cgroups(7)); without it every task is in the root, which
 * says nothing.
 */
#ifndef INODYNE_CGROUP_H
#define INODYNE_CGROUP_H

#include "maps.h"

/* IDs in the order in which they appeared. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, CGROUPS_NAMED);
	__type(key, __u32);
	__type(value, __u64);
} cgroups_seen SEC(".maps");

/* How many of them there are. */
__u32 cgroups_used;

/* The IDs that have appeared. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CGROUPS_NAMED);
	__type(key, __u64);
	__type(value, __u8);
} cgroups_known SEC(".maps");

/* The group of a task; 0 if the kernel has no cgroups. */
static __always_inline __u64 cgroup_of(struct task_struct *task)
{
	return bpf_core_field_exists(task->cgroups) ? BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id) : 0;
}

/* The same for the current task, at less cost. */
static __always_inline __u64 cgroup_here(void)
{
	struct task_struct *task = 0;

	return bpf_core_field_exists(task->cgroups) ? bpf_get_current_cgroup_id() : 0;
}

/* Shows an ID to user space. One that finds no room has no name, but is counted all the same. */
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
