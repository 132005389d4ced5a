/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* What the lifecycle probe and its reader share. */
#ifndef INODYNE_LIFECYCLE_INTF_H
#define INODYNE_LIFECYCLE_INTF_H

#include "../../bpf/intf.h"

/* Records: what happens once in a life. The first word says which. */
enum record_kind {
	RECORD_THREAD = 1,
	RECORD_PROGRAM = 2,
	RECORD_EXIT = 3,
};
EXPORT(enum, record_kind);

struct thread_record {
	__u32 kind;
	__u32 unused;
	struct thread thread;
};
EXPORT(struct, thread_record);

enum program_limits {
	PROGRAM_FILE = 256,
	PROGRAM_ARGS = 1024,
};
EXPORT(enum, program_limits);

struct program_record {
	__u32 kind;
	__u32 thread;
	__u32 pid;
	__u32 args_length; /* of all arguments, even if more than PROGRAM_ARGS */
	__u64 at;
	__u8 file[PROGRAM_FILE];
	__u8 args[PROGRAM_ARGS]; /* strings, each terminated by a NUL byte */
};
EXPORT(struct, program_record);

/* The end of a process, sent by its last thread. */
struct exit_record {
	__u32 kind;
	__u32 thread;
	__u32 status; /* as reported by wait(2) */
};
EXPORT(struct, exit_record);

#endif
