//! The nouns of inodyne, and nothing else.
//!
//! Every crate in the workspace uses these types: the collecting side fills them, the analysis reads and
//! completes them, the renderers print them. They are pure data with units in their names; there is no clock, no
//! privilege, no file and no system call here. The file format *is* these types (see `FORMAT.md`), so a
//! [`recording::Recording`] turns into bytes and back here; `inodyne-recording` keeps these bytes in files.
//!
//! | module | noun |
//! |---|---|
//! | [`time`] | nanoseconds |
//! | [`histogram`] | the log-linear histogram shared with the BPF side |
//! | [`stack`] | kernel stacks and their identities |
//! | [`cause`] | why a thread was blocked |
//! | [`ledger`] | the partition of wall-clock time |
//! | [`path`] | the critical path through time |
//! | [`syscall`] | what is known about one system call |
//! | [`call_class`] | what system calls are about |
//! | [`observed`] | what the kernel side saw of one run, before any explanation |
//! | [`snapshot`], [`activity`] | what was seen up to an instant, and what happened between two |
//! | [`profile`] | time by stack |
//! | [`block`], [`load`] | requests to block devices, and what a disk did in figures |
//! | [`io_over_time`] | what disks did over the course of a command |
//! | [`page_cache`] | what a command brought into the page cache, and what it asked for |
//! | [`disk_limits`], [`disk_use`] | what a disk can do, and how much of that a command used |
//! | [`requests`] | requests that servers answered |
//! | [`cgroup`] | what control groups are called |
//! | [`files`] | files and directories that were used, one by one |
//! | [`trace`] | a traced run: what was observed and what it means |
//! | [`count`] | counts as people read them |
//! | [`command`] | a command and the conditions under which it runs |
//! | [`place`], [`run`], [`host`] | where, how it went and on which machine |
//! | [`finding`], [`cure`] | a diagnosis, and what a program can do about it |
//! | [`case`] | which command, place, caches and settings something belongs to |
//! | [`comparison`], [`metric`] | two cases compared with each other, and by what |
//! | [`difference`], [`gate`] | two recordings compared with each other, and what must not get worse |
//! | [`statistics`] | what many runs of one case say |
//! | [`loss`] | what could not be recorded |
//! | [`study`] | several measurements in one recording, and what was expected of them |
//! | [`tuning`] | settings that were tried, and what each came to |
//! | [`recording`] | the saved file |
//! | [`random`] | the only generator of pseudo-random numbers |
//! | [`mod@column`] | lists of possibly millions of entries |

pub mod activity;
pub mod block;
pub mod call_class;
pub mod case;
pub mod cause;
pub mod cgroup;
pub mod column;
pub mod command;
pub mod comparison;
pub mod count;
pub mod cure;
mod cured;
pub mod difference;
pub mod disk_limits;
pub mod disk_use;
pub mod files;
pub mod finding;
pub mod gate;
pub mod histogram;
pub mod host;
pub mod io_over_time;
pub mod ledger;
pub mod limit;
pub mod load;
pub mod loss;
pub mod metric;
pub mod neighbours;
pub mod observed;
pub mod page_cache;
pub mod path;
pub mod place;
pub mod profile;
pub mod random;
pub mod recording;
pub mod requests;
pub mod run;
#[cfg(feature = "sample")]
pub mod sample;
pub mod snapshot;
pub mod stack;
pub mod statistics;
pub mod study;
pub mod syscall;
pub mod time;
pub mod trace;
pub mod tuning;

pub use time::Nanos;
