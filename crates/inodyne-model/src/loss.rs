//! What could not be recorded. Every loss is reported as a number.
//!
//! One list names every kind of loss: [`Loss`], the fields of [`Lost`], the keys in a recording and the words of a report come from it.
//! The kernel side counts by `enum loss` (`inodyne-trace/src/bpf/loss.h`), which a test there compares with [`Loss::ALL`]. A new
//! kind goes to the end of both.

use std::collections::BTreeMap;
use std::fmt;
use std::iter::Sum;

use serde::{Deserialize, Serialize};

use crate::count::{Grouped, counted};

macro_rules! losses {
    ($($(#[doc = $doc:literal])+ $kind:ident = $key:ident, $one:literal, $several:literal;)+) => {
        /// One kind of loss.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Loss {
            $($(#[doc = $doc])+ $kind,)+
        }

        impl Loss {
            /// Every kind, in the order in which they are shown.
            pub const ALL: &'static [Loss] = &[$(Loss::$kind,)+];

            /// Its key in a recording. Never changes.
            pub const fn key(self) -> &'static str {
                match self {
                    $(Loss::$kind => stringify!($key),)+
                }
            }

            /// How much was lost, in words: `1 call`, `2,000 samples`.
            pub fn counted(self, count: u64) -> String {
                match self {
                    $(Loss::$kind => counted(count, $one, $several),)+
                }
            }
        }

        /// Counts of events that happened but are not in the trace, by what was full or failed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Lost {
            $($(#[doc = $doc])+ pub $key: u64,)+
        }

        impl Lost {
            /// How many of one kind.
            pub const fn get(&self, loss: Loss) -> u64 {
                match loss {
                    $(Loss::$kind => self.$key,)+
                }
            }

            /// Counts more of one kind.
            pub const fn add(&mut self, loss: Loss, count: u64) {
                let sum = match loss {
                    $(Loss::$kind => &mut self.$key,)+
                };
                *sum = sum.saturating_add(count);
            }
        }
    };
}

losses! {
    /// Calls that are in no table: the table of (command, call) pairs was full.
    Calls = calls, "call", "calls";
    /// Threads that were not followed: the table of live threads was full.
    Threads = threads, "thread", "threads";
    /// Records of ended threads and executed programs that found no room in the ring buffer.
    Records = records, "record of an ended thread", "records of ended threads";
    /// Off-CPU intervals missing from the timeline: its ring buffer or its bound was full.
    Intervals = intervals, "interval of the timeline", "intervals of the timeline";
    /// Waits that are in no (thread, call, stack) row: that table was full. Their time is kept as `other`.
    Waits = waits, "wait", "waits";
    /// Samples that found no room.
    Samples = samples, "sample", "samples";
    /// Stacks that could not be taken or kept.
    Stacks = stacks, "stack", "stacks";
    /// Directory reads or forced look-ups that could not be classified.
    Dtype = dtype, "directory entry", "directory entries";
    /// Pieces of work, and intervals of helpers, that found no room.
    Work = work, "piece of work", "pieces of work";
    /// Wake-ups by threads of others that were not followed because there were too many of these threads.
    Helpers = helpers, "wake-up by others", "wake-ups by others";
    /// Program runs that the kernel skipped (recursion on one CPU).
    Skipped = skipped, "event skipped by the kernel", "events skipped by the kernel";
    /// Requests to block devices that found no room in a table.
    Requests = requests, "request to a block device", "requests to block devices";
}

impl Lost {
    /// Every kind with its count, in the order of [`Loss::ALL`].
    pub fn counts(&self) -> impl Iterator<Item = (Loss, u64)> + '_ {
        Loss::ALL.iter().map(|loss| (*loss, self.get(*loss)))
    }

    /// Everything that was lost.
    pub fn total(&self) -> u64 {
        self.counts().fold(0, |sum, (_, count)| sum.saturating_add(count))
    }
}

/// What was lost, in words; of what was skipped, at which tracepoints ([`crate::trace::Trace::skipped`]).
pub fn in_words(lost: &Lost, skipped: &BTreeMap<String, u64>) -> String {
    let at: Vec<_> = skipped.iter().map(|(name, count)| format!("{name} ({})", Grouped(*count))).collect();
    let skipped = if at.is_empty() { String::new() } else { format!("; skipped at {}", at.join(", ")) };
    format!("{lost}{skipped}")
}

impl Sum for Lost {
    fn sum<I: Iterator<Item = Lost>>(all: I) -> Lost {
        all.fold(Lost::default(), |mut sum, one| {
            one.counts().for_each(|(loss, count)| sum.add(loss, count));
            sum
        })
    }
}

/// What was lost, kind by kind: `3 calls, 2,000 samples`. Empty where nothing was.
impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (loss, count)) in self.counts().filter(|(_, count)| *count > 0).enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{}", loss.counted(count))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_own_count_under_its_own_key() {
        let mut lost = Lost::default();
        for (at, loss) in Loss::ALL.iter().enumerate() {
            lost.add(*loss, 1 << at);
        }
        let json = serde_json::to_value(lost).expect("plain numbers");
        for (at, loss) in Loss::ALL.iter().enumerate() {
            assert_eq!((lost.get(*loss), &json[loss.key()]), (1 << at, &serde_json::json!(1u64 << at)), "{loss:?}");
        }
        assert_eq!(lost.total(), (1 << Loss::ALL.len()) - 1);
    }

    #[test]
    fn losses_of_several_traces_are_told_as_one() {
        let one = Lost { calls: 1, samples: 1_000, ..Lost::default() };
        let other = Lost { samples: 500, ..Lost::default() };
        assert_eq!([one, other].into_iter().sum::<Lost>().to_string(), "1 call, 1,500 samples");
        assert_eq!(Lost::default().to_string(), "");
    }
}
