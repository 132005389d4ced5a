//! What programs that have nothing to do with the command did with a disk: their own requests, and the writeback of what they,
//! not the command, have written.
//!
//! Whose data a writeback request holds is not known. But no more of it can be the command's than the command has made dirty: what
//! exceeds that is others', made dirty meanwhile or before the command began.

use std::collections::{BTreeMap, BTreeSet};

use inodyne_model::Nanos;
use inodyne_model::block::{Asker, BlockIo, Dirtied, IoPath, PathRequests, UNKNOWN_DISK};
use inodyne_model::cgroup::short_name;
use inodyne_model::neighbours::is_own;
use inodyne_model::trace::Trace;

/// What the threads of this program's servers are called: by the library that they are made with (fuser: src/session.rs), or by
/// `inodyne-share`.
const OWN_THREADS: [&str; 2] = ["fuser-", "share-"];

/// How much one of them had of a disk.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Use {
    /// The command name, with the control group where that says something; none for what had been written before the command began.
    pub(crate) who: Option<String>,
    /// How long its requests were at the device, in total.
    pub(crate) device_ns: Nanos,
    /// What they moved.
    pub(crate) bytes: u64,
}

/// What a disk did while the command ran, and for whom else, the most first.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct OnDisk {
    /// How long all requests were at the device, in total.
    pub(crate) device_ns: Nanos,
    /// How long the command's own took, with what went through a loop device: those of others may keep them in the queue for most of it.
    pub(crate) own_ns: Nanos,
    pub(crate) strangers: Vec<Use>,
}

/// A sum that strangers had parts of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Parts {
    /// Everybody's.
    pub(crate) whole: u64,
    /// Theirs, the largest first.
    pub(crate) strangers: Vec<(String, u64)>,
}

impl Parts {
    fn of<'a>(all: impl Iterator<Item = (Option<Who<'a>>, u64)>) -> Parts {
        let (mut whole, mut strangers) = (0u64, BTreeMap::<Who<'a>, u64>::new());
        for (stranger, part) in all {
            whole = whole.saturating_add(part);
            if let Some(who) = stranger {
                let sum = strangers.entry(who).or_default();
                *sum = sum.saturating_add(part);
            }
        }
        let mut strangers: Vec<(String, u64)> = strangers.into_iter().map(|(who, part)| (who.name(), part)).collect();
        strangers.retain(|(_, part)| *part > 0);
        strangers.sort_by_key(|(_, part)| std::cmp::Reverse(*part));
        Parts { whole, strangers }
    }
}

/// A program by its command name, and its control group where that is known and not one of the command's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Who<'a> {
    comm: &'a str,
    cgroup: Option<&'a str>,
}

impl<'a> Who<'a> {
    /// Of one whose group was recorded.
    pub(crate) fn new(trace: &'a Trace, comm: &'a str, cgroup: Option<&'a String>) -> Who<'a> {
        let is_own = |cgroup: &&String| trace.observed.cgroups.contains(cgroup);
        Who { comm, cgroup: cgroup.filter(|cgroup| !is_own(cgroup)).map(String::as_str) }
    }

    /// The command name alone.
    pub(crate) fn comm(&self) -> &'a str {
        self.comm
    }

    /// What people call the group.
    pub(crate) fn group(&self) -> Option<String> {
        self.cgroup.map(short_name)
    }

    /// `writer (backup.service)`
    pub(crate) fn name(&self) -> String {
        self.group().map_or_else(|| self.comm.to_owned(), |group| format!("{} ({group})", self.comm))
    }
}

/// Who works for the command: its own threads and the servers that it asked, by their names, and this program's servers.
struct Known<'a>(BTreeSet<&'a str>);

impl Known<'_> {
    fn of(trace: &Trace) -> Known<'_> {
        let servers = trace.observed.helpers.iter().filter(|helper| helper.server).map(|helper| helper.comm.as_str());
        Known(trace.observed.threads.iter().map(|thread| thread.comm.as_str()).chain(servers).collect())
    }

    fn has(&self, comm: &str) -> bool {
        is_own(comm) || OWN_THREADS.iter().any(|name| comm.starts_with(name)) || self.0.contains(comm)
    }

    fn is_strange(&self, asker: Asker, comm: &str) -> bool {
        asker == Asker::Other && !self.has(comm)
    }
}

