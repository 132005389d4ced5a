//! The first screen: what ran where and how long, why in a sentence, what to do, where the time went, and whether to believe it.
//! It has to fit a small terminal, so it is made for a [`Room`]; everything that it leaves out is in the whole report.
//!
//! What casts doubt on the figures is never left out: how the command ended, losses, what the kernel refused.

use inodyne_model::Nanos;
use inodyne_model::cause::Cause;
use inodyne_model::comparison::Comparison;
use inodyne_model::ledger::RowKind;
use inodyne_model::recording::Recording;
use inodyne_model::run::CacheState;
use inodyne_model::trace::Trace;

use super::block::{Block, Fold, Kind, Page, Part, Remark};
use super::case::Case;
use super::names::Names;
use super::sentence::Subject;
use super::throughput::Throughput;
use super::{
    comparison, difference, findings, flags, ledger, names, overhead, overview, requests, runs, sentence, tune,
    verdict, window,
};
use crate::line::{Span, Style};
use crate::units::{counted, duration, percent};

/// Waits for files below this part of the time are not worth a faster device.
const LEAST_WAITS: f64 = 0.05;
/// Findings after the first that concern less than this part of the time are only named.
const WORTH_LINES: f64 = 0.01;
/// Cases of a comparison that have a line of their own.
const MOST_CASES: usize = 6;

/// How much of what can be left out is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    /// Rows that are shown separately, of a ledger or of a difference of two.
    rows: usize,
    /// Findings, each in two lines; for a comparison, differences with their rows.
    items: usize,
    /// Lines of a sentence or of advice, the last one cut; remarks about runs.
    lines: usize,
}

impl Room {
    /// From the most to the least.
    pub(crate) const ALL: [Room; 8] = [
        Room { rows: 9, items: 3, lines: 3 },
        Room { rows: 7, items: 3, lines: 3 },
        Room { rows: 6, items: 2, lines: 2 },
        Room { rows: 5, items: 2, lines: 2 },
        Room { rows: 4, items: 1, lines: 2 },
        Room { rows: 3, items: 1, lines: 1 },
        Room { rows: 3, items: 0, lines: 1 },
        Room { rows: 1, items: 0, lines: 1 },
    ];
}

/// The first screen of a recording that is not a study.
pub(crate) fn first_screen(recording: &Recording, room: Room) -> Vec<Part<'_>> {
    let cases = Case::all(recording);
    let mut page = Page::new(None);
    match cases.as_slice() {
        _ if recording.tuning.is_some() => of_tuning(&mut page, recording, room),
        [] => {}
        [case] => of_case(&mut page, case, room),
        cases => of_several(&mut page, recording, cases, room),
    }
    vec![Part {
        kind: Kind::Case { number: 0, name: String::new(), summary: String::new(), fold: Fold::Alone },
        blocks: page.blocks,
    }]
}

/// The result of a tuning, and where everything else is.
fn of_tuning(page: &mut Page<'_>, recording: &Recording, room: Room) {
    let Some(tuning) = &recording.tuning else { return };
    tune::in_short(page, recording, tuning, room.rows);
    page.gap();
    page.line([Span::new("-v: all that was tried · --section comparison: its runs · docs/tune.md", Style::Dim)]);
}

fn of_case<'a>(page: &mut Page<'a>, case: &Case<'a>, room: Room) {
    let mut title = verdict::title(case);
    let reason = std::mem::take(&mut title.reason);
    page.add(Block::Title(title));
    in_lines(page, &reason, Style::Plain, room.lines);
    in_lines(page, &advice(case), Style::Plain, room.lines);
    verdict::tell_doubts(page, case);
    if let Some(waiters) = case.window().and_then(window::waiters) {
        in_lines(page, &waiters, Style::Plain, room.lines);
    }
    if let Some(requests) = case.trace.and_then(requests::in_short) {
        in_lines(page, &requests, Style::Plain, room.lines);
    }
    of_runs(page, case, room);
    let Some(trace) = case.trace else {
        runs::show(page, case);
        return;
    };
    page.heading(&ledger::heading(case));
    if let Some(text) = ledger::note(case) {
        page.paragraph("  ".into(), &text, Style::Dim);
    }
    page.table(ledger::in_short(&trace.ledger, room.rows));
    if let Some(function) = ledger::most_in(trace).filter(|_| room.lines > 1) {
        page.line([Span::new(format!("  {function}"), Style::Dim)]);
    }
    in_short(page, case, room.items);
    page.gap();
    believe(page, std::slice::from_ref(case));
    more(page, std::slice::from_ref(case));
}

