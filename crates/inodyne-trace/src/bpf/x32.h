/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Syscalls of x32 programs, which use 64-bit registers and 32-bit pointers: their numbers have a bit set, and they are the 64-bit
 * syscalls, except for some from 512 on. Those do the same as 64-bit syscalls with structures of other sizes, and are counted as
 * them (arch/x86/entry/syscalls/syscall_64.tbl).
 */
#ifndef INODYNE_X32_H
#define INODYNE_X32_H

#include "intf.h"

enum { X32_BIT = 0x40000000 };

/* For the kernel side, and for the tests that run this on the host. */
#if defined(__TARGET_ARCH_x86) || defined(__x86_64__)
#define HAS_X32
#include <asm/unistd_64.h>

enum { X32_FIRST = 512 };

static const __u16 x32_calls[] = {
	__NR_rt_sigaction, __NR_rt_sigreturn, __NR_ioctl, __NR_readv, __NR_writev, __NR_recvfrom, __NR_sendmsg, __NR_recvmsg,
	__NR_execve, __NR_ptrace, __NR_rt_sigpending, __NR_rt_sigtimedwait, __NR_rt_sigqueueinfo, __NR_sigaltstack,
	__NR_timer_create, __NR_mq_notify, __NR_kexec_load, __NR_waitid, __NR_set_robust_list, __NR_get_robust_list,
	__NR_vmsplice, __NR_move_pages, __NR_preadv, __NR_pwritev, __NR_rt_tgsigqueueinfo, __NR_recvmmsg, __NR_sendmmsg,
	__NR_process_vm_readv, __NR_process_vm_writev, __NR_setsockopt, __NR_getsockopt, __NR_io_setup, __NR_io_submit,
	__NR_execveat, __NR_preadv2, __NR_pwritev2,
};
#endif

/* The 64-bit syscall that a number stands for. */
static __always_inline __u16 call_of_number(__u64 number)
{
	if (number & X32_BIT) {
		number &= ~(__u64)X32_BIT;
#ifdef HAS_X32
		__u64 index = number - X32_FIRST;

		if (index < sizeof(x32_calls) / sizeof(*x32_calls))
			return x32_calls[index];
#endif
	}
	return number < CALL_INVALID ? number : CALL_INVALID;
}

#endif
