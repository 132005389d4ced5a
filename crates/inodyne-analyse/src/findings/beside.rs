//! What the command did with files while the critical path only let time pass: a program that checks every ten milliseconds
//! whether its workers are done waits for them, although none of them woke it.

use inodyne_model::cause::Cause;
use inodyne_model::ledger::RowKind;
use inodyne_model::path::PathRow;
use inodyne_model::stack::StackId;

use super::case::Case;
use super::families::concerns_files;

/// A stretch of time: from, to, in nanoseconds after the trace began.
type Stretch = (u64, u64);

/// For how long others work with files or wait for them while the path is in a thread that sleeps, or that waits for nobody who is
/// known; in nanoseconds.
pub(super) fn files_beside(case: &Case<'_>) -> f64 {
    let path = &case.trace.path;
    let lets_pass = |row: &PathRow| {
        row.kind == RowKind::Blocked
            && row.via.is_empty()
            && matches!(row.cause, Some(Cause::Sleep | Cause::Poll | Cause::Socket | Cause::Futex | Cause::Stopped))
    };
    let idle = path.iter().filter_map(|(step, parts)| {
        let [part] = parts else { return None };
        let row = path.rows.get(part.row as usize)?;
        lets_pass(row).then_some((step.from_ns, step.from_ns.saturating_add(part.ns.0)))
    });
    let idle: Vec<Stretch> = idle.collect();
    if idle.is_empty() {
        return 0.0;
    }
    overlap(&merged(idle), &merged(with_files(case)))
}

/// When anybody waited for files, or worked with them. Where in a piece of work this was is not known: it is placed at the end of the
/// piece. Nor is it known once the timeline had no more room: from there on, it may have been all of the time.
fn with_files(case: &Case<'_>) -> Vec<Stretch> {
    let observed = &case.trace.observed;
    let timeline = &observed.timeline;
    let stack = |index: Option<&u32>| {
        index.and_then(|index| timeline.stacks.get(*index as usize)).copied().unwrap_or(StackId(0))
    };
    let waits = (0..timeline.len()).filter_map(|at| {
        let (out, blocked) = (*timeline.out_ns.get(at)?, *timeline.blocked_ns.get(at)?);
        let (stack, waker_stack) = (stack(timeline.stack.get(at)), stack(timeline.waker_stack.get(at)));
        let cause = case.classifier.cause_of(stack, *timeline.waker.get(at)?, waker_stack);
        (blocked > 0 && cause.is_of_files()).then_some((out, out.saturating_add(blocked)))
    });
    let is_of_file: Vec<bool> = timeline.calls.iter().map(|call| concerns_files(call)).collect();
    let work = &observed.work;
    let mut parts = work.call.iter().zip(&work.ns);
    let pieces = work.at_ns.iter().zip(&work.parts).filter_map(|(at, count)| {
        let of_piece = parts.by_ref().take(*count as usize);
        let of_files = of_piece.filter(|(call, _)| is_of_file.get(**call as usize).copied().unwrap_or(false));
        let ns = of_files.fold(0u64, |sum, (_, ns)| sum.saturating_add(*ns));
        (ns > 0).then_some((at.saturating_sub(ns), *at))
    });
    let beyond = timeline.until_ns.map(|until| (until, u64::MAX));
    waits.chain(pieces).chain(beyond).collect()
}

/// Merges them into stretches that do not touch, in order of time.
fn merged(mut all: Vec<Stretch>) -> Vec<Stretch> {
    all.sort_unstable();
    let mut merged: Vec<Stretch> = Vec::new();
    for (from, to) in all {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    merged
}

/// For how long both overlap.
fn overlap(a: &[Stretch], b: &[Stretch]) -> f64 {
    let (mut at, mut sum) = (0, 0.0);
    for (from, to) in a {
        while b.get(at).is_some_and(|(_, end)| end <= from) {
            at += 1;
        }
        let meets = b[at..].iter().take_while(|(begin, _)| begin < to);
        sum += meets.map(|(begin, end)| end.min(to).saturating_sub(*begin.max(from)) as f64).sum::<f64>();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_overlap_where_both_are() {
        let a = merged(vec![(10, 20), (0, 4), (15, 30)]);
        assert_eq!(a, [(0, 4), (10, 30)]);
        assert_eq!(overlap(&a, &[(2, 12), (18, 19), (29, 99)]), 2.0 + 2.0 + 1.0 + 1.0);
        assert_eq!(overlap(&a, &[]), 0.0);
        assert_eq!(overlap(&[], &a), 0.0);
    }
}
