/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* From a descriptor of the current process to its file. */
#ifndef INODYNE_FILE_H
#define INODYNE_FILE_H

#include "kernel.h"

/* Null where the process has no such descriptor, or closed it meanwhile. */
static __always_inline struct file *file_of(struct task_struct *task, __u32 descriptor)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file *file = 0;

	if (descriptor < BPF_CORE_READ(table, max_fds))
		bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(table, fd) + descriptor);
	return file;
}

/* Of the current process. */
static __always_inline bool is_socket(__u32 descriptor)
{
	struct file *file = file_of((struct task_struct *)bpf_get_current_task(), descriptor);

	return file && (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) == S_IFSOCK;
}

#endif
