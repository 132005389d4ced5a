/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * The contract between the kernel side (C) and the user side (Rust): every structure that lies in a map or travels
 * through a ring buffer. `src/intf.rs` mirrors it field by field; the test `layout` compares sizes and offsets.
 *
 * All times are nanoseconds of CLOCK_MONOTONIC.
 */
#ifndef INODYNE_INTF_H
#define INODYNE_INTF_H

#include <linux/types.h>

/* A call is a number: the system call's own below CALLS_64, CALL_INVALID for any number beyond, and CALLS_64 + its
 * number for a 32-bit call (32-bit and 64-bit calls share numbers but not meanings). */
#define CALLS_64 512
#define CALL_INVALID 511
#define CALLS (2 * CALLS_64)
#define CALL_NONE 0xffff

/* Commands with a name of their own in the table of calls; GROUP_OTHERS collects the rest. Group 0 is the tracer's
 * own calibration and never shown. */
#define GROUPS 256
#define GROUP_CALIBRATION 0
#define GROUP_OTHERS (GROUPS - 1)

/* Different calls that one trace tells apart in the ledger of a thread; the last takes all further ones. */
#define ORDINALS 128
#define ORDINAL_OTHERS (ORDINALS - 1)

/* errno 1 to 133, then ERESTARTSYS to ERESTART_RESTARTBLOCK (512 to 516), then all others. */
#define ERRNO_PLAIN 134
#define ERRNO_RESTART_FIRST 512
#define ERRNO_RESTARTS 5
#define ERRNO_OTHERS (ERRNO_PLAIN + ERRNO_RESTARTS)
#define ERRNO_SLOTS (ERRNO_OTHERS + 1)

#define HISTOGRAM_BUCKETS 264

#define COMM_LENGTH 16
#define STACK_DEPTH 64
#define USER_STACKS 16384

enum thread_state {
	STATE_RUNNING = 0, /* on a CPU, or about to be charged as such */
	STATE_READY = 1,   /* off the CPU, because it was taken away */
	STATE_BLOCKED = 2, /* off the CPU, because it had to wait */
};

enum thread_flag {
	FLAG_ARMED = 1,    /* waits for its execve: nothing is counted yet */
	FLAG_EXITING = 2,  /* in do_exit: will be gone at the next switch */
	FLAG_FORCED = 4,   /* the call in progress looks up a name that came without a type */
	FLAG_CHILD = 8,    /* born in the middle of its parent's call: the first sys_exit has no sys_enter */
	FLAG_HELPER = 16,  /* not the command's: adopted, see adopt.h */
	FLAG_KTHREAD = 32, /* a thread of the kernel */
	FLAG_IDLE = 64,    /* a thread of the kernel that sleeps until there is work */
};

/* Helpers have numbers of their own: these and up. */
#define HELPER_FIRST 0x80000000u

/* A helper of a helper of a helper is followed, and no further. */
#define HELPER_DEPTH 3

enum waker_kind {
	WAKER_UNKNOWN = 0,
	WAKER_TRACED = 1,
	WAKER_PROCESS = 2,
	WAKER_KTHREAD = 3,
	WAKER_INTERRUPT = 4,
};

/* A followed thread: its place in the state machine of clock.h, and its account so far. */
struct thread {
	/* What every call touches. */
	__u64 task;       /* address of its task_struct: with the pid, who it is beyond doubt */
	__u64 since;      /* last transition */
	__u64 user_ns;
	__u64 call_start;
	__u64 call_blocked_ns;
	__u64 call_ready_ns;
	__u16 call;
	__u16 group;
	__u8 state;
	__u8 flags;
	__u8 depth;       /* 0; of helpers, how far from the command */
	__u8 unused;
	__u32 number;     /* 1, 2, 3 ... in order of birth; 0: not in use, or calibration */
	__u32 touched[ORDINALS / 32]; /* calls that ran since the last piece of work was sent */

	/* What switches touch. */
	__u64 wake_ns;    /* last wake-up */
	__u64 stack;      /* where it blocked */
	__u64 waker_stack;
	__u32 waker_tid;
	__u8 waker;
	__u8 unused2[3];
	__u32 waker_number; /* 0 where the waker is not followed */
	__u32 slot;         /* where this account lies */
	__u64 ready_ns;
	__u64 blocked_ns;
	__u64 waits;
	__u64 preemptions;
	__u64 unseen_ns;    /* blocked in calls since that was last sampled */

	/* Who it is. */
	__u64 born;
	__u64 ended;
	__u64 runtime_start; /* the scheduler's sum_exec_runtime at birth */
	__u64 runtime;       /* ... and from birth to the last switch away from it, in the end its last of all */
	__u32 parent;
	__u32 pid;
	__u32 tid;
	__u32 unused3;
	char comm[COMM_LENGTH];

	__u64 kernel_ns[ORDINALS];
};

/* What a thread's account said when its last piece of work was sent. */
struct mark {
	__u64 user_ns;
	__u64 kernel_ns[ORDINALS];
};

/* Calls of one kind by one command, on one CPU: no two writers, so no atomics. */
struct cell {
	__u64 calls;
	__u64 errors;
	__u64 wall_ns;
	__u64 blocked_ns;
	__u64 ready_ns;
	__u64 min_ns;
	__u64 max_ns;
	__u64 failed_ns; /* the part of wall_ns in calls that returned an error */
	__u64 bytes;     /* sum of what calls returned that return a number of bytes (names.rs says which these are) */
	__u64 histogram[HISTOGRAM_BUCKETS];
	__u32 errnos[ERRNO_SLOTS];
};

/* What a (command, call) pair leads to: (cell + 1) << 16 | ordinal; 0 where it was never seen. */
typedef __u32 cell_ref;

