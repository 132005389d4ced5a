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

/* BPF_PROG for a program that disables preemption. */
#define HOLDING_PROG(name, args...)                                                 \
	name(unsigned long long *ctx);                                              \
	static __always_inline int holding_##name(unsigned long long *ctx, ##args); \
	int name(unsigned long long *ctx)                                           \
	{                                                                           \
		int done;                                                           \
                                                                                    \
		cpu_hold();                                                         \
		_Pragma("GCC diagnostic push");                                     \
		_Pragma("GCC diagnostic ignored \"-Wint-conversion\"");             \
		done = holding_##name(___bpf_ctx_cast(args));                       \
		_Pragma("GCC diagnostic pop");                                      \
		cpu_release();                                                      \
		return done;                                                        \
	}                                                                           \
	static __always_inline int holding_##name(unsigned long long *ctx, ##args)

#endif
