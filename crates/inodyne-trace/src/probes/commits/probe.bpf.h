/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Journals and logs: how often they were committed, how much went into them, and how long the phases of a commit took. Covers all file
 * systems of the machine, from the start of the command. Each program is loaded only if its file system is present.
 *
 * Raw tracepoints without types, as in the block device probe. A jbd2 journal is committed by one thread, one transaction after the
 * other, so counting its commits needs no atomics.
 */
#ifndef INODYNE_COMMITS_PROBE_H
#define INODYNE_COMMITS_PROBE_H

#include "../../bpf/maps.h"
#include "../../bpf/preempt.h"
#include "../../bpf/refuse.h"
#include "intf.h"
#include "kernel.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, struct journal_key);
	__type(value, struct journal_row);
} journals SEC(".maps");

/* The first commits of each journal, kept so that they can be shown when they happened. */
#define COMMITS_KEPT 1024

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct commit_key);
	__type(value, struct commit_span);
} commits_kept SEC(".maps");

static __always_inline void commit_keep(__u32 device, __u32 kind, __u64 number, const struct commit_span *span)
{
	struct commit_key key = { .device = device, .kind = kind, .number = number };

	if (number < COMMITS_KEPT)
		bpf_map_update_elem(&commits_kept, &key, span, BPF_NOEXIST);
}

static __always_inline struct journal_row *journal_of(__u32 device, __u32 kind)
{
	struct journal_key key = { .device = device, .kind = kind };
	struct journal_row *row, blank = {};

	if (!shared.threads_born)
		return 0;
	row = bpf_map_lookup_elem(&journals, &key);
	if (row)
		return row;
	bpf_map_update_elem(&journals, &key, &blank, BPF_NOEXIST);
	return bpf_map_lookup_elem(&journals, &key);
}

/* Counts a commit of which only this instant is seen. */
static __always_inline void commit_counted(__u32 device, __u32 kind)
{
	struct journal_row *row = journal_of(device, kind);
	struct commit_span span = {};

	if (!row)
		return;
	span.ended = bpf_ktime_get_ns();
	commit_keep(device, kind, __sync_fetch_and_add(&row->commits, 1), &span);
}

/* Ends one phase of a commit and begins the next; returns how long the former took. */
static __always_inline __u64 journal_phase(struct journal_row *row)
{
	__u64 now = bpf_ktime_get_ns(), before = row->since;

	row->since = now;
	return before ? now - before : 0;
}

HOLDING_PROG_AGAIN("raw_tp/jbd2_commit_locking", commits_locking, struct journal_s *journal)
{
	struct journal_row *row = journal_of(BPF_CORE_READ(journal, j_fs_dev, bd_dev), JOURNAL_JBD2);

	refusable(REFUSE_COMMITS);
	if (row) {
		row->began = bpf_ktime_get_ns();
		row->since = row->began;
	}
	return 0;
}

HOLDING_PROG_AGAIN("raw_tp/jbd2_commit_flushing", commits_flushing, struct journal_s *journal)
{
	struct journal_row *row = journal_of(BPF_CORE_READ(journal, j_fs_dev, bd_dev), JOURNAL_JBD2);

	if (row)
		row->locked_ns += journal_phase(row);
	return 0;
}

HOLDING_PROG_AGAIN("raw_tp/jbd2_commit_logging", commits_logging, struct journal_s *journal)
{
	struct journal_row *row = journal_of(BPF_CORE_READ(journal, j_fs_dev, bd_dev), JOURNAL_JBD2);

	if (row)
		row->flushing_ns += journal_phase(row);
	return 0;
}

HOLDING_PROG_AGAIN("raw_tp/jbd2_run_stats", commits_committed, __u32 device, __u32 transaction, struct transaction_run_stats_s *stats)
{
	struct journal_row *row = journal_of(device, JOURNAL_JBD2);
	struct commit_span span = {};
	__u64 took;

	if (!row)
		return 0;
	span.blocks = BPF_CORE_READ(stats, rs_blocks_logged);
	row->handles += BPF_CORE_READ(stats, rs_handle_count);
	row->blocks += span.blocks;
	row->logging_ns += journal_phase(row);
	span.began = row->began;
	span.ended = row->since;
	commit_keep(device, JOURNAL_JBD2, row->commits, &span);
	row->commits++;
	took = row->began ? row->since - row->began : 0;
	if (took > row->longest_ns)
		row->longest_ns = took;
	/* The time until the next commit belongs to neither. */
	row->since = 0;
	row->began = 0;
	return 0;
}

HOLDING_PROG_AGAIN("raw_tp/jbd2_checkpoint_stats", commits_checkpointed, __u32 device, __u32 transaction, struct transaction_chp_stats_s *stats)
{
	struct journal_row *row = journal_of(device, JOURNAL_JBD2);

	if (row) {
		__sync_fetch_and_add(&row->checkpoints, 1);
		__sync_fetch_and_add(&row->checkpointed, BPF_CORE_READ(stats, cs_written));
	}
	return 0;
}

HOLDING_PROG_AGAIN("raw_tp/xlog_iclog_write", commits_xfs_write, struct xlog_in_core *iclog)
{
	commit_counted(BPF_CORE_READ(iclog, ic_log, l_mp, m_super, s_dev), JOURNAL_XFS);
	return 0;
}

HOLDING_PROG_AGAIN("raw_tp/xfs_log_force", commits_xfs_force, struct xfs_mount *mount)
{
	struct journal_row *row = journal_of(BPF_CORE_READ(mount, m_super, s_dev), JOURNAL_XFS);

	if (row)
		__sync_fetch_and_add(&row->forces, 1);
	return 0;
}

HOLDING_PROG_AGAIN("raw_tp/xfs_log_grant_sleep", commits_xfs_full, struct xlog *log)
{
	struct journal_row *row = journal_of(BPF_CORE_READ(log, l_mp, m_super, s_dev), JOURNAL_XFS);

	if (row)
		__sync_fetch_and_add(&row->full, 1);
	return 0;
}

HOLDING_PROG_AGAIN("raw_tp/btrfs_transaction_commit", commits_btrfs, struct btrfs_fs_info *fs)
{
	commit_counted(BPF_CORE_READ(fs, sb, s_dev), JOURNAL_BTRFS);
	return 0;
}

#endif
