//! Requests to block devices: how many, how large, how long, who asked for them, and on which path through the kernel.
//!
//! They are counted as `/proc/diskstats` does: a request when it is done, its bytes as they arrive, flushes of a device's cache apart.
//! All of the machine are here, others' too: who asked is in each row.

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
    /// The disks that did anything, by their number.
    pub disks: Vec<Disk>,
    /// Their requests as they were counted, most bytes first.
    pub requests: Vec<Requests>,
    /// The same by disk, path and who asked, most bytes first. Derived.
    #[serde(default)]
    pub paths: Vec<PathRequests>,
    /// Who made pages of files on these disks dirty while the command ran, most bytes first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dirtied: Vec<Dirtied>,
    /// What disks did in the course of the command. None where that was not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_time: Option<IoOverTime>,
    /// Pieces of I/O that the kernel did not show as they were asked for, at most. The requests that begin with them are counted all the
    /// same: of who asked, where and when they are [`Asker::Unknown`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub askers_unseen: u64,
    /// The disk that the command worked with, and whether it bounds the command; none where there is no such disk. Derived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What of a disk bounds a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// The number of the disk that it worked with.
    pub disk: String,
    /// For how long the critical path waited for a device.
    pub waiting_ns: Nanos,
    /// What it was that bounds it.
    pub by: BoundBy,
}

/// What bounds a command, as far as a disk has to do with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoundBy {
    /// Something else: it hardly waited for a device.
    NotTheDevice,
    /// How long the device takes for one request: there were few at once.
    Latency,
    /// How much the device does at all: it was busy with many at once.
    Throughput,
    /// The commits of a journal.
    Journal,
}

/// In place of a disk's number: the kernel does not say which one it is.
pub const UNKNOWN_DISK: &str = "0:0";

/// Data that was written to the page cache, and to a disk by then or later. A page counts each time that it becomes dirty.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Dirtied {
    /// The number of the disk that its file system lies on; of each of them where these are several (md, LVM); [`UNKNOWN_DISK`] where the
    /// kernel does not say it (btrfs, metadata of ext4, file systems of servers).
    pub disk: String,
    /// The command name of the thread that did it.
    pub comm: String,
    /// The control group of who did it, where that is another program's, of version 2, and not the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// Whose thread that is.
    pub asker: Asker,
    /// How much.
    pub bytes: u64,
}

/// A disk: what `/proc/diskstats` calls a device, partitions aside.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Disk {
    /// Its device number, `MAJOR:MINOR`.
    pub number: String,
    /// Its name below `/sys/block`; the number where it has none any more.
    pub name: String,
    /// Pieces of I/O, and requests, that went into another request before that went to the device.
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
    /// The name of the partition, where it was of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// What was asked for.
    pub operation: Operation,
    /// How.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<Flag>,
    /// Where in the kernel the first part of a request was asked for; zero where that was before the command began.
    pub stack: StackId,
    /// The command name of the thread that asked; empty where it is not known.
    pub comm: String,
    /// The control group of who asked, where that is another program's, of version 2, and not the root.
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
    /// How many began where the last one of the same direction had ended on the disk, or that of one of three other streams.
    pub sequential: u64,
    /// Of how many the times are known: all that were sent to the device while the command ran.
    pub timed: u64,
    /// From when their first part was asked for until they were sent to the device, together.
    pub queue_ns: Nanos,
    /// From there until the device was done, together.
    pub device_ns: Nanos,
    /// How many of which size, in rising order.
    pub sizes: Vec<Size>,
    /// The times in the queue, in powers of two.
    pub queue: Histogram,
    /// The times at the device, in powers of two.
    pub device: Histogram,
}

/// Requests of similar sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Size {
    /// The least size of these: a power of two from 512 on. They are smaller than twice of it, but for the last of sixteen.
    pub from_bytes: u64,
    /// How many.
    pub count: u64,
}

impl Amount {
    /// The mean size in bytes.
    pub fn mean_bytes(&self) -> u64 {
        self.bytes.checked_div(self.requests).unwrap_or(0)
    }

    /// The part that is sequential, of those whose times are known.
    pub fn in_order(&self) -> f64 {
        self.sequential as f64 / self.timed.max(1) as f64
    }

