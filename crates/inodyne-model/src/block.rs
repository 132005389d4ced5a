//! Requests to block devices: how many, how large, how long, who asked for them, and on which path through the kernel.
//!
//! They are counted as in `/proc/diskstats`: a request when it is done, its bytes as they arrive, flushes of a device's cache separately.
//! Requests of the whole machine are here, including those of other programs: each row says who asked.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Nanos;
use crate::disk_limits::DiskLimits;
use crate::histogram::Histogram;
use crate::io_over_time::IoOverTime;
use crate::stack::StackId;

/// What block devices did while the command ran.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BlockIo {
    /// The disks that did anything, by number.
    pub disks: Vec<Disk>,
    /// Their requests as they were counted, most bytes first.
    pub requests: Vec<Requests>,
    /// The same by disk, path and who asked, most bytes first. Derived.
    #[serde(default)]
    pub paths: Vec<PathRequests>,
    /// Who made pages of files on these disks dirty while the command ran, most bytes first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dirtied: Vec<Dirtied>,
    /// What disks did over the course of the command. None where that was not observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_time: Option<IoOverTime>,
    /// Pieces of I/O that the kernel did not show when they were asked for, at most. The requests that begin with them are still counted,
    /// but who asked, where and when is not known ([`Asker::Unknown`]).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub askers_unseen: u64,
    /// The disk that the command worked with, and whether it bounds the command; none where there is no such disk. Derived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What about a disk bounds a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// The number of the disk that it worked with.
    pub disk: String,
    /// For how long the critical path waited for a device.
    pub waiting_ns: Nanos,
    /// What bounds it.
    pub by: BoundBy,
}

/// What bounds a command, as far as a disk is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoundBy {
    /// Something else: it hardly waited for a device.
    NotTheDevice,
    /// How long the device takes for one request: few were in flight at once.
    Latency,
    /// How much the device can do in total: it was busy with many at once.
    Throughput,
    /// The commits of a journal.
    Journal,
}

/// Stands for a disk's number where the kernel does not say which disk it is.
pub const UNKNOWN_DISK: &str = "0:0";

/// Data that was written to the page cache, and to a disk by then or later. A page counts each time it becomes dirty.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Dirtied {
    /// The number of the disk that its file system lies on, with an entry for each disk where there are several (md, LVM);
    /// [`UNKNOWN_DISK`] where the kernel does not say (btrfs, metadata of ext4, file systems of servers).
    pub disk: String,
    /// The command name of the thread that did it.
    pub comm: String,
    /// The control group (version 2) of whoever did it, where that is another program and the group is not the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// Whose thread that is.
    pub asker: Asker,
    /// How much.
    pub bytes: u64,
}

/// A disk: a device in `/proc/diskstats`, other than a partition.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Disk {
    /// Its device number, `MAJOR:MINOR`.
    pub number: String,
    /// Its name below `/sys/block`; the number where it no longer has one.
    pub name: String,
    /// Pieces of I/O and requests that were merged into another request before that one went to the device.
    pub merged: u64,
    /// How long at least one request was at the device.
    pub busy_ns: Nanos,
    /// What it can do, where somebody has measured that on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<DiskLimits>,
}

/// Requests that have everything in common but their size and time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Requests {
    /// The number of the disk.
    pub disk: String,
    /// The name of the partition, where they were to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// What was asked for.
    pub operation: Operation,
    /// How it was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<Flag>,
    /// Where in the kernel the first part of a request was asked for; zero where that was before the command began.
    pub stack: StackId,
    /// The command name of the thread that asked; empty where it is not known.
    pub comm: String,
    /// The control group (version 2) of whoever asked, where that is another program and the group is not the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// Whose thread that is.
    pub asker: Asker,
    /// Whether they were done after the command had ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after: bool,
    /// How many, and how long.
    #[serde(flatten)]
    pub amount: Amount,
}

/// How many requests, of which sizes and times.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Amount {
    /// How many were done.
    pub requests: u64,
    /// What they moved.
    pub bytes: u64,
    /// How many began where the last one in the same direction had ended on the disk, or where that of one of three other streams had.
    pub sequential: u64,
    /// For how many the times are known: all that were sent to the device while the command ran.
    pub timed: u64,
    /// Total time from when their first part was asked for until they were sent to the device.
    pub queue_ns: Nanos,
    /// Total time from there until the device was done.
    pub device_ns: Nanos,
    /// How many of each size, in increasing order.
    pub sizes: Vec<Size>,
    /// The times in the queue, in powers of two.
    pub queue: Histogram,
    /// The times at the device, in powers of two.
    pub device: Histogram,
}

