//! A row of a ledger in words.

use inodyne_model::cause::Cause;
use inodyne_model::ledger::RowKind;

use crate::line::Style;

/// Whose time it was, what it was, and its colour.
pub(crate) fn words(kind: RowKind, syscall: Option<&str>, cause: Option<Cause>) -> (String, String, Style) {
    let subject = match (kind, syscall) {
        (RowKind::Unexplained, _) => "unexplained",
        // The time of somebody who worked for a call is told under that call.
        (_, Some(call)) => call,
        (RowKind::User, None) => "user",
        (RowKind::Runqueue, None) => "runqueue",
        (RowKind::Kernel, None) => "entry and exit",
        (RowKind::Blocked, None) => "outside of calls",
    };
    let (what, style) = match kind {
        RowKind::User => (syscall.map_or("", |_| "user").to_owned(), Style::User),
        RowKind::Kernel => ("kernel".to_owned(), Style::Kernel),
        RowKind::Runqueue => ("ready, no CPU".to_owned(), Style::Ready),
        RowKind::Blocked => (format!("blocked: {}", cause.unwrap_or(Cause::Other)), Style::Blocked),
        RowKind::Unexplained => (String::new(), Style::Dim),
    };
    (subject.to_owned(), what, style)
}