/// What to do first; or how much of the time is spent waiting for files, if nothing is known that would shorten that.
fn advice(case: &Case<'_>) -> String {
    let finding = case.findings.first().filter(|finding| finding.is_an_answer());
    let cure = finding.and_then(|finding| finding.cure.first()).map_or("", String::as_str);
    match (finding, sentence::subject(case)) {
        (Some(bound), Some(Subject::Finding(_))) if bound.bound => sentence::capitalised(cure),
        (Some(finding), _) => {
            let verb = if finding.bound { "For" } else { "Fix" };
            format!("{verb} {} ({} of the time): {cure}.", finding.id, percent(finding.share_of_wall))
        }
        // A window of running processes is looked at for what they do, and not for how long they take.
        (None, _) => case.trace.filter(|_| case.window().is_none()).map_or_else(String::new, without_a_cure),
    }
}

/// How much of the time is spent waiting for files, if it is known for most waits whether they are for files.
fn without_a_cure(trace: &Trace) -> String {
    let unsaid = "No finding says what would make it faster.";
    if !trace.tracer.divides_calls() {
        return unsaid.to_owned();
    }
    let part = |is_meant: &dyn Fn(Cause) -> bool| {
        let rows =
            trace.ledger.rows.iter().filter(|row| row.kind == RowKind::Blocked && !row.is_of_a_server_of_files());
        let meant = rows.filter(|row| is_meant(row.cause.unwrap_or(Cause::Other)));
        meant.map(|row| row.ns).sum::<Nanos>().share_of(trace.ledger.wall_ns)
    };
    let files = waits_for_files(trace);
    // A child, a server, io_uring: what is waited for there may be files as well.
    let unknown = part(&|cause| !cause.is_of_files() && !matches!(cause, Cause::Sleep | Cause::Stopped));
    let share = percent(files);
    if files + unknown < LEAST_WAITS {
        format!("A faster disk would not help: waits for files are {share} of the time.")
    } else if files >= LEAST_WAITS && part(&Cause::is_of_device) >= files / 2.0 {
        format!("No finding: waits for files are {share} of the time; a faster device would shorten them.")
    } else {
        unsaid.to_owned()
    }
}

/// The part of the time that is spent waiting for files.
pub(super) fn waits_for_files(trace: &Trace) -> f64 {
    let of_files = trace.ledger.rows.iter().filter(|row| row.waits_for_files());
    of_files.map(|row| row.ns).sum::<Nanos>().share_of(trace.ledger.wall_ns)
}

/// How a case's untraced runs spread, and what about them deserves a second look. A report without a trace says it in full.
fn of_runs(page: &mut Page<'_>, case: &Case<'_>, room: Room) {
    let Some(found) = case.statistics().filter(|found| found.wall.n > 1 && case.trace.is_some()) else { return };
    let [least, most] = [found.wall.min_ns, found.wall.max_ns].map(duration);
    let times = format!("median of {} untraced runs, from {least} to {most}", found.wall.n);
    page.line([Span::new(format!("  {times}"), Style::Dim)]);
    remarkable(page, flags::all(case.recording, found), room);
}

/// The first of the remarks about runs, one line each, and how many more there are.
fn remarkable(page: &mut Page<'_>, flags: Vec<String>, room: Room) {
    let more = flags.len().saturating_sub(room.lines);
    for flag in flags.into_iter().take(room.lines) {
        page.line([Span::new(format!("  ! {flag}"), Style::Warning)]);
    }
    if more > 0 {
        let remarks = counted(more as u64, "more remark", "more remarks");
        page.line([Span::new(format!("  ! and {remarks} on the runs"), Style::Warning)]);
    }
}

/// The findings in two lines each; for those after the first that concern next to nothing, only the names.
fn in_short(page: &mut Page<'_>, case: &Case<'_>, most: usize) {
    if case.findings.is_empty() {
        return;
    }
    page.heading("Findings");
    let mut left = Vec::new();
    for (at, finding) in case.findings.iter().enumerate() {
        if at < most && (at == 0 || finding.share_of_wall >= WORTH_LINES) {
            findings::in_short(at + 1, finding, case.doubts()).into_iter().for_each(|line| page.line(line));
        } else {
            left.push(finding.id.as_str());
        }
    }
    if !left.is_empty() {
        let and = if most > 0 { "and " } else { "" };
        page.line([Span::new(format!("  {and}{} more: {}", left.len(), left.join(", ")), Style::Dim)]);
    }
}