/// Requests of similar sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Size {
    /// The lower bound of these sizes: a power of two from 512 up. They are smaller than twice this, except in the last of sixteen.
    pub from_bytes: u64,
    /// How many.
    pub count: u64,
}

impl Amount {
    /// The mean size in bytes.
    pub fn mean_bytes(&self) -> u64 {
        self.bytes.checked_div(self.requests).unwrap_or(0)
    }

    /// The fraction that is sequential, of those whose times are known.
    pub fn in_order(&self) -> f64 {
        self.sequential as f64 / self.timed.max(1) as f64
    }

    /// The mean time at the device; none where no time is known.
    pub fn mean_device_ns(&self) -> Option<Nanos> {
        self.device_ns.0.checked_div(self.timed).map(Nanos)
    }

    /// The mean time in the queue before that; none where no time is known.
    pub fn mean_queue_ns(&self) -> Option<Nanos> {
        self.queue_ns.0.checked_div(self.queue.count()).map(Nanos)
    }

    /// How long they took in total, in the queue and at the device.
    pub fn taken_ns(&self) -> Nanos {
        self.queue_ns + self.device_ns
    }

    /// Adds others.
    pub fn add(&mut self, other: &Amount) {
        self.requests = self.requests.saturating_add(other.requests);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.sequential = self.sequential.saturating_add(other.sequential);
        self.timed = self.timed.saturating_add(other.timed);
        self.queue_ns += other.queue_ns;
        self.device_ns += other.device_ns;
        self.queue.merge(&other.queue);
        self.device.merge(&other.device);
        for size in &other.sizes {
            match self.sizes.binary_search_by_key(&size.from_bytes, |own| own.from_bytes) {
                Ok(at) => self.sizes[at].count = self.sizes[at].count.saturating_add(size.count),
                Err(at) => self.sizes.insert(at, *size),
            }
        }
    }
}

/// What a request asks a device for (`REQ_OP_*` in include/linux/blk_types.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// To read.
    #[default]
    Read,
    /// To write.
    Write,
    /// To write what its cache holds to the medium.
    Flush,
    /// To forget what is stored somewhere.
    Discard,
    /// Something else: zeroes, zones.
    Other,
}

/// How a request was asked for (`REQ_*` in include/linux/blk_types.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flag {
    /// Somebody is waiting for it.
    Sync,
    /// It is metadata.
    Meta,
    /// Nobody has asked for this yet.
    ReadAhead,
    /// It must be on the medium when it is done.
    Fua,
    /// The cache is to be flushed first.
    Preflush,
    /// It may wait for others.
    Background,
    /// It is for the swap space.
    Swap,
}

/// Whose thread asked for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Asker {
    /// It is not known: asked for before the command began, or by the block layer itself.
    #[default]
    Unknown,
    /// The command's own.
    Command,
    /// The kernel's, on whoever's behalf.
    Kernel,
    /// Another program's.
    Other,
}

impl Asker {
    /// Its name in recordings and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Asker::Unknown => "unknown",
            Asker::Command => "command",
            Asker::Kernel => "kernel",
            Asker::Other => "other",
        }
    }
}

/// Requests to one disk on one path, asked for by one command name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PathRequests {
    /// The number of the disk.
    pub disk: String,
    /// The path through the kernel.
    pub path: IoPath,
    /// The command name that asked, without the numbers in those of kernel threads: `jbd2`, `tar`. Empty where it is not known.
    pub comm: String,
    /// The control group (version 2) of whoever asked, where that is another program and the group is not the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// Whose threads these are.
    pub asker: Asker,
    /// Whether they were done after the command had ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after: bool,
    /// How many, and how long.
    #[serde(flatten)]
    pub amount: Amount,
}

impl PathRequests {
    /// Whether they moved anything while the command ran: discards move nothing.
    pub fn moves(&self) -> bool {
        self.path != IoPath::Discard && !self.after
    }
}

