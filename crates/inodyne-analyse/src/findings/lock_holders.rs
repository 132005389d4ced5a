//! Who of others had the locks that the command waited for: whoever ends such a wait releases the lock, and is followed from then on.
//!
//! Only the last holder is known so: where several had the lock in turn during one wait, the others are not named. How long somebody had it
//! before the wait is not known either; so what is said is for how long the command waited.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use inodyne_model::Nanos;
use inodyne_model::observed::{Helper, ThreadNumber, Waker};
use inodyne_model::stack::StackId;

use super::case::Case;
use crate::units::seconds;

/// Names that are told; the rest is a number.
const NAMES: usize = 3;

/// The waits of the command's threads for locks, by who ended them.
#[derive(Debug, Default)]
pub(super) struct Holders<'a> {
    /// All of them.
    all: Nanos,
    /// Those that processes ended which are none of the command's, by command name.
    strangers: BTreeMap<&'a str, Had>,
}

#[derive(Debug, Default)]
struct Had {
    ns: Nanos,
    processes: BTreeSet<u32>,
}

impl<'a> Holders<'a> {
    /// Of all waits for locks. Nobody where it is not known of each wait how it ended.
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
            let by = timeline.waker_thread.get(at).and_then(|by| helpers.get(by)).filter(|_| waker != Waker::Interrupt);
            if let Some(helper) = by.filter(|helper| !helper.kernel_thread && !helper.server) {
                let had = holders.strangers.entry(&helper.comm).or_default();
                had.ns += ns;
                had.processes.insert(helper.pid);
            }
        }
        holders
    }

    /// How much of the waiting ended with a release by one that is none of the command's.
    pub(super) fn share_of_strangers(&self) -> f64 {
        self.strangers.values().map(|had| had.ns).sum::<Nanos>().share_of(self.all)
    }

    /// Their names, whoever was waited for longest first; none where there is nobody.
    pub(super) fn names(&self) -> Option<String> {
        let names: Vec<&str> = self.sorted().into_iter().map(|(name, _)| name).collect();
        match names.len() {
            0 => None,
            1..=NAMES => Some(names.join(", ")),
            more => Some(format!("{} and {} others", names[..NAMES].join(", "), more - NAMES)),
        }
    }

    /// A line of evidence; none where there is nobody.
    pub(super) fn evidence(&self) -> Option<String> {
        let all = self.sorted();
        if all.is_empty() {
            return None;
        }
        let one = |(name, had): &(&str, &Had)| {
            let pids: Vec<String> = had.processes.iter().map(u32::to_string).collect();
            let who = match pids.len() {
                1 => format!("process {}", pids[0]),
                several => format!("{several} processes"),
            };
            format!("{name} ({who}) {}", seconds(had.ns.0 as f64))
        };
        let named: Vec<String> = all.iter().take(NAMES).map(one).collect();
        let others = all.len().saturating_sub(NAMES);
        let more = if others > 0 { format!(", {others} others") } else { String::new() };
        let (all, named) = (seconds(self.all.0 as f64), named.join(", "));
        Some(format!("others had it last, of {all} of waits: {named}{more}"))
    }

    fn sorted(&self) -> Vec<(&'a str, &Had)> {
        let mut all: Vec<(&str, &Had)> = self.strangers.iter().map(|(name, had)| (*name, had)).collect();
        all.sort_by_key(|(_, had)| std::cmp::Reverse(had.ns));
        all
    }
}
