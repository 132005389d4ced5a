/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* From a file descriptor of the current process to its file. */
#ifndef INODYNE_FILE_H
#define INODYNE_FILE_H

#include "kernel.h"

/* Null if the process has no such descriptor, or has closed it meanwhile. */
static __always_inline struct file *file_of(struct task_struct *task, __u32 descriptor)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file *file = 0;

	if (descriptor < BPF_CORE_READ(table, max_fds))
		bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(table, fd) + descriptor);
	return file;
}

/* The file of a socket of the current process; null if the descriptor is not a socket. */
static __always_inline struct file *socket_file(__u32 descriptor)
{
	struct file *file = file_of((struct task_struct *)bpf_get_current_task(), descriptor);

	return file && (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) == S_IFSOCK ? file : 0;
}

/* The struct sock of such a socket; null if the descriptor is not a socket. */
static __always_inline struct sock *socket_of(__u32 descriptor)
{
	struct file *file = socket_file(descriptor);
	struct socket *socket;

	if (!file)
		return 0;
	socket = BPF_CORE_READ(file, private_data);
	return BPF_CORE_READ(socket, sk);
}

/* AF_UNIX and so on; 0 if the descriptor is not a socket. */
static __always_inline __u16 socket_family(__u32 descriptor)
{
	struct sock *sk = socket_of(descriptor);

	return sk ? BPF_CORE_READ(sk, __sk_common.skc_family) : 0;
}

#endif
