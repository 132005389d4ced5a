//! A tuning: whether a setting helps, what was tried, and what to write where.

use inodyne_model::count::Grouped;
use inodyne_model::finding::Finding;
use inodyne_model::recording::Recording;
use inodyne_model::tuning::{Measured, Objective, Risk, Tried, TuneVerdict, Tuning};

use super::block::Page;
use super::case::Case;
use super::change::{self, Whisker};
use super::definition::{Definition, Show};
use super::table::{Column, Records, RowKind, Table};
use super::value::{Cell, Picture, Value};
use crate::line::{Span, Style, escaped};
use crate::units::{counted, duration_beside, number, percent};

pub(super) const SECTION: Definition = Definition { name: "tune", unasked: true, show: Show::Recording(show), records };

fn show<'a>(page: &mut Page<'a>, recording: &'a Recording, _: &[Case<'a>]) {
    let Some(tuning) = recording.tuning.as_ref().filter(|_| page.wants(SECTION.name)) else { return };
    in_short(page, recording, tuning, usize::MAX);
}

/// The verdict, at most `rows` rows of what was tried, and what to write.
pub(super) fn in_short(page: &mut Page<'_>, recording: &Recording, tuning: &Tuning, rows: usize) {
    page.gap();
    let cache = recording.runs.first().map(|run| run.cache.to_string());
    let circumstances = cache.map_or_else(String::new, |cache| format!(" ({cache})"));
    let now = base(tuning).map_or_else(String::new, |base| format!(": {}", of_base(&base)));
    let title = format!("{} on {}{circumstances}{now}", escaped(&tuning.command), escaped(&tuning.place));
    page.line([Span::new(title, Style::Bold)]);
    let (text, style) = verdict(tuning, recording.margin);
    page.paragraph(Span::default(), &text, style);
    page.heading(&heading(tuning, recording));
    page.table(table(tuning, rows, recording.margin));
    for tried in tuning.tried.iter().filter(|tried| tried.reason.is_some()) {
        let reason = tried.reason.as_deref().unwrap_or_default();
        let text = format!("{} {}: {reason}", tried.written(), tried.verdict.as_str());
        page.paragraph("  ".into(), &escaped(&text), Style::Warning);
    }
    if let Some(best) = tuning.best.and_then(|best| tuning.tried.get(best)) {
        page.heading("What to write where");
        for set in &best.settings {
            page.paragraph("  ".into(), &escaped(&set.permanent), Style::Plain);
        }
    }
    let untried: Vec<&Finding> = untried(recording, tuning).take(MOST_UNTRIED).collect();
    if !untried.is_empty() {
        page.heading("What was found and not tried here");
        for finding in untried {
            page.paragraph("  ".into(), &escaped(&finding.title), Style::Plain);
            finding.cure.iter().for_each(|cure| page.paragraph("    ".into(), &escaped(cure), Style::Dim));
        }
    }
}

/// At most this many untried findings are listed.
const MOST_UNTRIED: usize = 2;

/// Findings for which no setting was tried, whatever came of it.
fn untried<'a>(recording: &'a Recording, tuning: &'a Tuning) -> impl Iterator<Item = &'a Finding> {
    let was_tried = |id: &str| {
        let is_tried = |tried: &&Tried| tried.verdict != TuneVerdict::NotTried || tried.confirmed.is_some();
        let tried = tuning.tried.iter().filter(is_tried);
        let mut sets = tried.flat_map(|tried| &tried.settings);
        sets.any(|set| set.finding.as_deref() == Some(id))
    };
    recording.findings.iter().filter(move |finding| !finding.bound && !was_tried(&finding.id))
}

/// The measurement of the base that has the most pairs.
fn base(tuning: &Tuning) -> Option<Measured> {
    let measured = tuning.tried.iter().flat_map(|tried| tried.confirmed.or(tried.screened));
    measured.max_by_key(|measured| measured.pairs)
}

/// The base's number or time.
fn of_base(measured: &Measured) -> String {
    match measured.base_number {
        Some(value) => number(value),
        None => duration_beside(measured.base_ns, measured.base_ns),
    }
}

/// The number or time with the setting, written like the base's.
fn of_setting(measured: &Measured) -> String {
    match measured.number {
        Some(value) => number(value),
        None => duration_beside(measured.wall_ns, measured.base_ns),
    }
}

/// The ratio of what is shown, and its interval: above 1 is more.
fn shown(measured: &Measured, objective: Objective) -> (f64, Option<(f64, f64)>) {
    let interval = measured.interval().map(|(low, high)| {
        let (a, b) = (objective.shown(low), objective.shown(high));
        (a.min(b), a.max(b))
    });
    (objective.shown(measured.ratio), interval)
}

