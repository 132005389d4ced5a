/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Who dirties pages of files, on which disk, while the command runs: on the whole machine, since kernel threads write them back, and
 * by then it is no longer known whose data it was. Metadata is left to the journals, and so are file systems without a disk of their
 * own.
 */
#ifndef INODYNE_DIRTY_PROBE_H
#define INODYNE_DIRTY_PROBE_H

#include "../../bpf/folio.h"
#include "../../bpf/maps.h"
#include "../../bpf/preempt.h"
#include "../../bpf/refuse.h"
#include "../block/probe.bpf.h"
#include "intf.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct dirty_key);
	__type(value, struct dirty_sum);
} dirty_sums SEC(".maps");

HOLDING_PROG_AGAIN("raw_tp/writeback_dirty_folio", dirty_folio, void *folio, struct address_space *mapping)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct super_block *superblock;
	struct dirty_sum *sum, first = {};
	struct block_device *device;
	struct dirty_key key = {};

	refusable(REFUSE_DIRTY);
	if (!shared.threads_born || block_after)
		return 0;
	superblock = BPF_CORE_READ(mapping, host, i_sb);
	key.superblock = (__u64)superblock;
	key.asker = block_asker_of(task, thread_of(task));
	if (key.asker == BLOCK_OF_OTHERS)
		key.cgroup = cgroup_here();
	bpf_get_current_comm(key.comm, sizeof(key.comm));
	sum = bpf_map_lookup_elem(&dirty_sums, &key);
	if (!sum) {
		/* btrfs has none, nor do a device read as a file (ext4's metadata) and network file systems. */
		device = BPF_CORE_READ(superblock, s_bdev);
		if (device)
			first.disk = disk_number(BPF_CORE_READ(device, bd_disk));
		/* If another CPU was faster, its row is used. */
		bpf_map_update_elem(&dirty_sums, &key, &first, BPF_NOEXIST);
		cgroup_show(key.cgroup);
		sum = bpf_map_lookup_elem(&dirty_sums, &key);
		if (!sum) {
			lose(LOST_REQUESTS);
			return 0;
		}
	}
	__sync_fetch_and_add(&sum->bytes, folio_pages(folio) * page_bytes);
	return 0;
}

#endif
