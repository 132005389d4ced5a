//! What a thread did, which decides the colour: of a row of a ledger, of a stack, of a stretch of the timeline.

use inodyne_model::cause::Cause;
use inodyne_model::ledger::RowKind;

use crate::line::Style;

/// What a thread did, without the call in which it did so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum State {
    User,
    Kernel,
    Ready,
    Blocked(Cause),
    InCall,
    OutsideCalls,
    Unexplained,
}

impl State {
    pub(crate) fn new(kind: RowKind, cause: Option<Cause>) -> State {
        match kind {
            RowKind::User => State::User,
            RowKind::Kernel => State::Kernel,
            RowKind::Runqueue => State::Ready,
            RowKind::Blocked => State::Blocked(cause.unwrap_or(Cause::Other)),
            RowKind::InCall => State::InCall,
            RowKind::OutsideCalls => State::OutsideCalls,
            RowKind::Unexplained => State::Unexplained,
        }
    }

    /// In words, as the ledger has them.
    pub(crate) fn words(self) -> String {
        match self {
            State::User => "user".to_owned(),
            State::Kernel => "kernel".to_owned(),
            State::Ready => "waiting for a CPU".to_owned(),
            State::Blocked(cause) => format!("blocked: {cause}"),
            State::InCall => "in the call".to_owned(),
            State::OutsideCalls => "outside of calls".to_owned(),
            State::Unexplained => "unexplained".to_owned(),
        }
    }

    /// Its colour in a terminal.
    pub(crate) fn style(self) -> Style {
        match self {
            State::User | State::OutsideCalls => Style::User,
            State::Kernel | State::InCall => Style::Kernel,
            State::Ready => Style::Ready,
            State::Blocked(_) => Style::Blocked,
            State::Unexplained => Style::Dim,
        }
    }
}