struct wait_key {
	__u32 thread;
	__u16 call;
	__u8 waker;
	__u8 unused;
	__u64 stack;
	__u64 waker_stack;
};

struct wait_sum {
	__u64 ns;
	__u64 count;
	__u64 max_ns;
};

struct sample_key {
	__u32 thread;
	__u16 call;
	__u8 user_mode;
	__u8 blocked; /* of time off the CPU: the stack in user mode only */
	__u64 stack;
	__u64 user_stack;
};

struct stack_frames {
	__u32 depth;
	__u32 truncated;
	__u64 address[STACK_DEPTH];
};

/* A frame in user mode: the file by its build id and the offset in it, which can be named when the process is gone; where
 * that was not to be had, the address. The kernel's struct bpf_stack_build_id. */
struct user_frame {
	__s32 status;
	__u8 build_id[20];
	__u64 place;
};

struct user_frames {
	__u32 depth;
	__u32 pid; /* whose addresses; 0 where all frames are in files */
	struct user_frame frame[STACK_DEPTH];
};

/* Records: what happens once in a life. The first word says which. */
#define RECORD_THREAD 1
#define RECORD_PROGRAM 2

struct thread_record {
	__u32 kind;
	__u32 unused;
	struct thread thread;
};

#define PROGRAM_FILE 256
#define PROGRAM_ARGS 1024
struct program_record {
	__u32 kind;
	__u32 thread;
	__u32 pid;
	__u32 args_length; /* of all arguments, also where more than PROGRAM_ARGS */
	__u64 at;
	char file[PROGRAM_FILE];
	char args[PROGRAM_ARGS]; /* words, each ended by a zero byte */
};

/* The timeline: one record each time a thread comes back to a CPU, one for each piece of work. The first word says which. */
#define TIMELINE_INTERVAL 1
#define TIMELINE_WORK 2

struct interval_record {
	__u32 kind;
	__u32 thread;
	__u32 waker_tid;
	__u32 waker_number;
	__u64 out;
	__u64 wake; /* = out where it was preempted */
	__u64 in;
	__u64 stack; /* 0 where it was preempted */
	__u64 waker_stack;
	__u16 call;
	__u8 waker;
	__u8 unused[5];
};

/* A piece of work: what a thread did on a CPU since the last one. Sent with as many parts as there are. */
#define WORK_PARTS (ORDINALS + 1)
struct work_part {
	__u32 ordinal; /* ORDINALS: outside of calls */
	__u32 unused;
	__u64 ns;
};
struct work_record {
	__u32 kind;
	__u32 thread;
	__u64 at;
	__u32 count;
	__u32 unused;
	struct work_part part[WORK_PARTS];
};

/* Directory entries: work in progress, and what this CPU has seen so far. It lies in a map and not on the stack, so that
 * the verifier takes each step of a loop for the same: what it reads from a map it knows nothing of. */
#define CHUNK 16384
#define NAME_LENGTH 256
#define DIRENT_HEAD 19 /* d_ino, d_off, d_reclen, d_type: include/linux/dirent.h */
struct walk {
	__u64 all_reads;
	__u64 all_entries;
	__u64 all_unknown;
	const void *buffer; /* the process's */
	__u32 total;        /* bytes in it */
	__u32 done;
	__u32 at;           /* in `bytes` */
	__u32 end;
	__u32 tgid;
	__u32 entries;
	__u32 unknown;
	__u32 unused;
	__u8 name[NAME_LENGTH];
	__u8 bytes[CHUNK + NAME_LENGTH + DIRENT_HEAD + 5]; /* the last entry may begin anywhere below CHUNK */
};

/* Reads that gave entries without a type, by file system. */
struct dtype_fs {
	__u64 reads;
	__u64 entries;
	__u64 unknown;
	char fs[COMM_LENGTH];
};

#define PATH_NAMES 16
#define PATH_NAME 64
struct directory_key {
	__u64 inode;
	__u32 device;
	__u32 unused;
};

struct directory {
	__u64 entries;
	__u64 unknown;
	__u32 names; /* in name[], from the directory up to the root of its file system */
	__u32 cut;   /* the path is longer */
	char name[PATH_NAMES * PATH_NAME];
};

struct forced_key {
	__u32 thread;
	__u16 call;
	__u8 directory;
	__u8 unused;
};

struct forced_sum {
	__u64 calls;
	__u64 wall_ns;
	__u64 blocked_ns;
	__u64 ready_ns;
};

/* A path in one kind of call. */
#define PATH_KEPT 256
struct path_count {
	__u64 calls;
	__u64 not_found;
	__u64 wall_ns;
	__u32 length; /* of what is kept in `path` */
	__u16 call;
	__u8 cut; /* the path is longer: its end is kept */
	__u8 unused;
	__u8 path[PATH_KEPT];
};

enum loss {
	LOST_CALLS,
	LOST_THREADS,
	LOST_RECORDS,
	LOST_INTERVALS,
	LOST_WAITS,
	LOST_SAMPLES,
	LOST_STACKS,
	LOST_DTYPE,
	LOST_WORK,
	LOST_HELPERS,
	LOSSES,
};

/* Counters that both sides see while the trace runs. */
struct shared {
	__u64 lost[LOSSES];
	__u64 paths_not_kept; /* look-ups whose path found no room */
	__u32 threads_born;   /* numbers given so far */
	__u32 slots_used;     /* slots of the thread table ever used */
	__u32 groups;
	__u32 cells;
	__u32 ordinals;
	__u32 untyped;        /* names read without a type and not looked up yet */
	__u32 helpers_born;   /* numbers given to helpers so far */
	__u32 helpers_alive;
	__u32 tracer;         /* the process that traces: never followed */
	__u32 user_stacks;    /* kept so far */
};

#endif
