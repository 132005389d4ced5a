/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * The contract between the kernel side (C) and user space (Rust): what all probes share. What belongs to a single probe is
 * in the `intf.h` of its folder. Rust's types and constants are generated from the compiled object, so nothing is written
 * twice; the test `layout` compares all structures with src/contract.snapshot, so no change to them goes unnoticed.
 *
 * All times are nanoseconds of CLOCK_MONOTONIC. Text is __u8, which is the same on both sides.
 */
#ifndef INODYNE_INTF_H
#define INODYNE_INTF_H

#include <linux/types.h>

#include "export.h"
#include "loss.h"
#include "refusable.h"

enum limits {
	/* A call is a number: the syscall's own below CALLS_64, CALL_INVALID for any number beyond, and CALLS_64 + its number
	 * for a 32-bit syscall (32-bit and 64-bit syscalls share numbers but not meanings). */
	CALLS_64 = 512,
	CALL_INVALID = 511,
	CALLS = 2 * CALLS_64,
	CALL_NONE = 0xffff,

	/* Commands listed by name in the table of calls; GROUP_OTHERS collects the rest. Group 0 is the tracer's own
	 * calibration and is never shown. */
	GROUPS = 256,
	GROUP_CALIBRATION = 0,
	GROUP_OTHERS = GROUPS - 1,

	/* Different calls that a trace distinguishes in the account of a thread; the last slot takes all further ones. */
	CALL_SLOTS = 128,
	CALL_SLOT_OTHERS = CALL_SLOTS - 1,

	COMM_LENGTH = 16,
	STACK_DEPTH = 64, /* a power of two */

	/* Limits of remembered stacks, both powers of two: addresses, and words between the arguments and the top. */
	KNOWN_DEPTH = 32,
	KNOWN_WORDS = 512,

	/* Control groups whose names are looked up. */
	CGROUPS_NAMED = 1024,

	/* Accounts in each of the parts by which the table of threads grows (thread_table.rs). */
	THREADS_IN_PART = 2048,

	/* A helper of a helper of a helper is followed, and no further. */
	HELPER_DEPTH = 3,
};
EXPORT(enum, limits);

/* Numbers of threads: 1, 2, 3 ... in the order of birth. */
enum thread_number {
	HELPER_FIRST = 0x80000000u, /* helpers have numbers of their own: these and up */
};
EXPORT(enum, thread_number);

enum thread_state {
	STATE_RUNNING = 0, /* on a CPU, or about to be charged as such */
	STATE_READY = 1,   /* off-CPU because it was preempted */
	STATE_BLOCKED = 2, /* off-CPU because it had to wait */
};
EXPORT(enum, thread_state);

enum thread_flag {
	FLAG_ARMED = 1,    /* waits for its execve: nothing is counted yet */
	FLAG_EXITING = 2,  /* in do_exit: will be gone at the next switch */
	FLAG_FORCED = 4,   /* the call in progress looks up a name that readdir gave no d_type for */
	FLAG_CHILD = 8,    /* born, or joined, in the middle of a call: the first sys_exit has no sys_enter */
	FLAG_HELPER = 16,  /* not one of the command's threads: adopted, see adopt.h */
	FLAG_KTHREAD = 32, /* a kernel thread */
	FLAG_IDLE = 64,    /* a kernel thread that sleeps until there is work */
	FLAG_SERVER = 128, /* a helper that was asked for something, or a child of one */
};
EXPORT(enum, thread_flag);

enum waker_kind {
	WAKER_UNKNOWN = 0,
	WAKER_TRACED = 1,
	WAKER_PROCESS = 2,
	WAKER_KTHREAD = 3,
	WAKER_INTERRUPT = 4,
};
EXPORT(enum, waker_kind);

