//! A row of a ledger: in words, and as values for programs.

use inodyne_model::cause::Cause;
use inodyne_model::ledger::{INTERRUPT, PAGE_FAULT, Row, RowKind};

use super::state::State;
use super::value::Value;
use crate::line::Style;

/// Whose time it was, what it was, and its colour.
pub(crate) fn words(kind: RowKind, syscall: Option<&str>, cause: Option<Cause>) -> (String, String, Style) {
    let state = State::new(kind, cause);
    let subject = match (kind, syscall) {
        (RowKind::Unexplained, _) => "unexplained",
        // The time of a thread that worked for a call is shown under that call.
        (_, Some(call)) => call,
        (RowKind::User, None) => "user",
        (RowKind::Runqueue, None) => "waiting for a CPU",
        (RowKind::Kernel, None) => "system-call overhead",
        (RowKind::Blocked | RowKind::InCall | RowKind::OutsideCalls, None) => "outside of calls",
    };
    let what = match kind {
        RowKind::User | RowKind::Runqueue | RowKind::OutsideCalls if syscall.is_none() => String::new(),
        RowKind::Unexplained => String::new(),
        _ => state.words(),
    };
    (subject.to_owned(), what, state.style())
}

/// A row without its time, for a live view: whose time it was, and what it was.
pub fn words_of_row(row: &Row) -> (String, String) {
    let (subject, what, _) = words(row.kind, row.syscall.as_deref(), row.cause);
    (subject, what)
}

/// Every word that can be in a row of a ledger, except names of system calls: what a reader may look up.
pub fn row_words() -> Vec<String> {
    let kinds = [
        RowKind::User,
        RowKind::Kernel,
        RowKind::Runqueue,
        RowKind::Blocked,
        RowKind::InCall,
        RowKind::OutsideCalls,
        RowKind::Unexplained,
    ];
    let mut all = Vec::new();
    for kind in kinds {
        for subject in [None, Some(PAGE_FAULT), Some(INTERRUPT)] {
            for cause in Cause::ALL {
                let (subject, what, _) = words(kind, subject, (kind == RowKind::Blocked).then_some(cause));
                all.extend([subject, what].into_iter().filter(|word| !word.is_empty()));
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// A row for programs: `kind`, `syscall`, `cause`, `via`, `ns`, `count`, `estimated`, `began_before`.
pub(super) fn values(row: &Row) -> [Value; 8] {
    [
        word(row.kind),
        row.syscall.as_ref().into(),
        row.cause.map_or(Value::Nothing, word),
        row.via.join(" > ").into(),
        row.ns.into(),
        row.count.into(),
        row.estimated.into(),
        row.began_before.into(),
    ]
}

/// One of the model's words, as in JSON.
pub(super) fn word(value: impl serde::Serialize) -> Value {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => Value::Text(word),
        _ => Value::Nothing,
    }
}
