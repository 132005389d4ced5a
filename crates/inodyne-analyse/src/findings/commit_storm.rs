//! `commit-storm`: a journal is committed many times a second because somebody syncs, and calls that ask for no durability wait for each of
//! these commits.
//!
//! A command that waits in its own syncs is `sync-bound`; one that waits for room in the journal, or for a commit now and then, is
//! `journal-wait`.

use std::fmt;

use inodyne_model::Nanos;
use inodyne_model::block::{Journal, JournalKind};
use inodyne_model::count::Grouped;
use inodyne_model::finding::Finding;

use super::case::{Case, total};
use super::estimate::{self, Diagnosed};
use super::families::{syncs, writes};
use super::journals;
use super::remedy::Remedy;
use crate::strangers;
use crate::units::{percent, seconds, times};

/// Below this share of the wall-clock time nobody notices.
const LEAST_SHARE: f64 = 0.1;
/// From this many commits a second on, somebody asks for them: by itself, a journal is committed every five seconds (jbd2's
/// `JBD2_DEFAULT_MAX_COMMIT_AGE`, 30 for btrfs), or when it fills.
const MANY: f64 = 10.0;
/// Fewer are a few syncs that happened to come together.
const LEAST_COMMITS: u64 = 10;
/// Above this fraction, the wait is for room in the journal, which has other cures.
const FOR_ROOM: f64 = 0.3;
/// Whoever syncs at least this often for each commit is the one who asks for them.
const FOR_EACH: f64 = 0.5;
/// A transaction of jbd2 is full when its blocks, and what its handles have reserved, make up a quarter of the journal, which has at least
/// 1,024 blocks (`j_max_transaction_buffers`, `JBD2_MIN_JOURNAL_BLOCKS`). The commit of one with far fewer blocks was asked for.
const NOT_FULL: f64 = 32.0;
/// Without the commits, the next write of the same blocks may wait for something else.
const UNCERTAIN: f64 = 0.4;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let journal = journals::of_place(case)?;
    let time = journals::waiting(case);
    let share = case.share(&time);
    let commits = asked_for(journal)?;
    let rate = commits as f64 / (case.trace.wall_ns.0 as f64 / 1e9).max(1e-9);
    let room = journals::waiting_for_room(case).ns;
    if share < LEAST_SHARE || commits < LEAST_COMMITS || rate < MANY || room > time.ns * FOR_ROOM {
        return None;
    }
    let who = Who::of(case, journal, commits)?;
    let mut evidence = vec![what_it_did(journal, commits, case.trace.wall_ns.0)];
    evidence.extend(journals::by_call(&time, 2));
    evidence.push(who.to_string());
    let cure = if matches!(who, Who::Command { .. }) {
        vec![Remedy::advice(
            "sync less often, or once for many changes: each sync commits what all others have changed, and they wait meanwhile",
        )]
    } else {
        vec![
            Remedy::advice(
                "let whoever syncs do so less often: each sync commits what everybody has changed on that file system",
            ),
            Remedy::advice("or give it, or this command, a file system of its own"),
        ]
    };
    Some(
        Diagnosed {
            title: format!(
                "The journal is committed {} times a second, and other calls wait for that: {} of the time",
                Grouped(rate.round() as u64),
                percent(share)
            ),
            share,
            evidence,
            predicted: estimate::without(case, case.on_path(&time), UNCERTAIN),
            cure,
            avoidable_calls: None,
            bound: false,
        }
        .finding(case),
    )
}

/// How often somebody had it committed. Pieces of XFS's log are also written when they are full, so forces are counted there, if they
/// are known.
fn asked_for(journal: &Journal) -> Option<u64> {
    match journal.kind {
        JournalKind::XfsLog => journal.forces,
        JournalKind::Jbd2 | JournalKind::Btrfs => Some(journal.commits),
    }
}

fn what_it_did(journal: &Journal, commits: u64, wall_ns: u64) -> String {
    let each = |sum: Option<u64>| sum.map(|sum| sum as f64 / commits.max(1) as f64);
    let (noun, verb) = match journal.kind {
        JournalKind::XfsLog => ("log", "forced"),
        JournalKind::Jbd2 | JournalKind::Btrfs => ("journal", "committed"),
    };
    let mut line = format!(
        "the {noun} of {} was {verb} {} times, every {}",
        journal.name,
        Grouped(commits),
        seconds(wall_ns as f64 / commits.max(1) as f64)
    );
    if let Some(blocks) = each(journal.blocks) {
        line += &format!(", {blocks:.0} blocks each");
    }
    let phases = [journal.locked_ns, journal.flushing_ns, journal.logging_ns];
    if let Some(sum) = phases.into_iter().sum::<Option<Nanos>>() {
        line += &format!("; a commit took {}", seconds(sum.0 as f64 / commits.max(1) as f64));
    }
    line
}

/// Who asks for the commits, by syncing.
enum Who {
    /// The command's own threads.
    Command { syncs: u64 },
    /// Another program, on the same disk.
    Other { who: String, syncs: u64, of: u64, own: u64 },
    /// It is not known who.
    Somebody { own: u64 },
}

impl Who {
    /// None where the journal may have been committed for another reason.
    fn of(case: &Case<'_>, journal: &Journal, commits: u64) -> Option<Who> {
        let is_enough = |times: u64| times as f64 >= commits as f64 * FOR_EACH;
        let synchronous = case.calls(writes).map(|call| case.calls_waiting(call, |waited| waited.is_sync()));
        let own = total(case.calls(syncs).map(|call| call.calls).chain(synchronous));
        if is_enough(own) {
            return Some(Who::Command { syncs: own });
        }
        let disk = case.trace.block.as_ref().and_then(|block| block.bound.as_ref()).map(|bound| &bound.disk);
        let others = disk.map(|disk| strangers::syncs(case.trace, disk)).unwrap_or_default();
        if let Some((who, syncs)) = others.strangers.into_iter().next().filter(|(_, times)| is_enough(*times)) {
            return Some(Who::Other { who, syncs, of: others.whole, own });
        }
        let is_small = |blocks: u64| (blocks as f64) < commits as f64 * NOT_FULL;
        journal.blocks.is_some_and(is_small).then_some(Who::Somebody { own })
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = |own: u64| match own {
            0 => "the command does not sync".to_owned(),
            count => format!("the command syncs {}", times(count)),
        };
        match self {
            Who::Command { syncs } => write!(f, "the command's own threads sync, {}", times(*syncs)),
            Who::Other { who, syncs, of, own: times } => {
                let (whose, all) = (own(*times), Grouped(*of));
                write!(f, "{whose}; {who} does, on the same disk: {} of {all} synchronous writes", Grouped(*syncs))
            }
            Who::Somebody { own: times } => {
                write!(f, "{}; others do: the commits are too small to be of full transactions", own(*times))
            }
        }
    }
}