/// How much strangers had of a disk that the command used. None where it did not use it.
pub(crate) fn on_disk(trace: &Trace, disk: &str) -> Option<OnDisk> {
    let block = trace.block.as_ref()?;
    let is_meant = |row: &&PathRequests| row.disk == disk && row.moves();
    let rows: Vec<&PathRequests> = block.paths.iter().filter(is_meant).collect();
    // What goes through a loop device to this disk is asked for by a kernel thread.
    let own = rows.iter().filter(|row| row.asker == Asker::Command || row.path == IoPath::Loop);
    let own: Vec<Nanos> = own.map(|row| row.amount.taken_ns()).collect();
    if own.is_empty() {
        return None;
    }
    let known = Known::of(trace);
    let mut uses = BTreeMap::<Option<Who<'_>>, Use>::new();
    let mut add = |who, device_ns, bytes| {
        let used = uses.entry(who).or_default();
        used.device_ns += device_ns;
        used.bytes = used.bytes.saturating_add(bytes);
    };
    for row in rows.iter().filter(|row| known.is_strange(row.asker, &row.comm)) {
        add(Some(Who::new(trace, &row.comm, row.cgroup.as_ref())), row.amount.device_ns, row.amount.bytes);
    }
    let is_written_back = |row: &&&PathRequests| row.path == IoPath::Writeback && row.asker == Asker::Kernel;
    let written_back: Vec<_> = rows.iter().filter(is_written_back).map(|row| &row.amount).collect();
    let bytes = written_back.iter().fold(0u64, |sum, amount| sum.saturating_add(amount.bytes));
    let at_device: Nanos = written_back.iter().map(|amount| amount.device_ns).sum();
    for (who, part) in foreign(trace, block, disk, bytes, &known) {
        add(who, scaled(at_device, part), (bytes as f64 * part) as u64);
    }
    let device_ns = rows.iter().map(|row| row.amount.device_ns).sum();
    let mut strangers: Vec<Use> =
        uses.into_iter().map(|(who, used)| Use { who: who.map(|who| who.name()), ..used }).collect();
    strangers.retain(|used| used.device_ns > Nanos::ZERO);
    strangers.sort_by_key(|used| std::cmp::Reverse(used.device_ns));
    Some(OnDisk { device_ns, own_ns: own.into_iter().sum(), strangers })
}

/// Who wrote how often to a disk in order to have it there: what was synced or written synchronously, in requests.
pub(crate) fn syncs(trace: &Trace, disk: &str) -> Parts {
    requests_that(trace, disk, |row| row.path == IoPath::SyncWrite)
}

/// Who asked for how many requests to a disk while the command ran.
pub(crate) fn requests(trace: &Trace, disk: &str) -> Parts {
    requests_that(trace, disk, PathRequests::moves)
}

fn requests_that(trace: &Trace, disk: &str, is_meant: impl Fn(&PathRequests) -> bool) -> Parts {
    let known = Known::of(trace);
    let rows = trace.block.iter().flat_map(|block| &block.paths).filter(|row| row.disk == disk && is_meant(row));
    Parts::of(rows.map(|row| {
        let strange = known.is_strange(row.asker, &row.comm);
        (strange.then(|| Who::new(trace, &row.comm, row.cgroup.as_ref())), row.amount.requests)
    }))
}

/// Who made how many bytes of files dirty on a disk while the command ran.
pub(crate) fn dirtied(trace: &Trace, disk: &str) -> Parts {
    let known = Known::of(trace);
    let rows = trace.block.iter().flat_map(|block| &block.dirtied).filter(|one| one.disk == disk);
    Parts::of(rows.map(|one| {
        let strange = known.is_strange(one.asker, &one.comm);
        (strange.then(|| Who::new(trace, &one.comm, one.cgroup.as_ref())), one.bytes)
    }))
}

fn scaled(ns: Nanos, part: f64) -> Nanos {
    Nanos((ns.0 as f64 * part) as u64)
}

