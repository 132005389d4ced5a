//! The waits that the walk is inside of: each was ended by a helper, in which the walk goes on.

use inodyne_model::cause::Cause;
use inodyne_model::ledger::RowKind;
use inodyne_model::observed::ThreadNumber;
use inodyne_model::stack::StackId;

use super::doings::Waiting;
use super::rows::Key;

/// A wait that a helper ended: the walk is inside of it.
pub(super) struct Frame {
    pub(super) waiter: ThreadNumber,
    /// Where the wait began.
    pub(super) floor: u64,
    /// What the waiter waited for. One that was idle waited for nothing of its own: the cause is that of the wait around it.
    pub(super) cause: Cause,
    pub(super) stack: StackId,
    pub(super) was_idle: bool,
    /// The call of the waiter.
    pub(super) call: Option<String>,
    /// The helper's name.
    pub(super) helper: String,
    /// The waiter's wait.
    pub(super) waiting: Waiting,
    /// The waits that the walk is inside of, this one included, as `places` numbers them.
    pub(super) waits: u32,
}

/// A worker that waits for the next, and so on, is mentioned once.
pub(super) fn is_more_of(around: &Frame, cause: Cause, helper: &str) -> bool {
    around.cause == cause && around.helper == helper
}

/// On whose behalf something is charged: the call of the command that waits, and through whom.
pub(super) fn subject(frames: &[Frame]) -> Key {
    let mut via: Vec<String> = Vec::new();
    for (at, frame) in frames.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| &frames[before]);
        if before.is_some_and(|before| is_more_of(before, frame.cause, &frame.helper)) {
            continue;
        }
        if before.is_some() {
            via.extend(frame.call.clone());
        }
        if !frame.was_idle {
            via.push(frame.cause.to_string());
        }
        via.push(frame.helper.clone());
    }
    let syscall = frames.first().and_then(|frame| frame.call.clone());
    Key { kind: RowKind::Blocked, syscall, cause: None, via }
}