macro_rules! paths {
    ($($(#[doc = $doc:literal])+ $path:ident = $name:literal, $words:literal;)+) => {
        /// Why a request was made: the path through the kernel on which it was asked for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        pub enum IoPath {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $path,)+
            /// None of these, or it was asked for before the command began.
            #[default]
            #[serde(rename = "other", other)]
            Other,
        }

        impl IoPath {
            /// All paths.
            pub const ALL: &'static [IoPath] = &[$(IoPath::$path,)+ IoPath::Other];

            /// Its name in recordings and tables.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(IoPath::$path => $name,)+
                    IoPath::Other => "other",
                }
            }

            /// In words.
            pub const fn words(self) -> &'static str {
                match self {
                    $(IoPath::$path => $words,)+
                    IoPath::Other => "other",
                }
            }
        }
    };
}

paths! {
    /// A process reads a file.
    DataRead = "data-read", "data read";
    /// The kernel reads a file's data before it is asked for.
    ReadAhead = "read-ahead", "read-ahead";
    /// Inodes, directories or block maps are read.
    MetadataRead = "metadata-read", "metadata read";
    /// Reads or writes that bypass the page cache.
    Direct = "direct", "direct I/O";
    /// Data is written because a process is waiting for that: `fsync`, `sync`, `O_SYNC`.
    SyncWrite = "sync-write", "sync write";
    /// Dirty data is written in the background.
    Writeback = "writeback", "writeback";
    /// Metadata is written to its home location, without a journal or independently of it.
    MetadataWrite = "metadata-write", "metadata write";
    /// A transaction is written to the journal (ext3, ext4).
    JournalCommit = "journal-commit", "journal commit";
    /// What the journal holds is written to its home location, so that the journal's space becomes free again.
    Checkpoint = "checkpoint", "checkpoint";
    /// The log of XFS, or a transaction of btrfs.
    Log = "log", "log";
    /// A write without data, which asks that the device's cache be flushed.
    FlushAsked = "flush-asked", "asking for a flush";
    /// The device's cache is flushed, for all that have asked for it in the meantime.
    Flush = "flush", "cache flush";
    /// The device is told that space is free.
    Discard = "discard", "discard";
    /// The swap space.
    Swap = "swap", "swap";
    /// I/O to a loop device's file, for requests to that device.
    Loop = "loop-device", "below a loop device";
}

impl fmt::Display for IoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A journal or log of a file system, and what was committed to it. Figures that a kind of journal does not provide are none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journal {
    /// The number of the file system's device, `MAJOR:MINOR`; btrfs has one of its own, without a block device.
    pub device: String,
    /// The device's name; the number where it has none.
    pub name: String,
    /// What kind it is.
    pub kind: JournalKind,
    /// Transactions that were committed; for XFS, pieces of the log that were written.
    pub commits: u64,
    /// Operations in these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handles: Option<u64>,
    /// Blocks that were written to the journal for these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u64>,
    /// Total time until no operation was under way in the transaction any more. New ones wait meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locked_ns: Option<Nanos>,
    /// Total time until the data that has to be on the device first was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flushing_ns: Option<Nanos>,
    /// Total time until the journal was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logging_ns: Option<Nanos>,
    /// The longest commit, from the first of these phases to the end of the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_ns: Option<Nanos>,
    /// Transactions from which a checkpoint wrote something to its home location.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoints: Option<u64>,
    /// Blocks that these wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpointed: Option<u64>,
    /// How often somebody asked for the log to be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forces: Option<u64>,
    /// How often somebody had to wait for space in the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for_space: Option<u64>,
    /// The individual commits, ordered by when they ended: the first ones, as many as were kept. Empty where they were not seen individually.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<Commit>,
}

/// One commit of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Commit {
    /// When it began, since the command's start. None where only its end was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_ns: Option<Nanos>,
    /// When it ended, since the command's start; for a piece of a log, when it was sent to the device.
    pub to_ns: Nanos,
    /// Blocks that were written to the journal for it. None where that is not reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u64>,
}

impl Journal {
    /// The commits where all of them were kept; none where some were not.
    pub fn all(&self) -> Option<&[Commit]> {
        (self.commits > 0 && self.each.len() as u64 == self.commits).then_some(&self.each)
    }
}

/// Kinds of journals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JournalKind {
    /// The journal of ext3 and ext4.
    Jbd2,
    /// The log of XFS.
    XfsLog,
    /// Transactions of btrfs.
    Btrfs,
}

impl JournalKind {
    /// Its name in recordings and tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            JournalKind::Jbd2 => "jbd2",
            JournalKind::XfsLog => "xfs-log",
            JournalKind::Btrfs => "btrfs",
        }
    }
}
