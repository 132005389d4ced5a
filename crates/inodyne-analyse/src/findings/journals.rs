//! Waits for the journal of a file system by calls that ask for no durability, and what that journal did meanwhile.

use std::path::Path;

use inodyne_model::block::{Journal, JournalKind};
use inodyne_model::cause::Cause;
use inodyne_model::place::Place;

use super::case::{Case, Time, Waited};
use crate::units::{seconds, times};

/// Waits for the journal in calls that did not ask for it.
pub(super) fn waiting(case: &Case<'_>) -> Time {
    case.waiting(|waited| waits(waited))
}

/// Those of them that were for room in the journal. A thread that waits in `add_transaction_credits` until a transaction is closed
/// (`wait_transaction_locked`) may have found it full, or just being committed: the stack does not say which (fs/jbd2/transaction.c).
pub(super) fn waiting_for_room(case: &Case<'_>) -> Time {
    let is_for_room = |function: &str| {
        matches!(
            function,
            "__jbd2_log_wait_for_space" | "jbd2_log_do_checkpoint" | "xlog_grant_head_wait" | "xlog_grant_head_check"
        )
    };
    case.waiting(|waited| waits(waited) && waited.passes(is_for_room))
}

/// The calls that waited longest, a line each.
pub(super) fn by_call(time: &Time, most: usize) -> Vec<String> {
    let line = |(call, ns, count): &(&str, f64, u64)| {
        format!("{call} waited {} for the journal, {} together", times(*count), seconds(*ns))
    };
    time.top_calls().iter().take(most).map(line).collect()
}

fn waits(waited: &Waited<'_>) -> bool {
    waited.cause == Cause::Journal && !waited.is_sync() && !waited.is_copy_up()
}

/// The journal of the file system that the command ran on; none where it has none, or where it is not known which of several it is.
pub(super) fn of_place<'a>(case: &Case<'a>) -> Option<&'a Journal> {
    let place = case.recording.places.get(case.trace.place)?;
    // A place that stands on another one has that one's journal.
    let standing = std::iter::once(place).chain(&place.below);
    standing.filter_map(|place| of(&case.trace.journals, place)).next()
}

/// The type of the file system whose journal that is: that of the place, or of what it stands on.
pub(super) fn file_system<'a>(case: &Case<'a>) -> Option<&'a str> {
    let place = case.recording.places.get(case.trace.place)?;
    let standing = std::iter::once(place).chain(&place.below);
    standing.map(|place| place.fs.as_str()).find(|fs| kind_of(fs).is_some())
}

fn kind_of(fs: &str) -> Option<JournalKind> {
    match fs {
        "ext3" | "ext4" => Some(JournalKind::Jbd2),
        "xfs" => Some(JournalKind::XfsLog),
        "btrfs" => Some(JournalKind::Btrfs),
        _ => None,
    }
}

fn of<'a>(journals: &'a [Journal], place: &Place) -> Option<&'a Journal> {
    let kind = kind_of(&place.fs)?;
    let mut alike = journals.iter().filter(|journal| journal.kind == kind);
    let device = Path::new(&place.source).file_name().and_then(|name| name.to_str());
    match (alike.clone().find(|journal| Some(journal.name.as_str()) == device), alike.next(), alike.next()) {
        (Some(named), ..) => Some(named),
        // Btrfs numbers its file systems itself, and a mapped device has another name where it is mounted from.
        (None, Some(only), None) => Some(only),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use inodyne_model::sample;

    use super::*;

    fn journal(name: &str, kind: JournalKind) -> Journal {
        Journal { name: name.to_owned(), kind, ..sample::journal() }
    }

    #[test]
    fn the_journal_is_that_of_the_device_or_the_only_one_of_its_kind() {
        let place = |fs: &str, source: &str| Place { fs: fs.into(), source: source.into(), ..Place::default() };
        let of = |journals: &[Journal], fs, source| of(journals, &place(fs, source)).map(|found| found.name.clone());
        let two = [journal("vda1", JournalKind::Jbd2), journal("loop3", JournalKind::Jbd2)];
        assert_eq!(of(&two, "ext4", "/dev/loop3").as_deref(), Some("loop3"));
        assert_eq!(of(&two, "ext4", "/dev/mapper/data"), None);
        assert_eq!(of(&two[..1], "ext4", "/dev/mapper/data").as_deref(), Some("vda1"));
        assert_eq!(of(&two, "xfs", "/dev/loop3"), None);
        assert_eq!(of(&two, "tmpfs", "tmpfs"), None);
        assert_eq!(of(&[journal("0:45", JournalKind::Btrfs)], "btrfs", "/dev/loop1").as_deref(), Some("0:45"));
    }
}
