//! A row of a ledger: in words, and as values for programs.

use inodyne_model::cause::Cause;
use inodyne_model::ledger::{Row, RowKind};

use super::state::State;
use super::value::Value;
use crate::line::Style;

/// Whose time it was, what it was, and its colour.
pub(crate) fn words(kind: RowKind, syscall: Option<&str>, cause: Option<Cause>) -> (String, String, Style) {
    let state = State::new(kind, cause);
    let subject = match (kind, syscall) {
        (RowKind::Unexplained, _) => "unexplained",
        // The time of somebody who worked for a call is told under that call.
        (_, Some(call)) => call,
        (RowKind::User, None) => "user",
        (RowKind::Runqueue, None) => "runqueue",
        (RowKind::Kernel, None) => "entry and exit",
        (RowKind::Blocked | RowKind::InCall | RowKind::OutsideCalls, None) => "outside of calls",
    };
    let what = match kind {
        RowKind::User | RowKind::OutsideCalls if syscall.is_none() => String::new(),
        RowKind::Unexplained => String::new(),
        _ => state.words(),
    };
    (subject.to_owned(), what, state.style())
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