/// The result, in a sentence.
fn verdict(tuning: &Tuning, margin: f64) -> (String, Style) {
    let early = if tuning.complete { "" } else { " It ended early: there is more to be tried." };
    let until = match tuning.objective {
        Objective::Durable => " until durable",
        Objective::Exit | Objective::Lowest | Objective::Highest => "",
    };
    let best = tuning.best.and_then(|best| tuning.tried.get(best)).and_then(|tried| Some((tried, tried.confirmed?)));
    let Some((best, measured)) = best else {
        let least = percent(margin);
        let text = match tuning.tried.iter().any(|tried| was_tried(tried, margin)) {
            true => {
                let open = undecided(tuning, margin);
                format!("No setting was shown to help by {least} or more{until}{open}.{early}")
            }
            false if tuning.tried.is_empty() && !tuning.complete => {
                "It ended before anything was judged: the same command with --resume goes on from there.".to_owned()
            }
            false => format!("Nothing was tried.{early}"),
        };
        return (text, Style::Plain);
    };
    let (before, after) = (of_base(&measured), of_setting(&measured));
    let (ratio, interval) = shown(&measured, tuning.objective);
    let interval = interval.map_or_else(String::new, |(low, high)| format!(" {}", change::changes(low, high)));
    let risk = match best.risk() {
        Risk::None => String::new(),
        risk => format!(" Its risk: {}.", risk.as_str()),
    };
    let helps = if best.settings.len() > 1 { "help" } else { "helps" };
    let text = format!(
        "{} {helps}: {after} instead of {before}{until}, {}{interval}, confirmed on {} of fresh runs.{risk}{early}",
        best.written(),
        change::change(ratio),
        change::pairs(measured.pairs),
    );
    (escaped(&text), Style::Good)
}

/// Whether its runs say anything.
fn was_tried(tried: &Tried, margin: f64) -> bool {
    tried.screened.is_some() && tried.verdict != TuneVerdict::NotTried || waits_for_fresh_runs(tried, margin)
}

/// Whether it looked better, or was about to be confirmed, and no fresh runs say anything about it.
fn waits_for_fresh_runs(tried: &Tried, margin: f64) -> bool {
    let looked_better = |seen: Measured| seen.pairs > 1 && seen.ratio < 1.0 - margin;
    match tried.verdict {
        TuneVerdict::NotPursued => true,
        TuneVerdict::NotTried => tried.confirmed.is_some() || tried.screened.is_some_and(looked_better),
        _ => false,
    }
}

/// `; 2 that looked better were not tried on fresh runs; 1 that looked better was not confirmed`; nothing if everything else showed no
/// gain. Several at once are not counted.
fn undecided(tuning: &Tuning, margin: f64) -> String {
    let count = |is_meant: &dyn Fn(&Tried) -> bool| {
        tuning.tried.iter().filter(|tried| tried.settings.len() == 1 && is_meant(tried)).count() as u64
    };
    let waiting = count(&|tried| waits_for_fresh_runs(tried, margin));
    let refuted = count(&|tried| tried.verdict == TuneVerdict::NotConfirmed);
    let were = |count: u64| if count == 1 { "was" } else { "were" };
    let said = |count: u64, words: &str| {
        (count > 0).then(|| format!("{} that looked better {} {words}", Grouped(count), were(count)))
    };
    let both = [said(waiting, "not tried on fresh runs"), said(refuted, "not confirmed")];
    both.into_iter().flatten().map(|part| format!("; {part}")).collect()
}

/// `Tried: 12 settings in 64 runs`, or `Tried: 3 of 12 settings in 9 runs`
fn heading(tuning: &Tuning, recording: &Recording) -> String {
    let alone = || tuning.tried.iter().filter(|tried| tried.settings.len() == 1);
    let (all, tried) = (alone().count(), alone().filter(|tried| was_tried(tried, recording.margin)).count());
    let of = if tried == all { String::new() } else { format!("{} of ", Grouped(tried as u64)) };
    let runs = recording.runs.iter().filter(|run| !run.traced).count();
    format!("Tried: {of}{} in {}", counted(all as u64, "setting", "settings"), counted(runs as u64, "run", "runs"))
}

/// What was measured for one that was tried: fresh runs say more, if there were enough of them.
fn measured(tried: &Tried) -> Option<Measured> {
    match tried.verdict {
        TuneVerdict::NotTried => tried.screened.or(tried.confirmed),
        _ => tried.confirmed.or(tried.screened),
    }
}

