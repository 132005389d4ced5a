/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Programs that can lose their CPU. From Linux 7.0 on (commit a46023d5616e) a program at a tracepoint may be preempted, and until it
 * has come back the kernel skips it for everybody else who comes to that tracepoint on that CPU.
 *
 * Two things are done about it there. Programs of what happens most are attached to perf's events of the same tracepoints, which the
 * kernel still runs with preemption off (commit f7d327654b88); their names end in `_held`. All others hold their CPU themselves: what they
 * keep for each CPU stays whole, and few are skipped, which is counted.
 */
#ifndef INODYNE_PREEMPT_H
#define INODYNE_PREEMPT_H

#include "kernel.h"

/* Set before loading: whether this kernel is one of those. */
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
 * A program whose name ends in `_again` runs after the first one at the same tracepoint, and does what that was skipped for. How often it
 * did is counted: the kernel counts how often it skipped the first, and what remains of that was done by neither.
 *
 * Where programs can lose their CPU, they do so most often while they let go of it, since that is when a thread gets it that was to get it
 * meanwhile. With real-time preemption a second program meets that, too: of some thousand requests to a full queue it misses one to five. Where
 * a miss is a lost event, a third one runs after it (`_again_again`).
 */
#define DONE_AGAIN(name) __u64 name##_done
#define do_again(name) __sync_fetch_and_add(&name##_done, 1)

/* BPF_PROG, of a program that holds its CPU. */
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
