/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Where following begins: with the thread that runs one of these programs in its own context. Its children inherit it.
 */
#ifndef INODYNE_FOLLOW_H
#define INODYNE_FOLLOW_H

#include "../probes/calls/tables.h"
#include "pid_namespace.h"
#include "task.h"

/* Run once by the thread that is to be followed (BPF_PROG_TEST_RUN runs it in the caller's context), which is thus known by
 * its task, not by a pid in some namespace. args[0]: 1 to arm it for its execve, 0 to measure the tracer's own cost. */
SEC("raw_tp")
int follow_arm(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 pid = task->pid, slot = slot_take();
	struct thread *t = thread_at(slot);

	if (!slot || !t)
		return -1;
	t->task = (__u64)task;
	t->flags = ctx->args[0] ? FLAG_ARMED : 0;
	t->group = ctx->args[0] ? group_of(task->comm) : GROUP_CALIBRATION;
	t->pid = task->tgid;
	t->tid = pid;
	if (ctx->args[0]) {
		t->pid_here = number_here(task);
	} else {
		shared.tracer = task->tgid;
		note_tracers_namespace(task);
	}
	slot_bind(pid, slot);
	return 0;
}

/* Undoes follow_arm for a thread that only measured. */
SEC("raw_tp")
int follow_disarm(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_of(task);

	if (t)
		thread_free(t, slot_forget(task->pid));
	return 0;
}

#endif
