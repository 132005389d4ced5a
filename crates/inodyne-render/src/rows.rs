//! A row of a ledger in words.

use inodyne_model::cause::Cause;
use inodyne_model::ledger::RowKind;

use crate::line::Style;

/// Whose time it was, what it was, and its colour.
pub(crate) fn words(kind: RowKind, syscall: Option<&str>, cause: Option<Cause>) -> (String, String, Style) {
    let subject = match (kind, syscall) {
        (RowKind::User, _) => "user",
        (RowKind::Runqueue, _) => "runqueue",
        (RowKind::Unexplained, _) => "unexplained",
        (RowKind::Kernel, None) => "entry and exit",
        (RowKind::Blocked, None) => "outside of calls",
        (RowKind::Kernel | RowKind::Blocked, Some(call)) => call,
    };
    let (what, style) = match kind {
        RowKind::User => (String::new(), Style::User),
        RowKind::Kernel => ("kernel".to_owned(), Style::Kernel),
        RowKind::Runqueue => ("ready, no CPU".to_owned(), Style::Ready),
        RowKind::Blocked => (format!("blocked: {}", cause.unwrap_or(Cause::Other)), Style::Blocked),
        RowKind::Unexplained => (String::new(), Style::Dim),
    };
    (subject.to_owned(), what, style)
}
