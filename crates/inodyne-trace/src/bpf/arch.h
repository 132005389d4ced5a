/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * What differs between architectures: registers, how to recognise a 32-bit syscall, layouts of user-space structures. The set of
 * syscalls differs, too: those that an architecture lacks are given numbers that no syscall has.
 */
#ifndef INODYNE_ARCH_H
#define INODYNE_ARCH_H

#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>

#include "intf.h"

#if defined(__TARGET_ARCH_x86)
#include <asm/unistd_64.h>
#else
#include <asm/unistd.h>
#endif

/* The kernel's own register names; <asm/ptrace.h> has those for user space. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
#if defined(__TARGET_ARCH_x86)
struct pt_regs___kernel {
	unsigned long r10, r8, dx, si, di, orig_ax;
};

struct thread_info {
	__u32 status;
};
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs___kernel {
	__u64 regs[31];
	__u64 orig_x0;
	int syscallno;
};

struct thread_info {
	unsigned long flags;
};
#else
#error "registers of this processor are not known"
#endif
#pragma clang attribute pop

#define REGISTER(regs, name) BPF_CORE_READ((struct pt_regs___kernel *)(regs), name)

/* A syscall's arguments by position, and its number, which is negative in an interrupt or page fault. All are unchanged at its exit. */
#if defined(__TARGET_ARCH_x86)
#define CALL_ARG1(regs) REGISTER(regs, di)
#define CALL_ARG2(regs) REGISTER(regs, si)
#define CALL_ARG3(regs) REGISTER(regs, dx)
#define CALL_ARG4(regs) REGISTER(regs, r10)
#define CALL_ARG5(regs) REGISTER(regs, r8)
#define CALL_NUMBER(regs) ((long)REGISTER(regs, orig_ax))

#define TS_COMPAT 0x0002 /* arch/x86/include/asm/thread_info.h */
#define IS_COMPAT(info) ((info).status & TS_COMPAT)

/* From the registers in a sample: whether user mode was interrupted. */
#define IN_USER_MODE(regs) (((regs).cs & 3) == 3)

#define MODE_IN_STAT 24 /* arch/x86/include/uapi/asm/stat.h */

/* 32-bit syscalls that have other numbers on other processors: arch/x86/entry/syscalls/syscall_32.tbl. */
enum own_calls_32 {
	CALL_IO_SUBMIT_32 = CALLS_64 + 248,
	CALL_SPLICE_32 = CALLS_64 + 313,
	CALL_PWRITEV_32 = CALLS_64 + 334,
	CALL_EXECVEAT_32 = CALLS_64 + 358,
	CALL_COPY_FILE_RANGE_32 = CALLS_64 + 377,
	CALL_PWRITEV2_32 = CALLS_64 + 379,
};

/* Whether a new thread's first event is the end of the call that made it: ret_from_fork in arch/x86/kernel/process.c. */
#define CHILD_ENDS_CALL 1
#else
/* x0 is both the first argument and the result; the kernel saves the argument separately (arch/arm64/kernel/syscall.c). */
#define CALL_ARG1(regs) REGISTER(regs, orig_x0)
#define CALL_ARG2(regs) REGISTER(regs, regs[1])
#define CALL_ARG3(regs) REGISTER(regs, regs[2])
#define CALL_ARG4(regs) REGISTER(regs, regs[3])
#define CALL_ARG5(regs) REGISTER(regs, regs[4])
#define CALL_NUMBER(regs) ((long)REGISTER(regs, syscallno))

#define TIF_32BIT 22 /* arch/arm64/include/asm/thread_info.h */
#define IS_COMPAT(info) ((info).flags & (1UL << TIF_32BIT))

#define IN_USER_MODE(regs) (((regs).pstate & 0xf) == 0) /* EL0, arch/arm64/include/uapi/asm/ptrace.h */

#define MODE_IN_STAT 16 /* include/uapi/asm-generic/stat.h */

/* The same: arch/arm64/tools/syscall_32.tbl. */
enum own_calls_32 {
	CALL_IO_SUBMIT_32 = CALLS_64 + 246,
	CALL_SPLICE_32 = CALLS_64 + 340,
	CALL_PWRITEV_32 = CALLS_64 + 362,
	CALL_EXECVEAT_32 = CALLS_64 + 387,
	CALL_COPY_FILE_RANGE_32 = CALLS_64 + 391,
	CALL_PWRITEV2_32 = CALLS_64 + 393,
};

/* It is not: ret_from_fork in arch/arm64/kernel/entry.S goes to user space without an event. */
#define CHILD_ENDS_CALL 0
#endif

/* 32-bit syscalls that matter to more than the table of calls, besides those above: these have the same numbers everywhere. */
enum calls_32 {
	CALL_WRITE_32 = CALLS_64 + 4,
	CALL_EXECVE_32 = CALLS_64 + 11,
	CALL_WRITEV_32 = CALLS_64 + 146,
	CALL_PWRITE64_32 = CALLS_64 + 181,
	CALL_SENDFILE_32 = CALLS_64 + 187,
	CALL_SENDFILE64_32 = CALLS_64 + 239,
	CALL_IO_URING_ENTER_32 = CALLS_64 + 426,
};

/* Syscalls that newer architectures do not have: `newfstatat` serves for `stat` there. */
#define NO_CALL 0xfffe
#ifndef __NR_stat
#define __NR_stat NO_CALL
#define __NR_lstat (NO_CALL - 1)
#define __NR_open (NO_CALL - 2)
#define __NR_access (NO_CALL - 3)
#define __NR_readlink (NO_CALL - 4)
#endif

#endif
