/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Every map, with who writes it. Sizes that depend on the machine or on an option are set before loading (session.rs).
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
const volatile __u32 max_cells = 1;
const volatile __u32 max_helpers = 1;
const volatile __u32 record_timeline = 1;
const volatile __u32 record_paths = 0;
const volatile __u64 blocked_sample_ns = 0; /* 0: time off the CPU is not sampled */

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

/* slot -> what has been sent of its account. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct mark);
} marks SEC(".maps");

/* A piece of work under construction, one for each program that can be interrupted by another. */
enum work_user { WORK_OF_SWITCH, WORK_OF_WAKING, WORK_OF_FORK, WORK_USERS };
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WORK_USERS);
	__type(key, __u32);
	__type(value, struct work_record);
} work_scratch SEC(".maps");

/* Slots of threads that are gone. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 1);
	__type(value, __u32);
} free_slots SEC(".maps");

/* Command name -> group. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GROUPS);
	__type(key, char[COMM_LENGTH]);
	__type(value, __u32);
} groups SEC(".maps");

/* group * CALLS + call -> cell_ref. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, GROUPS *CALLS);
	__type(key, __u32);
	__type(value, cell_ref);
} cell_refs SEC(".maps");

/* cpu * max_cells + cell. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cell);
} cells SEC(".maps");

/* call -> ordinal + 1. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CALLS);
	__type(key, __u32);
	__type(value, __u32);
} ordinals SEC(".maps");

/* Only the thread itself writes its rows (at its switch in), so no atomics. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 131072);
	__type(key, struct wait_key);
	__type(value, struct wait_sum);
} waits SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 262144);
	__type(key, struct sample_key);
	__type(value, __u64);
} samples SEC(".maps");

/*
 * Preallocated (39 MB): of memory to be had at a switch the kernel keeps a few elements of this size on each CPU, so several new
 * stacks in a row would find none (-ENOMEM).
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, struct stack_frames);
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, USER_STACKS);
	__type(key, __u64);
	__type(value, struct user_frames);
} user_stacks SEC(".maps");

/* A stack in user mode under construction: a sample may interrupt the end of a call, but not another sample. */
enum user_stack_user { USER_STACK_OF_SAMPLE, USER_STACK_OF_CALL, USER_STACK_USERS };
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, USER_STACK_USERS);
	__type(key, __u32);
	__type(value, struct user_frames);
} user_stack_scratch SEC(".maps");

/* A stack under construction, one for each program that can be interrupted by another. */
enum stack_user { STACK_OF_SWITCH, STACK_OF_WAKING, STACK_OF_SAMPLE, STACK_USERS };
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, STACK_USERS);
	__type(key, __u32);
	__type(value, struct stack_frames);
} stack_scratch SEC(".maps");

/* Lives: never dropped unless its consumer is dead. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} records SEC(".maps");

/* Off-CPU intervals and pieces of work. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} timeline SEC(".maps");

/* Device -> directory entries. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, struct dtype_fs);
} dtype_filesystems SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct directory_key);
	__type(value, struct directory);
} dtype_directories SEC(".maps");

/* hash(process, name) -> how often it was read without a type and not looked up since. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 262144);
	__type(key, __u64);
	__type(value, __u32);
} untyped SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct forced_key);
	__type(value, struct forced_sum);
} forced SEC(".maps");

/* hash(call, path) -> how often. One entry where nobody asked for it. Allocated beforehand: a program that looks up a
 * hundred thousand new paths a second is faster than the kernel's allocator for programs is filled again. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct path_count);
} paths SEC(".maps");

static __always_inline void lose(enum loss what)
{
	__sync_fetch_and_add(&shared.lost[what], 1);
}

#endif
