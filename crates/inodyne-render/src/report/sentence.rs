//! The one sentence that says where most of the time went. It agrees with the ledger: it is about the largest row, or about a
//! finding that accounts for at least as much.

use inodyne_model::cause::Cause;
use inodyne_model::finding::Finding;
use inodyne_model::ledger::{Row, RowKind};

use super::case::Case;
use super::ledger::via;
use crate::units::percent;

/// What the sentence is about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Subject<'a> {
    Finding(&'a Finding),
    Row(&'a Row),
}

/// The first finding, if it is an answer and accounts for as much as the largest row; otherwise that row. `None` without a
/// trace.
pub(super) fn subject<'a>(case: &Case<'a>) -> Option<Subject<'a>> {
    let ledger = &case.trace?.ledger;
    let largest = ledger.rows.iter().max_by_key(|row| row.ns)?;
    let is_larger =
        |finding: &&&Finding| finding.is_an_answer() && finding.share_of_wall >= largest.ns.share_of(ledger.wall_ns);
    let finding = case.findings.first().filter(is_larger);
    Some(finding.map_or(Subject::Row(largest), |finding| Subject::Finding(finding)))
}

/// The sentence; `None` without a trace.
pub(super) fn of(case: &Case<'_>) -> Option<String> {
    let wall = case.trace?.ledger.wall_ns;
    Some(match subject(case)? {
        Subject::Finding(finding) => format!("{}.", finding.title),
        Subject::Row(row) => format!("{} of the time {}.", percent(row.ns.share_of(wall)), is_spent(row)),
    })
}

/// A clause as a sentence, with its full stop.
pub(super) fn capitalised(clause: &str) -> String {
    let mut letters = clause.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().collect::<String>()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

/// What follows "of the time".
fn is_spent(row: &Row) -> String {
    let call = row.syscall.as_deref().map_or_else(String::new, |call| format!(" in {call}"));
    let through = if row.via.is_empty() { String::new() } else { format!(", {}", via(row)) };
    let what = match (row.kind, row.cause) {
        // If others are in between, the call is that of the command, which waited for them.
        (RowKind::User, _) if !row.via.is_empty() => format!("is spent waiting{call} while others compute"),
        (RowKind::User, _) => "the program computes in user mode".to_owned(),
        (RowKind::Kernel, _) if call.is_empty() => "is the overhead of entering and leaving system calls".to_owned(),
        (RowKind::Kernel, _) => format!("is kernel CPU time{call}"),
        (RowKind::Runqueue, _) => format!("is spent waiting for a CPU{call}"),
        (RowKind::Blocked, Some(Cause::Sleep)) => format!("is sleep that the program asked for{call}"),
        (RowKind::Blocked, cause) => format!("is spent waiting for {}{call}", awaited(cause.unwrap_or(Cause::Other))),
        (RowKind::InCall, _) => format!("is spent{call}"),
        (RowKind::OutsideCalls, _) => "is spent outside of system calls".to_owned(),
        (RowKind::Unexplained, _) => "is unexplained".to_owned(),
    };
    what + &through
}

/// What a blocked thread waits for.
fn awaited(cause: Cause) -> &'static str {
    match cause {
        Cause::DeviceRead => "reads from the device",
        Cause::DeviceWrite => "writes to the device",
        Cause::DeviceFlush => "the device to empty its write cache",
        Cause::Journal => "the journal of the file system",
        Cause::InodeLock => "the lock of a file or directory",
        Cause::BufferLock => "the lock of a metadata buffer",
        Cause::Lock => "a lock of the kernel",
        Cause::Rcu => "a grace period of RCU",
        Cause::WriteThrottle => "dirty data to be written back",
        Cause::QueueFull => "room in the queue of the device",
        Cause::FuseServer => "a FUSE server",
        Cause::RemoteServer => "a server elsewhere",
        Cause::Pipe => "the other end of a pipe",
        Cause::Socket => "the other end of a socket",
        Cause::Futex => "another thread of the program",
        Cause::Child => "a child process",
        Cause::Sleep => "time to pass",
        Cause::Poll => "one of several things",
        Cause::Memory => "memory to become free",
        Cause::Stopped => "leave to go on",
        Cause::Other => "something that no rule knows",
    }
}

#[cfg(test)]
mod tests {
    use inodyne_model::sample;

    use super::*;
    use crate::text::tests::explained;

    #[test]
    fn the_sentence_is_about_the_largest_part() {
        for recording in [sample::find_recording(), sample::pipeline_recording(), sample::overlay_recording()] {
            let recording = explained(recording);
            for case in Case::all(&recording).iter().filter(|case| case.trace.is_some()) {
                let ledger = &case.trace.unwrap().ledger;
                let largest = ledger.rows.iter().map(|row| row.ns).max().unwrap();
                match subject(case).unwrap() {
                    Subject::Row(row) => assert_eq!(row.ns, largest),
                    Subject::Finding(found) => assert!(found.share_of_wall >= largest.share_of(ledger.wall_ns)),
                }
                assert!(of(case).is_some_and(|sentence| sentence.contains('%')));
            }
        }
    }

    #[test]
    fn a_finding_of_less_than_the_largest_row_is_not_its_subject() {
        let mut recording = explained(sample::find_recording());
        let about = |recording: &inodyne_model::recording::Recording| {
            let cases = Case::all(recording);
            matches!(subject(&cases[0]), Some(Subject::Finding(_)))
        };
        for (share, is_subject) in [(0.01, false), (1.0, true)] {
            recording.findings.iter_mut().for_each(|finding| finding.share_of_wall = share);
            assert_eq!(about(&recording), is_subject);
        }
    }
}
