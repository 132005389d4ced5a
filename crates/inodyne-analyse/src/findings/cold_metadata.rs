//! `cold-metadata`: inodes and directory blocks are read from the device one at a time, each after the last.

use inodyne_model::cause::Cause;
use inodyne_model::count::Grouped;
use inodyne_model::cure::{CacheChange, Change, PlaceChange};
use inodyne_model::finding::Finding;
use inodyne_model::ledger::{PAGE_FAULT, RowKind};

use super::case::{Case, Time, Waited, parallel, total};
use super::estimate::{self, Diagnosed, percent, seconds};
use super::families::{concerns_files, reads, removes, writes};
use super::remedy::Remedy;

/// Below this share of the wall-clock time metadata is warm enough.
const LEAST_SHARE: f64 = 0.15;
/// Fewer reads are a program being started.
const LEAST_READS: u64 = 50;
/// More threads than this on average do not read one at a time.
const MOST_THREADS: f64 = 1.5;
/// How much of the work on a CPU that goes with a read is seen in samples, and how well.
const UNCERTAIN: f64 = 0.15;
/// The same for a command that changes much: while it waits for a read, the kernel works off in the background what it has
/// changed before (the journal, XFS's freeing of inodes). Warm, it may have to wait for that instead.
const UNCERTAIN_CHANGING: f64 = 0.6;
/// From this share of the wall-clock time in calls that remove, a command changes much.
const CHANGES: f64 = 0.15;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let is_metadata = |waited: &Waited<'_>| {
        waited.cause == Cause::DeviceRead && concerns_files(waited.call) && !reads(waited.call) && !writes(waited.call)
    };
    let time = case.waiting(|waited| is_metadata(waited) && !waited.is_direct() && !waited.is_copy_up());
    let share = case.share(&time);
    if time.count < LEAST_READS || share < LEAST_SHARE {
        return None;
    }
    let mut evidence: Vec<String> = time
        .top_calls()
        .iter()
        .take(3)
        .map(|(call, ns, count)| {
            format!("{call} waited {} times for a block, {} together", Grouped(*count), seconds(*ns))
        })
        .collect();
    let is_alone = parallel(case.trace, &time.threads) <= MOST_THREADS;
    let order = if is_alone {
        "they come one after the other".to_owned()
    } else {
        format!("{} threads wait for them", time.threads.len())
    };
    let order_line = evidence.len();
    evidence.push(format!("a read takes {} on average; {order}", seconds(time.mean())));
    let work = work_of_reading(case);
    let loading = case
        .waiting(|waited| waited.cause == Cause::DeviceRead && (waited.call == PAGE_FAULT || waited.call == "execve"));
    if loading.ns > 0.0 {
        evidence.push(format!("{} more were spent on loading programs from the device", seconds(loading.ns)));
    }
    let waits = case.on_path(&time);
    let removing: f64 = case.calls(removes).map(|call| call.wall_ns.0 as f64).sum();
    let is_changing = removing / parallel(case.trace, &case.threads_of(removes)) > case.wall() * CHANGES;
    let after = if is_changing { 0.0 } else { ready_after(case, &time) };
    let saved = waits + case.on_path(&work) + case.on_path(&loading) + after;
    let uncertain = if is_changing { UNCERTAIN_CHANGING } else { UNCERTAIN };
    Some(
        Diagnosed {
            title: format!(
                "Inodes and directories are read from the device{}: {} of the time",
                if is_alone { " one at a time" } else { "" },
                percent(share)
            ),
            share,
            evidence,
            predicted: estimate::without(case, saved, uncertain),
            cure: cures(case, is_alone, order_line),
            avoidable_calls: None,
            bound: false,
        }
        .finding(case),
    )
}

/// The way back to a CPU after each wait: its part of the waiting for a CPU.
fn ready_after(case: &Case<'_>, time: &Time) -> f64 {
    let threads = case.trace.observed.threads.iter().filter(|thread| time.threads.contains(&thread.number));
    let switches = total(threads.map(|thread| thread.waits.saturating_add(thread.preemptions)));
    let ready = case.ledger(|row| row.kind == RowKind::Runqueue);
    ready * (time.count as f64 / switches.max(1) as f64).min(1.0)
}

/// Time on a CPU that is spent only because something is not in memory: finding and sending the request, and making the
/// inode of what was read.
fn work_of_reading(case: &Case<'_>) -> Time {
    case.sampled(|function| {
        matches!(
            function,
            "__lookup_slow"
                | "lookup_slow"
                | "d_alloc_parallel"
                | "submit_bio"
                | "submit_bh_wbc"
                | "__submit_bio"
                | "submit_bio_noacct"
                | "__ext4_iget"
                | "ext4_lookup"
                | "ext4_get_inode_loc"
                | "__ext4_get_inode_loc"
                | "ext4_bread"
                | "ext4_getblk"
                | "xfs_buf_read_map"
                | "xfs_vn_lookup"
                | "xfs_lookup"
                | "btrfs_lookup"
                | "btrfs_lookup_dentry"
                | "read_extent_buffer_pages"
                | "filemap_fault"
                | "page_cache_ra_unbounded"
                | "io_schedule"
                | "schedule"
                | "__schedule"
        )
    })
}

/// First what the prediction is about. `order` is the line of the evidence that says in which order the reads come.
fn cures(case: &Case<'_>, is_alone: bool, order: usize) -> Vec<Remedy> {
    let mut cures = vec![Remedy::new(
        "keep it in memory, as is predicted: a walk beforehand warms it, vm.vfs_cache_pressure below 100 keeps it longer",
        Change::Cache(CacheChange::Warm),
    )];
    if is_alone {
        let several = "or, for a part of that, walk the tree in several threads, so that several reads are on their way (bfs, fd, inodyne rm)";
        cures.push(Remedy::advice(several).answering(order));
    }
    if matches!(case.fs(), "ext4" | "ext3" | "ext2") {
        cures.push(Remedy::new(
            "or read more inodes at once: mount with inode_readahead_blks=256 (ext4), or make fewer, larger directories",
            Change::Place(PlaceChange::Mount("inode_readahead_blks=256".to_owned())),
        ));
    }
    cures
}
