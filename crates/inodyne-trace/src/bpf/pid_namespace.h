/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * A process has a pid in its PID namespace and in each of its ancestors (pid_namespaces(7)). Accounts hold that of the initial namespace,
 * by which the kernel tells tasks apart; what the tracer looks up in /proc or finds in file names is the pid in its own namespace.
 */
#ifndef INODYNE_PID_NAMESPACE_H
#define INODYNE_PID_NAMESPACE_H

#include "kernel.h"

/* The tracer's namespace, and its level below the initial one. */
__u64 tracers_namespace;
__u32 tracers_level;

/* The pid's entry for the namespace at this level. */
static __always_inline const char *entry_at(struct pid *pid, __u32 level)
{
	return (const char *)pid + bpf_core_field_offset(struct pid, numbers) + level * bpf_core_type_size(struct upid);
}

static __always_inline __u64 namespace_at(struct pid *pid, __u32 level)
{
	__u64 namespace = 0;

	bpf_probe_read_kernel(&namespace, sizeof(namespace), entry_at(pid, level) + bpf_core_field_offset(struct upid, ns));
	return namespace;
}

/* To be called once by the tracer. */
static __always_inline void note_tracers_namespace(struct task_struct *tracer)
{
	struct pid *pid = BPF_CORE_READ(tracer, thread_pid);

	tracers_level = BPF_CORE_READ(pid, level);
	tracers_namespace = namespace_at(pid, tracers_level);
}

/* The pid of the task's process as the tracer sees it; 0 if it does not. */
static __always_inline __u32 number_here(struct task_struct *task)
{
	struct pid *pid;
	__u32 number = 0;

	/* Every task has a pid in the initial namespace. */
	if (!tracers_level)
		return task->tgid;
	pid = BPF_CORE_READ(task, group_leader, thread_pid);
	if (BPF_CORE_READ(pid, level) < tracers_level || namespace_at(pid, tracers_level) != tracers_namespace)
		return 0;
	bpf_probe_read_kernel(&number, sizeof(number), entry_at(pid, tracers_level) + bpf_core_field_offset(struct upid, nr));
	return number;
}

#endif
