//! `cold-metadata`: inodes and directory blocks are read from the device one at a time, each after the last.

use inodyne_model::cause::Cause;
use inodyne_model::count::Grouped;
use inodyne_model::cure::{CacheChange, Change, PlaceChange};
use inodyne_model::finding::Finding;
use inodyne_model::ledger::{PAGE_FAULT, RowKind};
use inodyne_model::stack::function_name;
use inodyne_model::trace::Dtype;

use super::at_device::AtDevice;
use super::case::{Case, Time, Waited, total};
use super::estimate::{self, Diagnosed};
use super::families::{concerns_files, reads, removes, writes};
use super::remedy::Remedy;
use crate::units::{percent, seconds, times};

/// Below this share of the wall-clock time metadata is warm enough.
const LEAST_SHARE: f64 = 0.15;
/// Fewer reads are a program being started.
const LEAST_READS: u64 = 50;
/// If more threads than this wait at the same time on average, they do not read one at a time.
const MOST_THREADS: f64 = 1.5;
/// With more than this many names for each call of readdir, directories are large: into 32 KiB for each, as glibc has, a thousand fit.
const LARGE_DIRECTORY: u64 = 400;
/// How much of the work on a CPU that goes with a read is seen in samples, and how well.
const UNCERTAIN: f64 = 0.15;
/// The same for a command that changes much: while it waits for a read, the kernel processes in the background what it has
/// changed before (the journal, XFS's freeing of inodes). With warm caches, it may have to wait for that instead.
const UNCERTAIN_CHANGING: f64 = 0.6;
/// What else would be saved is mentioned if it exceeds this fraction of the waits.
const WORTH_TELLING: f64 = 0.1;
/// The title says how much would be saved in all where that is more than so many times the waits: otherwise the prediction beside
/// it seems to be wrong.
const MUCH_MORE: f64 = 1.4;
/// With more than this share of the wall-clock time in calls that remove, a command changes much.
const CHANGES: f64 = 0.15;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let is_metadata = |waited: &Waited<'_>| {
        let is_of_names = concerns_files(waited.call) && !reads(waited.call) && !writes(waited.call);
        waited.cause == Cause::DeviceRead && is_of_names && !loads_programs(waited.call)
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
        .map(|(call, ns, count)| format!("{call} waited {} for a block, {} together", times(*count), seconds(*ns)))
        .collect();
    let is_alone = case.side_by_side(&time) <= MOST_THREADS;
    let order = if is_alone {
        "they come one after the other".to_owned()
    } else {
        format!("{} threads wait for them", time.threads.len())
    };
    let order_line = evidence.len();
    evidence.push(format!("a read takes {} on average; {order}", seconds(time.mean())));
    let of_inodes = case.waiting(|waited| is_metadata(waited) && waited.passes(reads_inode));
    let inode_line = evidence.len();
    if of_inodes.count > 0 {
        let part = percent(of_inodes.ns / time.ns.max(1.0));
        evidence.push(format!(
            "{} of these {} for inodes, {part} of their time",
            Grouped(of_inodes.count),
            if of_inodes.count == 1 { "waits is" } else { "waits are" }
        ));
    }
    // readdir returns as many names as fit: many at once come from a large directory, which only one thread can read.
    let Dtype { reads, entries, .. } = case.trace.dtype;
    let is_flat = entries > reads.saturating_mul(LARGE_DIRECTORY);
    if is_flat {
        evidence.push(format!(
            "{} names came in {} calls: from few, large directories",
            Grouped(entries),
            Grouped(reads)
        ));
    }
    let work = work_of_reading(case);
    let loading = case.waiting(|waited| waited.cause == Cause::DeviceRead && loads_programs(waited.call));
    if loading.ns > 0.0 {
        evidence.push(format!("{} more were spent on loading programs from the device", seconds(loading.ns)));
    }
    evidence.extend(AtDevice::of(case).and_then(|device| device.line()));
    let waits = case.on_path(&time);
    let mut removing = Time::of_threads(case.threads_of(removes));
    case.calls(removes).for_each(|call| removing.add_calls(&call.name, call.wall_ns.0 as f64, call.calls));
    let is_changing = case.share(&removing) > CHANGES;
    let after = if is_changing { 0.0 } else { ready_after(case, &time) };
    let working = case.on_path(&work);
    if working + after > waits * WORTH_TELLING {
        let back = if after > 0.0 {
            format!(", and the way back to a CPU after each wait {}", seconds(after))
        } else {
            String::new()
        };
        evidence
            .push(format!("requesting and unpacking what is read takes {} on a CPU as well{back}", seconds(working)));
    }
    let saved = waits + working + case.on_path(&loading) + after;
    // In time of the trace, as the waits are.
    let together = if saved > waits * MUCH_MORE {
        format!(", {} with all that goes with it", percent((saved / case.wall()).min(1.0)))
    } else {
        String::new()
    };
    let uncertain = if is_changing { UNCERTAIN_CHANGING } else { UNCERTAIN };
    Some(
        Diagnosed {
            title: format!(
                "Inodes and directories are read from the device{}: {} of the time{together}",
                if is_alone { " one at a time" } else { "" },
                percent(share)
            ),
            share,
            evidence,
            predicted: estimate::without(case, saved, uncertain),
            cure: cures(
                case,
                (is_alone && !is_flat).then_some(order_line),
                (of_inodes.ns > time.ns / 2.0).then_some(inode_line),
            ),
            avoidable_calls: None,
            bound: false,
        }
        .finding(case),
    )
}

