//! Requests that servers answered: how long each took, and what the slow ones waited for that the others did not.

use serde::{Deserialize, Serialize};

use crate::Nanos;
use crate::ledger::Ledger;
use crate::observed::ThreadNumber;

/// Requests, in columns. One begins when it has been read from a descriptor, and ends when the first part of its answer has been
/// written there.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Served {
    /// The two calls that mark them; empty for any that read from a socket, and any that write to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
    /// When each had been read, in nanoseconds since the start.
    pub from_ns: Vec<u64>,
    /// How long it took from there, in nanoseconds.
    pub ns: Vec<u64>,
    /// Who answered it.
    pub thread: Vec<ThreadNumber>,
    /// Requests for which there was no room.
    pub not_kept: u64,
    /// What they waited for: the slowest ones, then the others. Derived; empty where the timeline does not show it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<ServedGroup>,
}

/// Requests that are looked at together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ServedGroup {
    /// Whether these are the slowest, where there is another group.
    pub slowest: bool,
    /// How many there are.
    pub requests: u64,
    /// How many of these the ledger covers: where there are very many, some of all lengths.
    pub looked_at: u64,
    /// How long the fastest of them took.
    pub least_ns: Nanos,
    /// What those that were looked at waited for, or did, together. It sums to their time.
    pub ledger: Ledger,
}

impl Served {
    /// Each with its beginning, since the start, its length, and who answered it. If columns are damaged, the list ends with the shortest.
    pub fn iter(&self) -> impl Iterator<Item = (Nanos, Nanos, ThreadNumber)> + '_ {
        let times = self.from_ns.iter().zip(&self.ns);
        times.zip(&self.thread).map(|((from, ns), thread)| (Nanos(*from), Nanos(*ns), *thread))
    }

    /// How long each of these fractions of them, from 0 to 1, took at most; none where there are no requests.
    pub fn quantiles(&self, parts: &[f64]) -> Vec<Option<Nanos>> {
        let mut sorted = self.ns.clone();
        sorted.sort_unstable();
        let rank = |part: f64| (part * sorted.len() as f64).ceil() as usize;
        parts.iter().map(|part| sorted.get(rank(*part).max(1) - 1).copied().map(Nanos)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_were_seen() {
        let requests = Served { ns: (1..=200).rev().collect(), ..Served::default() };
        assert_eq!(requests.quantiles(&[0.0, 0.5, 0.99, 1.0]), [1, 100, 198, 200].map(|ns| Some(Nanos(ns))));
        assert_eq!(Served::default().quantiles(&[0.5]), [None]);
    }
}