/// The parts of what was written back that are certainly others': by who made them dirty, and what was dirty before.
fn foreign<'a>(
    trace: &'a Trace,
    block: &'a BlockIo,
    disk: &str,
    written: u64,
    known: &Known<'_>,
) -> Vec<(Option<Who<'a>>, f64)> {
    // Without the probe nothing is known.
    if block.dirtied.is_empty() || written == 0 {
        return Vec::new();
    }
    let (strange, own): (Vec<&Dirtied>, Vec<&Dirtied>) =
        block.dirtied.iter().filter(|one| one.disk == disk).partition(|one| known.is_strange(one.asker, &one.comm));
    let sum = |of: &[&Dirtied]| of.iter().map(|one| one.bytes).fold(0, u64::saturating_add);
    // What lies on a disk that the kernel does not name may lie on this one: the command's, and others', who are then not named.
    let elsewhere: Vec<&Dirtied> = block.dirtied.iter().filter(|one| one.disk == UNKNOWN_DISK).collect();
    let excess = written.saturating_sub(sum(&own)).saturating_sub(sum(&elsewhere));
    let of_now = excess.min(sum(&strange));
    let share = |bytes: f64| bytes / written as f64;
    let whole = strange.iter().map(|one| one.bytes as f64).sum::<f64>().max(1.0);
    let who = |one: &'a Dirtied| Some(Who::new(trace, &one.comm, one.cgroup.as_ref()));
    let each = strange.iter().map(|one| (who(one), share(of_now as f64 * one.bytes as f64 / whole)));
    each.chain([(None, share((excess - of_now) as f64))]).collect()
}

#[cfg(test)]
mod tests {
    use inodyne_model::block::{Amount, Disk};
    use inodyne_model::observed::Helper;
    use inodyne_model::sample::{self, ms};

    use super::*;

    const MB: u64 = 1_000_000;

    fn row(path: IoPath, asker: Asker, comm: &str, megabytes: u64) -> PathRequests {
        let amount = Amount { bytes: megabytes * MB, device_ns: ms(megabytes as f64), ..Amount::default() };
        PathRequests { disk: "7:0".to_owned(), path, asker, comm: comm.to_owned(), amount, ..PathRequests::default() }
    }

    fn dirtied(asker: Asker, comm: &str, megabytes: u64) -> Dirtied {
        let bytes = megabytes * MB;
        Dirtied { disk: "7:0".to_owned(), comm: comm.to_owned(), asker, bytes, ..Dirtied::default() }
    }

    /// Who had how many milliseconds of the disk.
    fn said(paths: &[PathRequests], dirtied: &[Dirtied]) -> Vec<(Option<String>, u64)> {
        said_with(paths, dirtied, Vec::new())
    }

    fn said_with(paths: &[PathRequests], dirtied: &[Dirtied], helpers: Vec<Helper>) -> Vec<(Option<String>, u64)> {
        let (paths, dirtied) = (paths.to_vec(), dirtied.to_vec());
        let disks = vec![Disk { number: "7:0".to_owned(), ..Disk::default() }];
        let mut trace =
            Trace { block: Some(BlockIo { disks, paths, dirtied, ..BlockIo::default() }), ..Trace::default() };
        trace.observed.threads = vec![sample::thread(1, "work", ms(1.0), &[], &[])];
        trace.observed.helpers = helpers;
        let used = on_disk(&trace, "7:0").expect("the command used it");
        used.strangers.into_iter().map(|used| (used.who, used.device_ns.0 / MB)).collect()
    }

    #[test]
    fn what_the_command_did_not_make_dirty_is_written_back_for_others() {
        let own = || row(IoPath::SyncWrite, Asker::Command, "work", 10);
        let paths = || vec![own(), row(IoPath::Writeback, Asker::Kernel, "kworker", 100)];
        let all_own = vec![dirtied(Asker::Command, "work", 120)];
        assert!(said(&paths(), &all_own).is_empty());
        // Of 100 MB at most 20 were its own; two others had made 200 dirty, at 3 to 1.
        let mixed = vec![
            dirtied(Asker::Command, "work", 20),
            dirtied(Asker::Other, "writer", 150),
            dirtied(Asker::Other, "second", 50),
        ];
        assert_eq!(said(&paths(), &mixed), [(Some("writer".to_owned()), 60), (Some("second".to_owned()), 20)]);
        // What nobody has made dirty meanwhile was dirty before.
        let little = vec![dirtied(Asker::Command, "work", 20), dirtied(Asker::Other, "writer", 30)];
        assert_eq!(said(&paths(), &little), [(None, 50), (Some("writer".to_owned()), 30)]);
        // What lies on an unknown disk may have come here.
        let unknown = Dirtied { disk: UNKNOWN_DISK.to_owned(), ..dirtied(Asker::Command, "work", 40) };
        let more = [&little[..], &[unknown]].concat();
        assert_eq!(said(&paths(), &more), [(Some("writer".to_owned()), 30), (None, 10)]);
        // Several rows of writeback count as one: what is the command's is taken off once.
        let split = vec![
            own(),
            row(IoPath::Writeback, Asker::Kernel, "kworker", 30),
            row(IoPath::Writeback, Asker::Kernel, "flush", 70),
        ];
        let one = vec![dirtied(Asker::Command, "work", 20), dirtied(Asker::Other, "writer", 300)];
        assert_eq!(said(&split, &one), [(Some("writer".to_owned()), 80)]);
        // Without the probe, nothing is said about writeback.
        assert!(said(&paths(), &[]).is_empty());
    }

