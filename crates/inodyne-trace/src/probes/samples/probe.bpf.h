/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * On-CPU samples, from a timer on each CPU: what the kernel did inside a call, and how much of the time outside of
 * calls was really page faults and interrupts; and from where in the program.
 */

SEC("perf_event")
int samples_take(struct bpf_perf_event_data *ctx)
{
	struct thread *t = thread_of(bpf_get_current_task_btf());
	struct sample_key key = {};
	__u64 *count;

	if (!t || !t->number || t->flags & FLAG_HELPER)
		return 0;
	key.thread = t->number;
	key.call = t->call;
	key.user_mode = (ctx->regs.cs & 3) == 3;
	if (!key.user_mode)
		key.stack = take_stack(ctx, STACK_OF_SAMPLE);
	key.user_stack = take_user_stack(ctx, t->pid);
	count = bpf_map_lookup_elem(&samples, &key);
	if (count) {
		(*count)++;
	} else {
		__u64 one = 1;

		if (bpf_map_update_elem(&samples, &key, &one, BPF_NOEXIST))
			lose(LOST_SAMPLES);
	}
	return 0;
}
