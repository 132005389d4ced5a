//! Which others held the locks that the command waited for: whoever ends such a wait releases the lock, and is followed from then on.
//!
//! Only the last holder is known this way: where several held the lock in turn during one wait, the others are not named. How long
//! somebody held it before the wait is not known either. So a share is of the time that the command waited, not of the time that the
//! lock was held.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use inodyne_model::Nanos;
use inodyne_model::count::counted;
use inodyne_model::observed::{Helper, ThreadNumber, Waker};
use inodyne_model::stack::StackId;

use super::case::Case;
use crate::strangers::Who;
use crate::units::{percent, seconds};

/// How many names are given; the rest is a number.
const NAMES: usize = 3;

/// The waits of the command's threads for locks, by who ended them.
#[derive(Debug, Default)]
pub(super) struct Holders<'a> {
    /// All of them.
    all: Nanos,
    /// Those that the command's own threads ended.
    own: Nanos,
    /// Those that were ended by processes that do not belong to the command.
    strangers: BTreeMap<Who<'a>, Had>,
}

#[derive(Debug, Default)]
struct Had {
    ns: Nanos,
    processes: BTreeSet<u32>,
}

impl<'a> Holders<'a> {
    /// The holders for all waits for locks. Nobody where it is not known for each wait how it ended.
    pub(super) fn of(case: &Case<'a>) -> Holders<'a> {
        let mut holders = Holders::default();
        if case.path.is_none() {
            return holders;
        }
        let observed = &case.trace.observed;
        let helpers: HashMap<ThreadNumber, &Helper> =
            observed.helpers.iter().map(|helper| (helper.number, helper)).collect();
        let timeline = &observed.timeline;
        let stack = |index: Option<&u32>| {
            index.and_then(|index| timeline.stacks.get(*index as usize)).copied().unwrap_or_default()
        };
        for (at, _) in timeline.thread.iter().enumerate().filter(|(_, thread)| !helpers.contains_key(*thread)) {
            let place = stack(timeline.stack.get(at));
            let waker = timeline.waker.get(at).copied().unwrap_or(Waker::Unknown);
            let cause = case.classifier.cause_of(place, waker, stack(timeline.waker_stack.get(at)));
            if place == StackId(0) || !cause.is_lock() {
                continue;
            }
            let ns = Nanos(timeline.blocked_ns.get(at).copied().unwrap_or(0));
            holders.all += ns;
            if waker == Waker::Traced {
                holders.own += ns;
            }
            let by = timeline.waker_thread.get(at).and_then(|by| helpers.get(by)).filter(|_| waker != Waker::Interrupt);
            if let Some(helper) = by.filter(|helper| !helper.kernel_thread && !helper.server) {
                let had =
                    holders.strangers.entry(Who::new(case.trace, &helper.comm, helper.cgroup.as_ref())).or_default();
                had.ns += ns;
                had.processes.insert(helper.pid);
            }
        }
        holders
    }

    /// How much of the waiting ended with a release by a process that does not belong to the command.
    pub(super) fn share_of_strangers(&self) -> f64 {
        self.strangers.values().map(|had| had.ns).sum::<Nanos>().share_of(self.all)
    }

    /// Their names, whoever was waited for longest first; none where there is nobody.
    pub(super) fn names(&self) -> Option<String> {
        let mut names: Vec<&str> = self.sorted().into_iter().map(|(who, _)| who.comm()).collect();
        // Two control groups may each have one of the same name.
        let mut told = BTreeSet::new();
        names.retain(|name| told.insert(*name));
        match names.len() {
            0 => None,
            1..=NAMES => Some(names.join(", ")),
            more => Some(format!("{} and {}", names[..NAMES].join(", "), others(more - NAMES))),
        }
    }

    /// A line of evidence: who ended the waits, and for which shares of the time waited. None where there is nobody.
    pub(super) fn evidence(&self) -> Option<String> {
        let all = self.sorted();
        if all.is_empty() {
            return None;
        }
        let share = |ns: Nanos| percent(ns.share_of(self.all));
        let one = |(who, had): &(Who<'_>, &Had)| {
            let pids: Vec<String> = had.processes.iter().map(u32::to_string).collect();
            let processes = match pids.len() {
                1 => format!("process {}", pids[0]),
                several => format!("{several} processes"),
            };
            let group = who.group().map_or_else(String::new, |group| format!(" of {group}"));
            format!("{} ({processes}{group}) {}", who.comm(), share(had.ns))
        };
        let mut named: Vec<String> = all.iter().take(NAMES).map(one).collect();
        let theirs: Nanos = all.iter().skip(NAMES).map(|(_, had)| had.ns).sum();
        named.extend((theirs > Nanos::ZERO).then(|| format!("{} {}", others(all.len() - NAMES), share(theirs))));
        named.extend((self.own > Nanos::ZERO).then(|| format!("threads of the command {}", share(self.own))));
        let all = seconds(self.all.0 as f64);
        Some(format!("who released them, as shares of the {all} spent waiting for locks: {}", named.join(", ")))
    }

    fn sorted(&self) -> Vec<(Who<'a>, &Had)> {
        let mut all: Vec<(Who<'a>, &Had)> = self.strangers.iter().map(|(who, had)| (*who, had)).collect();
        all.sort_by_key(|(_, had)| std::cmp::Reverse(had.ns));
        all
    }
}

fn others(count: usize) -> String {
    counted(count as u64, "other", "others")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_time_waited_and_a_group_of_its_own_is_named() {
        let had = |ms: u64, processes: &[u32]| Had {
            ns: Nanos(ms * 1_000_000),
            processes: processes.iter().copied().collect(),
        };
        let trace = inodyne_model::trace::Trace::default();
        let group = "/system.slice/backup.service".to_owned();
        let strangers = BTreeMap::from([
            (Who::new(&trace, "tar", Some(&group)), had(600, &[71])),
            (Who::new(&trace, "tar", None), had(100, &[72, 73])),
        ]);
        let (all, own) = (Nanos(1_000_000_000), Nanos(250_000_000));
        let holders = Holders { all, own, strangers };
        assert_eq!(holders.names().as_deref(), Some("tar"));
        assert_eq!(holders.share_of_strangers(), 0.7);
        let said = holders.evidence().expect("there are strangers");
        let expected = "who released them, as shares of the 1.00 s spent waiting for locks: tar (process 71 of backup.service) 60%, \
                        tar (2 processes) 10%, threads of the command 25%";
        assert_eq!(said, expected);
        assert_eq!(Holders { strangers: BTreeMap::new(), ..holders }.evidence(), None);
    }
}
