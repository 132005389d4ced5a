/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Leaving a CPU and coming back to one: run queue, waits by place in the kernel, and the timeline. Also the last
 * switch of a life, which closes its account.
 */

/* Closes an account and frees its slot. */
static __noinline int thread_end(struct thread *t, __u32 slot, __u64 now)
{
	struct thread_record *record;

	clock_charge_running(t, now, ordinal_in_progress(t));
	t->ended = now;
	record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);
	if (record) {
		record->kind = RECORD_THREAD;
		bpf_probe_read_kernel(&record->thread, sizeof(record->thread), t);
		bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	} else {
		lose(LOST_RECORDS);
	}
	if (t->flags & FLAG_HELPER)
		__sync_fetch_and_add(&shared.helpers_alive, -1);
	thread_free(t, slot);
	return 0;
}

static __always_inline void note_wait(struct thread *t, __u64 ns)
{
	struct wait_key key = {
		.thread = t->number,
		.call = t->call,
		.waker = t->waker,
		.stack = t->stack,
		.waker_stack = t->waker_stack,
	};
	struct wait_sum *sum = bpf_map_lookup_elem(&waits, &key);

	if (sum) {
		sum->ns += ns;
		sum->count++;
		if (ns > sum->max_ns)
			sum->max_ns = ns;
	} else {
		struct wait_sum first = { .ns = ns, .count = 1, .max_ns = ns };

		if (bpf_map_update_elem(&waits, &key, &first, BPF_NOEXIST))
			lose(LOST_WAITS);
	}
}

static __always_inline void note_interval(struct thread *t, __u64 out, __u64 wake, __u64 in, bool blocked)
{
	struct interval_record *record;

	if (!record_timeline)
		return;
	record = bpf_ringbuf_reserve(&timeline, sizeof(*record), 0);
	if (!record) {
		lose(t->flags & FLAG_HELPER ? LOST_WORK : LOST_INTERVALS);
		return;
	}
	record->kind = TIMELINE_INTERVAL;
	record->thread = t->number;
	record->out = out;
	record->wake = wake;
	record->in = in;
	record->call = t->call;
	record->stack = blocked ? t->stack : 0;
	record->waker = blocked ? t->waker : WAKER_UNKNOWN;
	record->waker_tid = blocked ? t->waker_tid : 0;
	record->waker_number = blocked ? t->waker_number : 0;
	record->waker_stack = blocked ? t->waker_stack : 0;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

static __always_inline void thread_in(struct thread *t, __u64 now)
{
	bool blocked = t->state == STATE_BLOCKED;
	__u64 out = t->since;
	__u64 wake = clock_switch_in(t, now);

	if (blocked && !(t->flags & FLAG_HELPER))
		note_wait(t, wake - out);
	note_interval(t, out, wake, now, blocked);
}

/*
 * Not every return to a CPU is told: some kernels leave out the switches away from certain threads (seen with those of
 * an init that runs a virtual machine for its host), and with them whom they switch to. So where a thread runs that was
 * last seen off the CPU, its return was missed. How long ago it was, the scheduler's account knows: exactly at a switch,
 * to the last tick in between.
 */
static __noinline int thread_in_unseen(struct thread *t, __u64 now)
{
	struct task_struct *task = (struct task_struct *)t->task;
	__u64 ran = BPF_CORE_READ(task, se.sum_exec_runtime) - t->runtime_start - t->runtime;
	__u64 off = now - t->since;

	thread_in(t, now - (ran < off ? ran : off));
	return 0;
}

/* Before anything is charged as running time. */
static __always_inline void thread_runs(struct thread *t, __u64 now)
{
	if (t->state != STATE_RUNNING)
		thread_in_unseen(t, now);
}

/* Charges a running thread up to now, and sends what it did since it was last charged so. */
static __always_inline void work_until(struct thread *t, __u64 now, __u32 user)
{
	if (!record_timeline)
		return;
	thread_runs(t, now);
	clock_charge_running(t, now, ordinal_in_progress(t));
	work_send(t, now, user);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(switches_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	struct thread *from = thread_of(prev);
	struct thread *to = thread_of(next);
	__u64 now;

	if (!from && !to)
		return 0;
	now = bpf_ktime_get_ns();
	if (from && from->number) {
		thread_runs(from, now);
		from->runtime = prev->se.sum_exec_runtime - from->runtime_start;
		if (prev_state & TASK_DEAD) {
			thread_end(from, slot_forget(prev->pid), now);
		} else {
			bool blocked = !preempt && prev_state;

			if (blocked)
				from->stack = take_stack(ctx, STACK_OF_SWITCH);
			if (from->flags & FLAG_KTHREAD)
				note_idle(from, prev_state);
			clock_switch_out(from, now, ordinal_in_progress(from), blocked);
			work_send(from, now, WORK_OF_SWITCH);
		}
	}
	if (to && to->number)
		thread_in(to, now);
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(switches_waking, struct task_struct *task)
{
	struct thread *t = thread_of(task), *by = 0;
	struct task_struct *waker;
	__u8 kind;

	if (!t || !t->number)
		return 0;
	waker = bpf_get_current_task_btf();
	kind = waker_kind(ctx, waker);
	if (kind != WAKER_INTERRUPT)
		by = thread_of(waker);
	if (by && !by->number)
		by = 0;
	t->waker_tid = waker->pid;
	t->waker_stack = take_stack(ctx, STACK_OF_WAKING);
	t->wake_ns = bpf_ktime_get_ns();
	if (by)
		work_until(by, t->wake_ns, WORK_OF_WAKING);
	else if (kind != WAKER_INTERRUPT && record_timeline)
		by = adopt(waker, t, t->wake_ns);
	t->waker = by && !(by->flags & FLAG_HELPER) ? WAKER_TRACED : kind;
	t->waker_number = by ? by->number : 0;
	return 0;
}
