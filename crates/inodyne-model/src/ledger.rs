//! The ledger: a partition of wall-clock time into rows that sum to it.

use serde::{Deserialize, Serialize};

use crate::Nanos;
use crate::cause::Cause;

/// What the time of a row was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowKind {
    /// Running in user mode.
    User,
    /// Running in the kernel, for a system call, a page fault or an interrupt.
    Kernel,
    /// Ready to run, waiting for a CPU.
    Runqueue,
    /// Not able to run, for a [`Cause`].
    Blocked,
    /// In a system call, where the tracer does not know how the time divides ([`crate::trace::Tracer`]).
    InCall,
    /// Between system calls, likewise: running, ready, or stopped by the tracer.
    OutsideCalls,
    /// The residual: wall-clock time that no row accounts for.
    Unexplained,
}

/// The name in [`Row::syscall`] for time in the kernel that no system call asked for.
pub const PAGE_FAULT: &str = "page-fault";
/// See [`PAGE_FAULT`].
pub const INTERRUPT: &str = "interrupt";

/// One row of a ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// What the time was.
    pub kind: RowKind,
    /// The system call, or [`PAGE_FAULT`], or [`INTERRUPT`]; on `kernel` and `blocked` rows. Where `via` is not empty, the call
    /// of the command's thread that waited, on rows of every kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syscall: Option<String>,
    /// Why it was blocked; on `blocked` rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Whose work was waited for, nearest first: a cause, then who did it (`jbd2`, `xfs-inodegc`, the name of a server), perhaps in
    /// which call, and so on. `kind` and `cause` are those of the last of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<String>,
    /// How long.
    pub ns: Nanos,
    /// How often: calls, waits; zero where counting makes no sense.
    pub count: u64,
    /// True where the row was split from another by sampling, so its size has a statistical error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// True where the wait was under way when the window began: what is here is its part inside the window.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub began_before: bool,
    /// For the cause `other`: the kernel stack that took most of the time, leaf first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
}

impl Row {
    /// A row with a kind and a duration only.
    pub fn new(kind: RowKind, ns: Nanos) -> Row {
        let (via, stack) = (Vec::new(), Vec::new());
        Row { kind, syscall: None, cause: None, via, ns, count: 0, estimated: false, began_before: false, stack }
    }

    /// Whether it was done for the command, which waited for it, by somebody who serves files, a journal or a device.
    pub fn is_of_a_server_of_files(&self) -> bool {
        let serves_files = |word: &String| Cause::ALL.iter().any(|cause| cause.as_str() == word && cause.is_of_files());
        self.via.iter().any(serves_files)
    }

    /// Whether it is time in which the command waited for files, whatever was done for it meanwhile.
    pub fn waits_for_files(&self) -> bool {
        self.cause.is_some_and(Cause::is_of_files) || self.is_of_a_server_of_files()
    }

    /// Whether both are the same row, as defined by [`RowKey`].
    pub fn is_same_as(&self, other: &Row) -> bool {
        (self.kind, &self.syscall, self.cause) == (other.kind, &other.syscall, other.cause)
    }
}

/// How a ledger was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum View {
    /// What the root process's first thread did.
    #[default]
    RootThread,
    /// The critical path: from the end back through whoever was waited for.
    CriticalPath,
    /// All threads together, each for as long as it was alive inside a window: nothing leads up to the end of a window.
    Window,
}

impl View {
    /// What it divides, in words.
    pub fn words(self) -> &'static str {
        match self {
            View::RootThread => "what the first thread did, since their timeline is not complete",
            View::CriticalPath => "the critical path",
            View::Window => "the time of all threads in a window",
        }
    }
}

/// A partition of `wall_ns`: the rows and the residual sum to it exactly.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ledger {
    /// How it was made.
    #[serde(default)]
    pub view: View,
    /// The whole: the wall-clock time; for [`View::Window`], the time of all threads together.
    pub wall_ns: Nanos,
    /// The residual; also present as the row of kind `unexplained`.
    pub unexplained_ns: Nanos,
    /// The parts, largest first, the residual last.
    pub rows: Vec<Row>,
}

impl Ledger {
    /// The sum of all rows. Equal to [`Ledger::wall_ns`], or the ledger is wrong.
    pub fn sum(&self) -> Nanos {
        self.rows.iter().map(|row| row.ns).sum()
    }
}

/// What makes rows of two ledgers the same row. Rows that differ only in whose work was waited for are the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey {
    /// What the time was.
    pub kind: RowKind,
    /// The call.
    pub syscall: Option<String>,
    /// Why it was blocked.
    pub cause: Option<Cause>,
}

impl From<&Row> for RowKey {
    fn from(row: &Row) -> RowKey {
        RowKey { kind: row.kind, syscall: row.syscall.clone(), cause: row.cause }
    }
}
