//! The nouns of inodyne, and nothing else.
//!
//! Every crate of the workspace speaks in these types: the collecting side fills them, the analysis reads and
//! completes them, the renderers print them. They are pure data with units in their names; there is no clock, no
//! privilege and no system call here. The one file operation is reading and writing a [`recording::Recording`], since
//! the file format *is* these types (see `FORMAT.md`), and [`mod@file`] is how anything is written whole.
//!
//! | module | noun |
//! |---|---|
//! | [`time`] | nanoseconds |
//! | [`histogram`] | the log-linear histogram shared with the BPF side |
//! | [`stack`] | kernel stacks and their identities |
//! | [`cause`] | why a thread was blocked |
//! | [`ledger`] | the partition of wall-clock time |
//! | [`path`] | the critical path through time |
//! | [`syscall`] | what is known of one system call |
//! | [`observed`] | what the kernel side saw of one run, before any explanation |
//! | [`profile`] | time by stack |
//! | [`trace`] | a traced run: what was observed and what it means |
//! | [`count`] | counts as people read them |
//! | [`place`], [`run`], [`host`] | where, what and on which machine |
//! | [`finding`] | a diagnosis |
//! | [`comparison`], [`metric`] | two cases held against each other, and by what |
//! | [`statistics`] | what many runs of one case say |
//! | [`loss`] | what could not be recorded |
//! | [`study`] | several measurements in one recording, and what was expected of them |
//! | [`recording`] | the saved file |
//! | [`mod@file`] | files that are there whole or not at all |

pub mod cause;
pub mod comparison;
pub mod count;
pub mod file;
pub mod finding;
pub mod histogram;
pub mod host;
pub mod ledger;
pub mod loss;
pub mod metric;
pub mod observed;
pub mod path;
pub mod place;
pub mod profile;
pub mod recording;
pub mod run;
#[cfg(feature = "sample")]
pub mod sample;
pub mod stack;
pub mod statistics;
pub mod study;
pub mod syscall;
pub mod time;
pub mod trace;

pub use time::Nanos;
