/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Programs that can be preempted. From Linux 7.0 on (commit a46023d5616e) a program at a tracepoint may be preempted, and until it
 * resumes, the kernel skips it for every other task that hits that tracepoint on that CPU.
 *
 * Two things are done about this. Programs for the most frequent events are attached to perf events for the same tracepoints, which the
 * kernel still runs with preemption disabled (commit f7d327654b88); their names end in `_held`. All others disable preemption themselves:
 * their per-CPU data stay consistent, and few runs are skipped; those are counted.
 */
#ifndef INODYNE_PREEMPT_H
#define INODYNE_PREEMPT_H

#include "kernel.h"
#include "stop.h"

/* Set before loading: whether this kernel may preempt them. */
const volatile __u32 programs_lose_cpu = 0;

void bpf_preempt_disable(void) __weak __ksym;
void bpf_preempt_enable(void) __weak __ksym;

static __always_inline void cpu_hold(void)
{
	if (programs_lose_cpu && bpf_ksym_exists(bpf_preempt_disable))
		bpf_preempt_disable();
}

static __always_inline void cpu_release(void)
{
	if (programs_lose_cpu && bpf_ksym_exists(bpf_preempt_enable))
		bpf_preempt_enable();
}

/*
 * A program whose name ends in `_again` runs after the first one at the same tracepoint, and handles the events for which the first was
 * skipped. It counts them: the kernel counts how often it skipped the first, and the difference was handled by neither.
 *
 * A program that can be preempted is so most often while it re-enables preemption, since that is when a thread that became due to run
 * gets the CPU. With PREEMPT_RT this hits the second program, too: out of some thousand requests to a full queue it misses one to five.
 * If a miss is a lost event, a third program runs after it (`_again_again`).
 */
#define DONE_AGAIN(name) __u64 name##_done
#define do_again(name) __sync_fetch_and_add(&name##_done, 1)

/* Calls a function with a program's arguments, as BPF_PROG does. */
#define call_with_args(function, args...)                                           \
	({                                                                          \
		int done;                                                           \
                                                                                    \
		_Pragma("GCC diagnostic push");                                     \
		_Pragma("GCC diagnostic ignored \"-Wint-conversion\"");             \
		done = function(___bpf_ctx_cast(args));                             \
		_Pragma("GCC diagnostic pop");                                      \
		done;                                                               \
	})

/* A program that disables preemption, and does something more before it enables it again. Once the trace has ended, only that. */
#define HOLDING_PROG_THEN(name, then, args...)                                      \
	name(unsigned long long *ctx);                                              \
	static __always_inline int holding_##name(unsigned long long *ctx, ##args); \
	int name(unsigned long long *ctx)                                           \
	{                                                                           \
		int done = 0;                                                       \
                                                                                    \
		cpu_hold();                                                         \
		if (!stopped)                                                       \
			done = call_with_args(holding_##name, args);                \
		then;                                                               \
		cpu_release();                                                      \
		return done;                                                        \
	}                                                                           \
	static __always_inline int holding_##name(unsigned long long *ctx, ##args)

/* BPF_PROG for a program that disables preemption. */
#define HOLDING_PROG(name, args...) HOLDING_PROG_THEN(name, , ##args)

/*
 * Where nothing that the first program records tells whether it ran for an event, it leaves a mark for its task, and the one that runs
 * again takes that away: within a task, one event comes after the other, and not in interrupts. Two tasks that have the same place may
 * take it from each other between the two programs, so that an event counts twice: with 16 tasks at a time, the probability that two of
 * them have the same place is 0.7%.
 */
#define RAN_BITS 14
#define RAN_EVENTS 64

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1 << RAN_BITS);
	__type(key, __u32);
	__type(value, __u64);
} ran SEC(".maps");

/* A task_struct is aligned to RAN_EVENTS bytes at least: it begins a cache line. */
static __always_inline __u64 ran_mark(__u32 event)
{
	return bpf_get_current_task() + event;
}

static __always_inline __u64 *ran_place(__u64 mark)
{
	__u32 place = mark * 0x9e3779b97f4a7c15ULL >> (64 - RAN_BITS);

	return bpf_map_lookup_elem(&ran, &place);
}

static __always_inline void ran_for(__u32 event)
{
	__u64 mark, *place;

	if (!programs_lose_cpu)
		return;
	mark = ran_mark(event);
	place = ran_place(mark);
	if (place)
		*place = mark;
}

/* Takes the mark away. */
static __always_inline bool has_run_for(__u32 event)
{
	__u64 mark = ran_mark(event), *place = ran_place(mark);

	if (!place || *place != mark)
		return false;
	*place = 0;
	return true;
}

/* HOLDING_PROG for a program in this section, and one that runs again after it. */
#define HOLDING_PROG_AGAIN(section, name, args...)                                    \
	enum { name##_event = __COUNTER__ };                                          \
	_Static_assert((int)name##_event < RAN_EVENTS, "it needs a mark of its own"); \
	DONE_AGAIN(name##_again);                                                     \
	static __always_inline int holding_##name(unsigned long long *ctx, ##args);   \
	SEC(section)                                                                  \
	int name##_again(unsigned long long *ctx)                                     \
	{                                                                             \
		int done = 0;                                                         \
                                                                                      \
		cpu_hold();                                                           \
		if (!stopped && !has_run_for(name##_event)) {                         \
			do_again(name##_again);                                       \
			done = call_with_args(holding_##name, args);                  \
		}                                                                     \
		cpu_release();                                                        \
		return done;                                                          \
	}                                                                             \
	SEC(section)                                                                  \
	int HOLDING_PROG_THEN(name, ran_for(name##_event), ##args)

#endif