/// The most telling first: what was confirmed, then by how much better it looked.
fn table(tuning: &Tuning, rows: usize, margin: f64) -> Table {
    let plot = match tuning.objective {
        Objective::Exit | Objective::Durable => "faster │ slower",
        Objective::Lowest | Objective::Highest => "less │ more",
    };
    let columns = [
        Column::text("setting").naming().yielding(),
        Column::number("change"),
        Column::number("interval"),
        Column::number("pairs"),
        Column::text(plot).class("plot").page(),
        Column::text("risk"),
        Column::text("verdict"),
    ];
    let mut table = Table::new("tune", columns);
    let mut all: Vec<&Tried> = tuning.tried.iter().collect();
    let ratio = |tried: &Tried| measured(tried).map_or(f64::INFINITY, |measured| measured.ratio);
    all.sort_by(|a, b| b.confirmed.is_some().cmp(&a.confirmed.is_some()).then(ratio(a).total_cmp(&ratio(b))));
    for (at, tried) in all.into_iter().enumerate() {
        let kind = if at < rows { RowKind::Plain } else { RowKind::Hidden };
        let figures = measured(tried);
        let (ratio, interval) = match figures.map(|figures| shown(&figures, tuning.objective)) {
            Some((ratio, interval)) => (Some(ratio), interval),
            None => (None, None),
        };
        let finding = tried.settings.iter().find_map(|set| set.finding.as_ref());
        let from = finding.map_or_else(String::new, |id| format!(" ({id})"));
        let helps = tried.verdict == TuneVerdict::Helps;
        let risk = tried.risk();
        let whisker = Whisker { ratio, interval, margin };
        table.push(
            kind,
            [
                Cell::of(format!("{}{from}", escaped(&tried.written()))).styled(if helps {
                    Style::Bold
                } else {
                    Style::Plain
                }),
                Cell::change(ratio),
                Cell::changes(interval),
                figures.map_or_else(Cell::nothing, |figures| Cell::of(figures.pairs)),
                Cell::picture(Picture::Whisker(whisker)),
                Cell::of(if risk == Risk::None { "" } else { risk.as_str() }),
                Cell::of(tried.verdict.as_str()).styled(if helps { Style::Good } else { Style::Plain }),
            ],
        );
    }
    let hidden = table.hidden_rows();
    if hidden > 0 {
        table.hidden = "settings".to_owned();
        let name = Cell::of(format!("{hidden} more, with -v"));
        table.rest(std::iter::once(name).chain(std::iter::repeat_with(Cell::nothing).take(6)));
    }
    table
}

/// A row for each setting, or several at once, that was tried.
fn records(recording: &Recording) -> Records {
    let columns = [
        "setting",
        "risk",
        "finding",
        "verdict",
        "reason",
        "screened_pairs",
        "screened_ratio",
        "pairs",
        "base_ns",
        "wall_ns",
        "ratio",
        "ci_low",
        "ci_high",
        "p_corrected",
        "permanent",
        "base_number",
        "number",
    ];
    let row = |tried: &Tried| -> [Value; 17] {
        let joined = |of: fn(&inodyne_model::tuning::Set) -> Option<&String>| {
            let all: Vec<&str> = tried.settings.iter().filter_map(of).map(String::as_str).collect();
            all.join("; ")
        };
        let (screened, confirmed) = (tried.screened, tried.confirmed);
        [
            tried.written().into(),
            tried.risk().as_str().into(),
            Some(joined(|set| set.finding.as_ref())).filter(|ids| !ids.is_empty()).into(),
            tried.verdict.as_str().into(),
            tried.reason.clone().into(),
            screened.map(|measured| measured.pairs).into(),
            screened.map(|measured| measured.ratio).into(),
            confirmed.map(|measured| measured.pairs).into(),
            confirmed.map(|measured| measured.base_ns).into(),
            confirmed.map(|measured| measured.wall_ns).into(),
            confirmed.map(|measured| measured.ratio).into(),
            confirmed.and_then(|measured| measured.ci_low).into(),
            confirmed.and_then(|measured| measured.ci_high).into(),
            confirmed.map(|measured| measured.p).into(),
            joined(|set| Some(&set.permanent)).into(),
            confirmed.and_then(|measured| measured.base_number).into(),
            confirmed.and_then(|measured| measured.number).into(),
        ]
    };
    Records::new(columns, recording.tuning.iter().flat_map(|tuning| &tuning.tried).map(row))
}

#[cfg(test)]
mod tests {
    use inodyne_model::sample;

    use super::*;

    #[test]
    fn what_was_not_run_fresh_is_not_said_to_be_of_no_help() {
        let mut tuning = sample::tuned_recording().tuning.expect("it is one");
        tuning.best = None;
        let mut said = |verdicts: [TuneVerdict; 4], complete| {
            tuning.complete = complete;
            tuning.tried.iter_mut().zip(verdicts).for_each(|(tried, verdict)| tried.verdict = verdict);
            verdict(&tuning, 0.02).0
        };
        use TuneVerdict::{NoGain, NotConfirmed, NotPursued, NotTried, Refused};
        let nothing = "No setting was shown to help by 2% or more";
        assert_eq!(said([NoGain, NoGain, Refused, NoGain], true), format!("{nothing}."));
        let refuted = format!(
            "{nothing}; 1 that looked better was not tried on fresh runs; 1 that looked better was not confirmed."
        );
        assert_eq!(said([NotConfirmed, NotPursued, Refused, NoGain], true), refuted);
        let early = "; 2 that looked better were not tried on fresh runs. It ended early: there is more to be tried.";
        assert_eq!(said([NotTried, NotTried, NotTried, NotTried], false), format!("{nothing}{early}"));
    }
}