/// What is read there is for the most part the program itself, not its name.
fn loads_programs(call: &str) -> bool {
    matches!(call, PAGE_FAULT | "execve" | "execveat")
}

/// The way back to a CPU after each wait: its share of the time spent waiting for a CPU.
fn ready_after(case: &Case<'_>, time: &Time) -> f64 {
    let threads = case.trace.observed.threads.iter().filter(|thread| time.threads.contains(&thread.number));
    let switches = total(threads.map(|thread| thread.switches()));
    let ready = case.ledger(|row| row.kind == RowKind::Runqueue);
    ready * (time.count as f64 / switches.max(1) as f64).min(1.0)
}

/// Time on a CPU that is spent only because metadata are not in memory: finding and sending the request, and making the inode
/// from what was read. Contents are read in other calls.
fn work_of_reading(case: &Case<'_>) -> Time {
    let is_metadata = |call: &str| (concerns_files(call) || loads_programs(call)) && !reads(call) && !writes(call);
    case.sampled_in(is_metadata, |function| {
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

/// Whether a wait in this function is for an inode, not for a block of a directory.
fn reads_inode(function: &str) -> bool {
    matches!(
        function_name(function),
        "__ext4_get_inode_loc" | "ext4_get_inode_loc" | "__ext4_iget" | "ext2_get_inode" | "xfs_iget"
    )
}

/// First the one that the prediction is about. The others answer a line of the evidence: that the reads come one at a time, from several
/// directories, and that they are for inodes.
fn cures(case: &Case<'_>, one_at_a_time: Option<usize>, inodes: Option<usize>) -> Vec<Remedy> {
    let mut cures = vec![Remedy::new(
        "keep metadata in memory: walking the tree first warms it, vm.vfs_cache_pressure below 100 keeps it longer",
        Change::Cache(CacheChange::Warm),
    )];
    if let Some(order) = one_at_a_time {
        let several = "or, for a part of that, walk the tree in several threads, so that several reads are on their way (bfs, fd, inodyne rm)";
        cures.push(Remedy::advice(several).answering(order));
    }
    if let Some(inodes) = inodes.filter(|_| case.fs() == "ext4") {
        let more = Remedy::new(
            "or read more inodes at once: mount with inode_readahead_blks=256",
            Change::Place(PlaceChange::Mount("inode_readahead_blks=256".to_owned())),
        );
        cures.push(more.answering(inodes));
    }
    cures
}