    /// The mean time at the device; none where no time is known.
    pub fn mean_device_ns(&self) -> Option<Nanos> {
        self.device_ns.0.checked_div(self.timed).map(Nanos)
    }

    /// The mean time before that; none where no time is known.
    pub fn mean_queue_ns(&self) -> Option<Nanos> {
        self.queue_ns.0.checked_div(self.queue.count()).map(Nanos)
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
    /// To bring what its cache holds to the medium.
    Flush,
    /// To forget what lies somewhere.
    Discard,
    /// Something else: zeroes, zones.
    Other,
}

/// How a request was asked for (`REQ_*` in include/linux/blk_types.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flag {
    /// Somebody waits for it.
    Sync,
    /// It is metadata.
    Meta,
    /// Nobody has asked for this yet.
    ReadAhead,
    /// It is to be on the medium when it is done.
    Fua,
    /// The cache is to be flushed first.
    Preflush,
    /// It may wait for others.
    Background,
    /// It is of the swap space.
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
    /// The kernel's, for whomever.
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
    /// The command name that asked, numbers of kernel threads removed: `jbd2`, `tar`. Empty where it is not known.
    pub comm: String,
    /// The control group of who asked, where that is another program's, of version 2, and not the root.
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
    /// Whether they moved something while the command ran: what is discarded moves nothing.
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
    /// The kernel reads a file's data before they are asked for.
    ReadAhead = "read-ahead", "read-ahead";
    /// Inodes, directories, maps of blocks are read.
    MetadataRead = "metadata-read", "metadata read";
    /// Around the page cache, reading or writing.
    Direct = "direct", "direct I/O";
    /// Data are written because a process waits for that: `fsync`, `sync`, `O_SYNC`.
    SyncWrite = "sync-write", "sync write";
    /// Dirty data are written in the background.
    Writeback = "writeback", "writeback";
    /// Metadata are written to where they belong, without a journal or behind its back.
    MetadataWrite = "metadata-write", "metadata write";
    /// A transaction is written to the journal (ext3, ext4).
    JournalCommit = "journal-commit", "journal commit";
    /// What the journal holds is written to where it belongs, so that the journal's space is free again.
    Checkpoint = "checkpoint", "checkpoint";
    /// The log of XFS, or a transaction of btrfs.
    Log = "log", "log";
    /// A write without data, which asks that the device's cache be flushed.
    FlushAsked = "flush-asked", "asking for a flush";
    /// The device's cache is flushed: for all that have asked meanwhile.
    Flush = "flush", "cache flush";
    /// The device is told that space is free.
    Discard = "discard", "discard";
    /// The swap space.
    Swap = "swap", "swap";
    /// A loop device's file, for requests to that.
    Loop = "loop-device", "below a loop device";
}

impl fmt::Display for IoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A journal or log of a file system, and what was committed to it. What a kind of journal does not tell is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journal {
    /// The number of the file system's device, `MAJOR:MINOR`; btrfs has one of its own, without a block device.
    pub device: String,
    /// The device's name; the number where it has none.
    pub name: String,
    /// What kind it is.
    pub kind: JournalKind,
    /// Transactions that were committed; of XFS, pieces of the log that were written.
    pub commits: u64,
    /// Operations in these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handles: Option<u64>,
    /// Blocks that were written to the journal for these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u64>,
    /// Until no operation was under way in the transaction any more, together. New ones wait meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locked_ns: Option<Nanos>,
    /// Until the data were written that have to be on the device first, together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flushing_ns: Option<Nanos>,
    /// Until the journal was written, together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logging_ns: Option<Nanos>,
    /// The longest commit, from the first of these phases to the end of the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_ns: Option<Nanos>,
    /// Transactions of which a checkpoint wrote something to where it belongs.
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
    /// The commits one by one, in the order of their ends: the first of them, as many as were kept. Empty where they were not seen apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<Commit>,
}

/// One commit of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Commit {
    /// When it began, since the command's start. None where only its end was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_ns: Option<Nanos>,
    /// When it ended, since the command's start; of a piece of a log, when it was sent to the device.
    pub to_ns: Nanos,
    /// Blocks that were written to the journal for it. None where that is not told.
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
    /// Of ext3 and ext4.
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