/// Whether to believe the traces, the worst of several.
fn believe(page: &mut Page<'_>, cases: &[Case<'_>]) {
    let mut traces: Vec<_> = cases.iter().filter_map(|case| case.trace).collect();
    traces.sort_by(|a, b| a.lost.total().cmp(&b.lost.total()).then(a.overhead.ratio.total_cmp(&b.overhead.ratio)));
    let Some(worst) = traces.last() else { return };
    let (text, style) = overhead::trust(worst);
    page.paragraph(Span::default(), &text, style);
    let refused = traces.iter().max_by_key(|trace| trace.refused.len()).map_or(&[][..], |trace| &trace.refused);
    for refused in refused {
        page.paragraph(Span::default(), &overhead::not_seen(refused), Style::Warning);
    }
}

/// Where everything else is, as far as there is anything.
fn more(page: &mut Page<'_>, cases: &[Case<'_>]) {
    let finding = cases.iter().find_map(|case| case.findings.first());
    let what = match finding {
        Some(_) => "system calls, threads, evidence, cures",
        None if cases.iter().any(|case| case.trace.is_some()) => "system calls, threads",
        None => "how the runs spread",
    };
    let explain = finding.map_or("WORD", |finding| finding.id.as_str());
    page.line([Span::new(format!("-v: {what} · inodyne explain {explain}"), Style::Dim)]);
}

/// A text over at most `most` lines.
fn in_lines(page: &mut Page<'_>, text: &str, style: Style, most: usize) {
    if !text.is_empty() {
        page.add(Block::Brief { text: text.to_owned(), style, most });
    }
}

fn of_several<'a>(page: &mut Page<'a>, recording: &'a Recording, cases: &[Case<'a>], room: Room) {
    let below = |of: &Comparison| {
        let score = comparison::scores(cases, of).map(Remark::Line);
        score.or_else(|| comparison::source(recording, of)).filter(|_| room.lines > 1)
    };
    let compared = overview::of_times(recording, |_| true);
    let is_one_table = compared.len() > 1;
    if is_one_table {
        page.line([Span::from(overview::subject(recording, &compared))]);
        in_lines(page, &overview::answer(recording, &compared).unwrap_or_default(), Style::Bold, room.lines.max(2));
        page.gap();
        page.table(overview::table(recording, &cases[..cases.len().min(MOST_CASES)]));
    } else {
        comparison::headlines(page, recording, |_| true, below);
    }
    let mut flags = Vec::new();
    for case in cases {
        let name = names::case(recording, case.key.place, case.key.command);
        let found = case.statistics().map_or_else(Vec::new, |found| flags::all(recording, found));
        flags.extend(found.into_iter().map(|flag| format!("{name}, {}: {flag}", case.cache())));
    }
    remarkable(page, flags, room);
    for found in recording.ledger_differences.iter().take(room.items) {
        page.heading(&comparison::heading(recording, found));
        page.table(difference::in_short(found, &Names::of(recording, found.cases), room.rows));
    }
    page.gap();
    let begun = page.blocks.len();
    for case in cases.iter().take(MOST_CASES) {
        if is_one_table { below_the_table(page, case, room) } else { of_one_of_several(page, case, room) }
    }
    if cases.len() > MOST_CASES {
        page.line([Span::new(format!("and {} more", cases.len() - MOST_CASES), Style::Dim)]);
    }
    if page.blocks.len() > begun {
        page.gap();
    }
    believe(page, cases);
    more(page, cases);
}

/// What the row of a case has no room for.
fn below_the_table(page: &mut Page<'_>, case: &Case<'_>, room: Room) {
    let name = names::case(case.recording, case.key.place, case.key.command);
    let name = if case.cache() == CacheState::AsIs { name } else { format!("{name}, {}", case.cache()) };
    for doubt in verdict::doubts(case) {
        page.line([Span::new(format!("{name}: {doubt}"), Style::Warning)]);
    }
    if let Some(sentence) = sentence::of(case).filter(|_| room.lines > 1) {
        page.line([Span::new(format!("{name}: {sentence}"), Style::Dim)]);
    }
}

/// A case in a line, with how fast it moves data, and why it took so long if there is room.
fn of_one_of_several(page: &mut Page<'_>, case: &Case<'_>, room: Room) {
    let throughput = Throughput::of(case);
    let rate = if throughput.bytes.is_some() { format!(", {}", throughput.in_words()) } else { String::new() };
    page.line([Span::from(format!("{}{rate}", verdict::in_a_line(case)))]);
    for doubt in verdict::doubts(case) {
        page.line([Span::new(format!("  {doubt}"), Style::Warning)]);
    }
    if let Some(sentence) = sentence::of(case).filter(|_| room.lines > 1) {
        page.line([Span::new(format!("  {sentence}"), Style::Dim)]);
    }
}
