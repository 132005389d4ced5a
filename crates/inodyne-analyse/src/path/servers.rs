//! What servers created. A server that sleeps until a timer wakes it checks whether they are done: what they did meanwhile is what it
//! waited for, though they did not wake it.
//!
//! ```text
//! systemd     fork │ sleep … timer │ look │ sleep … timer │ look │ sleep … woken by the end of find │
//! find             └─ run  │ blocked: device-read │ run │ blocked │ run, exit ─────────────────────┘
//! ```

use std::collections::BTreeSet;

use inodyne_model::observed::{Helper, ThreadNumber};

use super::history::{Histories, Off, Who};

/// How many creators of creators are looked at: a daemon's child, its child, and so on. A damaged file may have a cycle.
const GENERATIONS: usize = 6;

/// Those that live at an instant that only moves back.
pub(super) struct Servers<'a> {
    histories: &'a Histories<'a>,
    /// How many of those that were created ended before the instant.
    ended: usize,
    /// The others that were born before it, by birth.
    living: BTreeSet<(u64, ThreadNumber)>,
}

impl<'a> Servers<'a> {
    pub(super) fn new(histories: &'a Histories<'a>) -> Servers<'a> {
        let mut servers = Servers { histories, ended: 0, living: BTreeSet::new() };
        servers.begin();
        servers
    }

    /// Starts from the end again.
    pub(super) fn begin(&mut self) {
        self.ended = self.histories.created_by_servers.len();
        self.living.clear();
    }

    /// Those that this process or its children created and that lived at an instant, the youngest first. Its own threads do not count.
    pub(super) fn living(&mut self, server: u32, now: u64) -> impl Iterator<Item = ThreadNumber> {
        let created = &self.histories.created_by_servers;
        while let Some(last) = self.ended.checked_sub(1).map(|at| created[at]).filter(|last| last.ended >= now) {
            self.living.insert((last.born, last.number));
            self.ended -= 1;
        }
        while self.living.last().is_some_and(|(born, _)| *born >= now) {
            self.living.pop_last();
        }
        let this = &*self;
        let youngest = this.living.iter().rev().map(|(_, number)| *number);
        let is_other = move |number| this.helper(number).is_some_and(|helper| helper.pid != server);
        youngest.filter(move |number| is_other(*number) && this.comes_from(*number, server))
    }

    /// Those that this process or its children created and that ended between these instants, the last first.
    pub(super) fn ended(&self, server: u32, since: u64, now: u64) -> impl Iterator<Item = (ThreadNumber, u64)> {
        let ends = &self.histories.ends_of_servers;
        let ended = &ends[..ends.partition_point(|(ended, _)| *ended < now)];
        let after = ended.iter().rev().take_while(move |(ended, _)| *ended > since);
        after.map(|(ended, number)| (*number, *ended)).filter(move |(number, _)| self.comes_from(*number, server))
    }

    /// The wait that a thread is in at an instant, if it is in one.
    pub(super) fn wait_at(&self, number: ThreadNumber, now: u64) -> Option<&'a Off> {
        let histories = self.histories;
        let offs = &histories.of.get(&number)?.offs;
        let off = offs.get(offs.partition_point(|off| off.back < now))?;
        (off.out < now && now <= off.wake).then_some(off)
    }

    /// Whether this process or one of its children created it.
    fn comes_from(&self, number: ThreadNumber, server: u32) -> bool {
        self.creators(number).any(|creator| creator.pid == server)
    }

    fn helper(&self, number: ThreadNumber) -> Option<&'a Helper> {
        let histories = self.histories;
        match histories.of.get(&number)?.who {
            Who::Helper(helper) => Some(helper),
            Who::Command(_) => None,
        }
    }

    /// The helper that created this one, the one that created that, and so on.
    fn creators(&self, of: ThreadNumber) -> impl Iterator<Item = &'a Helper> {
        let creator = move |of: &&'a Helper| of.parent.and_then(|parent| self.helper(parent));
        std::iter::successors(self.helper(of).as_ref().and_then(creator), creator).take(GENERATIONS)
    }
}