/* A followed thread: its place in the state machine of clock.h, and its account so far. */
struct thread {
	/* What every call touches. */
	__u64 task;       /* address of its task_struct: with the pid, identifies it beyond doubt */
	__u64 since;      /* last transition */
	__u64 user_ns;
	__u64 call_start;
	__u64 call_blocked_ns;
	__u64 call_ready_ns;
	__u16 call;
	__u16 group;
	__u8 state;
	__u8 flags;
	__u8 depth;       /* 0; for helpers, the distance from the command */
	__u8 joined;      /* 1: joined when it already existed, and no switch seen since */
	__u32 number;     /* 1, 2, 3 ... in order of birth; 0: not in use, or calibration */
	__u32 touched[CALL_SLOTS / 32]; /* bitmap of calls that ran since the last piece of work was sent */
	__u32 random;     /* state of the generator that draws which calls are timed; 0 before the first draw */
	__u64 calls;      /* calls that have ended, without those that began before it was followed */

	/* Used if not every call is timed: see clock.h. */
	__u32 untimed;    /* 1: there were untimed calls since the last transition */
	__u32 stands_for; /* how many of them the call in progress stands for until it ends or first leaves the CPU */
	__u64 untimed_ns; /* on a CPU, in such calls and in user mode between them */
	__u64 stood_ns;   /* the part of kernel_ns that was not measured: the calls that timed ones stood for */

	/* What switches touch. */
	__u64 wake_ns;    /* last wakeup */
	__u64 stack;      /* where it blocked */
	__u64 waker_stack;
	__u32 waker_tid;
	__u8 waker;
	__u8 executed;      /* 1: the program that it has just executed was sent */
	__u8 renamed;       /* RENAMED_* in probes/lifecycle/probe.bpf.h */
	__u8 unused2;
	__u32 waker_number; /* 0 if the waker is not followed */
	__u32 slot;         /* where this account is */
	__u64 ready_ns;
	__u64 blocked_ns;
	__u64 waits;
	__u64 preemptions;
	__u64 unseen_ns;    /* time blocked in calls that no sample covers yet */

	/* Who it is. */
	__u64 born;         /* or joined */
	__u64 ended;
	__u64 runtime_start; /* the scheduler's sum_exec_runtime at birth */
	__u64 runtime;       /* ... and from birth to the latest switch-out, at the end the final one */
	__u32 parent;
	__u32 pid;
	__u32 tid;
	__u32 pid_here;     /* pid as the tracer sees it; 0 if it does not, and for helpers */
	__u64 cgroup;       /* for helpers, and for the threads that were followed first; 0: same as its parent's, or unknown */
	__u64 pages_of_call; /* start of the call whose pages were last counted: probes/page_cache */
	__u64 page_read;     /* first page of that call's latest read that the kernel showed */
	__u64 page_faulted;  /* the last page of a file that it faulted on */
	__u8 comm[COMM_LENGTH];

	__u64 kernel_ns[CALL_SLOTS];
};

/* A thread's account as of the last piece of work sent. */
struct last_sent {
	__u64 user_ns;
	__u64 kernel_ns[CALL_SLOTS];
};
EXPORT(struct, last_sent);

/* A kernel stack. Only the addresses in use are sent. */
struct stack_record {
	__u64 stack; /* its identity: a hash of the addresses */
	__u32 depth;
	__u32 truncated;
	__u64 address[STACK_DEPTH];
};

/* A kernel stack that is remembered: known_stack.h. */
struct known_stack {
	__u64 stack;     /* its identity; 0: none */
	__u64 arguments; /* address of the program's arguments on the current stack */
	__u64 top;       /* ... and of its top: both scalars, which the verifier does not take for pointers */
	__u32 depth;
	__u32 met;        /* how often it was recognised since it was remembered */
	__u32 pause;      /* how many of the next unknown stacks are not remembered */
	__u32 next_pause;
	__u64 address[KNOWN_DEPTH];
	__u16 words[KNOWN_DEPTH]; /* places: words up from the arguments; for the last address, down from the top */
};

/* The words of a stack that is about to be remembered. */
struct stack_words {
	__u64 word[KNOWN_WORDS];
};

/* Counters that both sides see while the trace runs. */
struct shared {
	__u64 lost[LOSSES];
	__u32 threads_born; /* numbers given so far */
	__u32 slots_used;   /* slots of the thread table ever used */
	__u32 helpers_born; /* numbers given to helpers so far */
	__u32 helpers_alive;
	__u32 tracer;       /* the tracing process: never followed */
};

#endif
