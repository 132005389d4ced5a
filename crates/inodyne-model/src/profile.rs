//! Time by stack: every row of every thread's ledger, divided among the stacks that were seen in it. Derived.
//!
//! On a CPU the stacks come from samples, so a row's time is divided in proportion to them; off the CPU each wait has
//! been timed. Either way the parts of a row sum to it exactly, and time for which no stack was seen is kept without one.
//! So a flame graph over these is as wide as the ledger is long.

use serde::{Deserialize, Serialize};

use crate::Nanos;
use crate::cause::Cause;
use crate::ledger::RowKind;
use crate::observed::{ThreadNumber, Waker};
use crate::stack::StackId;

/// The time of all threads of a trace, by stack.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StackTimes {
    /// Rows `user` and `kernel`.
    pub on_cpu: Vec<StackTime>,
    /// All other rows: `runqueue`, `blocked`, and the residual of a thread.
    pub off_cpu: Vec<StackTime>,
}

/// A part of a row of a thread's ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackTime {
    /// Whose time.
    pub thread: ThreadNumber,
    /// What the time was, as in the row.
    pub kind: RowKind,
    /// As in the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syscall: Option<String>,
    /// As in the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The kernel stack; zero where there is none.
    #[serde(default, skip_serializing_if = "StackId::is_none")]
    pub stack: StackId,
    /// The user-mode stack; zero where there is none.
    #[serde(default, skip_serializing_if = "StackId::is_none")]
    pub user_stack: StackId,
    /// Who ended the wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waker: Option<Waker>,
    /// Where the waker was; zero where there is none.
    #[serde(default, skip_serializing_if = "StackId::is_none")]
    pub waker_stack: StackId,
    /// How long.
    pub ns: Nanos,
    /// Samples, or waits; zero where no stack was seen.
    pub count: u64,
}