    #[test]
    fn bytes_of_a_damaged_recording_are_shared_out_once() {
        let paths =
            [row(IoPath::SyncWrite, Asker::Command, "work", 10), row(IoPath::Writeback, Asker::Kernel, "kworker", 100)];
        let absurd = Dirtied { bytes: u64::MAX, ..dirtied(Asker::Other, "writer", 0) };
        assert_eq!(said(&paths, &[absurd.clone(), absurd]), [(Some("writer".to_owned()), 100)]);
    }

    #[test]
    fn who_syncs_most_is_none_of_the_command_and_none_of_ours() {
        let synced = |asker, comm: &str, requests| {
            let row = row(IoPath::SyncWrite, asker, comm, 1);
            PathRequests { amount: Amount { requests, ..row.amount.clone() }, ..row }
        };
        let mut paths = vec![synced(Asker::Command, "work", 90), synced(Asker::Other, "work", 80)];
        paths.extend([synced(Asker::Other, "fuser-1", 70), row(IoPath::Direct, Asker::Other, "reader", 60)]);
        let who = |paths: &[PathRequests]| {
            let block = BlockIo { paths: paths.to_vec(), ..BlockIo::default() };
            let mut trace = Trace { block: Some(block), ..Trace::default() };
            trace.observed.threads = vec![sample::thread(1, "work", ms(1.0), &[], &[])];
            assert_eq!(syncs(&trace, "7:1"), Parts::default());
            syncs(&trace, "7:0")
        };
        assert_eq!(who(&paths), Parts { whole: 240, strangers: Vec::new() });
        paths.extend([synced(Asker::Other, "mail", 5), synced(Asker::Other, "database", 50)]);
        let strangers = vec![("database".to_owned(), 50), ("mail".to_owned(), 5)];
        assert_eq!(who(&paths), Parts { whole: 295, strangers });
    }

    #[test]
    fn programs_of_one_name_are_told_apart_by_their_groups_but_not_by_the_commands_own() {
        let of = |comm, bytes, cgroup: Option<&str>| Dirtied {
            cgroup: cgroup.map(str::to_owned),
            ..dirtied(Asker::Other, comm, bytes)
        };
        let dirtied = vec![
            dirtied(Asker::Command, "work", 10),
            of("dd", 50, Some("/system.slice/backup.service")),
            of("dd", 20, Some("/own.slice")),
            of("dd", 3, None),
        ];
        let mut trace = Trace { block: Some(BlockIo { dirtied, ..BlockIo::default() }), ..Trace::default() };
        trace.observed.cgroups = vec!["/own.slice".to_owned()];
        let parts = super::dirtied(&trace, "7:0");
        let strangers = vec![("dd (backup.service)".to_owned(), 50 * MB), ("dd".to_owned(), 23 * MB)];
        assert_eq!(parts, Parts { whole: 83 * MB, strangers });
    }

    #[test]
    fn servers_and_threads_of_the_kernel_may_do_it_for_the_command() {
        let own = row(IoPath::SyncWrite, Asker::Command, "work", 10);
        let paths = vec![
            own,
            row(IoPath::Writeback, Asker::Kernel, "kworker", 100),
            row(IoPath::Direct, Asker::Other, "stranger", 7),
            row(IoPath::Direct, Asker::Other, "inodyne-disk", 9),
        ];
        let all = vec![
            dirtied(Asker::Kernel, "kworker/u4:1", 60),
            dirtied(Asker::Other, "fuser-1", 30),
            dirtied(Asker::Other, "work", 10),
            dirtied(Asker::Other, "writer", 500),
        ];
        assert_eq!(said(&paths, &all), [(Some("stranger".to_owned()), 7)]);
        // A process that the command asked is no stranger; one that only woke it is.
        let helper = |server| Helper { comm: "stranger".to_owned(), server, ..Helper::default() };
        let with = |helpers| said_with(&paths, &all, vec![helper(helpers)]);
        assert!(with(true).is_empty());
        assert_eq!(with(false).len(), 1);
    }
}
