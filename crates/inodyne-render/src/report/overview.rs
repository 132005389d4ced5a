//! Everything that was compared in one table: a row for each case, the verdict first, then its time, what it does per second, and
//! what most of its time was. And the answer in a sentence.

use inodyne_model::Nanos;
use inodyne_model::case::CaseKey;
use inodyne_model::comparison::{Comparison, Verdict};
use inodyne_model::metric::Metric;
use inodyne_model::recording::Recording;

use super::call_changes::style;
use super::case::Case;
use super::change::{self, Whisker};
use super::ledger;
use super::names::{self, Names};
use super::table::{Column, Table};
use super::throughput::Throughput;
use super::value::{Cell, Picture};
use crate::line::{Style, cut, escaped};
use crate::units::{percent, unit};

/// The column of what every command does.
const CALLS: &str = "calls/s";
/// One of the rates of a case.
type Rate = fn(&Throughput) -> Option<Cell>;

/// The widest name in the answer.
const WIDEST_NAME: usize = 40;

/// Whether a comparison is of the time that the command took.
fn is_of_time(comparison: &Comparison) -> bool {
    matches!(comparison.metric, Metric::Wall | Metric::Durable)
}

/// Comparisons of times that are about these cases.
pub(super) fn of_times(recording: &Recording, wanted: impl Fn(CaseKey) -> bool) -> Vec<&Comparison> {
    recording.comparisons.iter().filter(|one| is_of_time(one) && wanted(one.cases.a)).collect()
}

/// What was compared, and how often: `find ., cold: 8 pairs of runs`.
pub(super) fn subject(recording: &Recording, of: &[&Comparison]) -> String {
    let command = match recording.commands.as_slice() {
        [command] => cut(&escaped(&command.label), WIDEST_NAME),
        commands => format!("{} commands", commands.len()),
    };
    let place = match recording.places.as_slice() {
        [place] => format!(" on {}", escaped(&place.name())),
        places => format!(" on {} places", places.len()),
    };
    let is_same = |with: &dyn Fn(&Comparison) -> bool| of.iter().all(|one| with(one));
    let cache = of.first().map(|one| one.cases.cache()).filter(|cache| is_same(&|one| one.cases.cache() == *cache));
    let circumstances = cache.map_or_else(String::new, |cache| names::circumstances("", cache));
    let pairs = of.first().map(|one| one.pairs).filter(|pairs| is_same(&|one| one.pairs == *pairs));
    let pairs = pairs.map_or_else(String::new, |pairs| format!(": {} of runs", change::pairs(pairs)));
    format!("{command}{place}{circumstances}{pairs}")
}

/// The result, what is decided first: `faster than slow: fast (2.5 times as fast); not enough runs to tell: xfs`. `None` if nothing
/// was compared.
pub(super) fn answer(recording: &Recording, of: &[&Comparison]) -> Option<String> {
    let first = Names::of(recording, of.first()?.cases);
    let all: Vec<(Names, &Comparison)> = of.iter().map(|one| (Names::of(recording, one.cases), *one)).collect();
    let is_one_pair = all.iter().all(|(names, _)| names.both() == first.both());
    let is_one_base = all.iter().all(|(names, _)| names.a == first.a);
    let has_caches = of.iter().any(|one| one.cases.cache() != of[0].cases.cache());
    let has_durable = of.iter().any(|one| one.metric == Metric::Durable);
    let item = |(names, one): &(Names, &Comparison)| {
        let name = match () {
            () if is_one_pair => names.common.clone(),
            () if is_one_base => names.b.clone(),
            () => format!("{} against {}", names.b, names.a),
        };
        // Where several commands ran in several places, the same two were compared more than once.
        let is_again = |(other, _): &(Names, &Comparison)| other.both() == names.both() && other.common != names.common;
        let common = (!is_one_pair && all.iter().any(is_again)).then(|| cut(&escaped(&names.common), WIDEST_NAME));
        let until = if one.metric == Metric::Durable { "to durable" } else { "to exit" };
        let change = one.ratio.filter(|_| matches!(one.verdict, Verdict::Faster | Verdict::Slower)).map(change::change);
        let cache = has_caches.then(|| one.cases.cache().to_string());
        let until = has_durable.then(|| until.to_owned());
        // What tells it from the others, and in brackets the rest.
        let mut parts = [Some(cut(&escaped(&name), WIDEST_NAME)), common, cache, until, change]
            .into_iter()
            .flatten()
            .filter(|part| !part.is_empty());
        let first = parts.next().unwrap_or_else(|| cut(&escaped(&names.b), WIDEST_NAME));
        let rest = parts.collect::<Vec<_>>().join(", ");
        if rest.is_empty() { first } else { format!("{first} ({rest})") }
    };
    let [a, b] = names::short(&first.both(), WIDEST_NAME);
    let (who, than) = match () {
        () if is_one_pair => (format!("{b} is "), format!(" than {a}")),
        () if is_one_base => (String::new(), format!(" than {a}")),
        () => Default::default(),
    };
    let margin = percent(of[0].margin);
    let said = [
        (Verdict::Faster, format!("{who}faster{than}")),
        (Verdict::Slower, format!("{who}slower{than}")),
        (Verdict::NoDifference, format!("no difference of {margin} or more")),
        (Verdict::NotEnoughRuns, "not enough runs to tell".to_owned()),
        (Verdict::Withheld, "no verdict, as runs failed".to_owned()),
    ];
    let said = said.into_iter().filter_map(|(verdict, words)| {
        let items: Vec<String> = all.iter().filter(|(_, one)| one.verdict == verdict).map(item).collect();
        (!items.is_empty()).then(|| format!("{words}: {}", items.join(", ")))
    });
    Some(said.collect::<Vec<_>>().join("; "))
}

/// A row of the table: until when, how long, and against what.
struct Timed<'a> {
    metric: Metric,
    ns: Nanos,
    comparison: Option<&'a Comparison>,
}

/// The times of a case: those that were compared with a base, or its own if it is one.
fn timed<'a>(case: &Case<'a>, of: &[&'a Comparison]) -> Vec<Timed<'a>> {
    let compared = of.iter().filter(|one| one.cases.b == case.key);
    let rows: Vec<Timed<'a>> =
        compared.map(|one| Timed { metric: one.metric.clone(), ns: one.b_median_ns, comparison: Some(one) }).collect();
    if !rows.is_empty() {
        return rows;
    }
    let durable = case.statistics().and_then(|found| found.durable.as_ref());
    let durable = durable.map(|times| (Metric::Durable, times.spread.median_ns));
    let both = [(Metric::Wall, case.wall())].into_iter().chain(durable);
    both.map(|(metric, ns)| Timed { metric, ns, comparison: None }).collect()
}

/// The table of these cases.
pub(super) fn table(recording: &Recording, cases: &[Case<'_>]) -> Table {
    let of = of_times(recording, |_| true);
    let rows: Vec<(&Case<'_>, Timed<'_>, Throughput)> = cases
        .iter()
        .flat_map(|case| timed(case, &of).into_iter().map(move |row| (case, row, Throughput::of(case))))
        .collect();
    let whole = rows.iter().map(|(_, row, _)| row.ns).max().unwrap_or_default();
    let has_caches = cases.iter().any(|case| case.cache() != cases[0].cache());
    let has_durable = rows.iter().any(|(_, row, _)| row.metric == Metric::Durable);
    let base = |one: &Comparison| names::case(recording, one.cases.a.place, one.cases.a.command);
    let has_bases = of.iter().any(|one| base(one) != base(of[0]));
    let rates: [(&str, Rate); 3] = [
        ("data/s", |rate| rate.bytes.map(Cell::rate_of_bytes)),
        ("files/s", |rate| rate.files.map(Cell::rate)),
        (CALLS, |rate| rate.calls.map(Cell::rate)),
    ];
    let rates: Vec<_> = rates.into_iter().filter(|(_, of)| rows.iter().any(|(.., rate)| of(rate).is_some())).collect();
    let mut columns = vec![Column::text("").naming().yielding(), Column::text("verdict")];
    columns.extend(has_durable.then(|| Column::text("")));
    columns.push(Column::number(&format!("time {}", unit(whole))));
    columns.push(Column::number("change"));
    columns.push(Column::text("95% interval").class("interval"));
    columns.extend(has_bases.then(|| Column::text("against").wide()));
    columns.push(Column::text("faster │ slower").class("plot").page());
    columns.push(Column::number("pairs").wide());
    // What it moves fits into a narrow terminal too, if it moves anything.
    let rate = |(at, (heading, _)): (usize, &(&str, _))| {
        let column = Column::number(heading);
        if at == 0 && *heading != CALLS { column } else { column.wide() }
    };
    columns.extend(rates.iter().enumerate().map(rate));
    let is_traced = cases.iter().any(|case| case.trace.is_some());
    columns.extend(is_traced.then(|| Column::text("mostly").yielding()));
    let mut table = Table::new("comparisons", columns);
    for (case, row, rate) in rows {
        let words = names::case(recording, case.key.place, case.key.command);
        let words = if has_caches { format!("{words}, {}", case.cache()) } else { words };
        let verdict = row.comparison.map_or_else(|| "base".to_owned(), change::word_in_short);
        let mut cells = vec![
            Cell::of(escaped(&words)),
            Cell::of(verdict).styled(row.comparison.map_or(Style::Dim, |one| style(one.verdict))),
        ];
        let until = if row.metric == Metric::Durable { "to durable" } else { "to exit" };
        cells.extend(has_durable.then(|| Cell::of(until).styled(Style::Dim)));
        cells.push(Cell::scaled(row.ns, whole));
        cells.push(Cell::change(row.comparison.and_then(|one| one.ratio)));
        cells.push(Cell::changes(row.comparison.and_then(|one| Whisker::of(one).interval)));
        let against = row.comparison.map_or_else(String::new, base);
        cells.extend(has_bases.then(|| Cell::of(escaped(&against))));
        cells.push(row.comparison.map_or_else(Cell::nothing, |one| Cell::picture(Picture::Whisker(Whisker::of(one)))));
        cells.push(row.comparison.map_or_else(Cell::nothing, |one| Cell::of(one.pairs)));
        cells.extend(rates.iter().map(|(_, of)| of(&rate).unwrap_or_else(Cell::nothing)));
        cells.extend(is_traced.then(|| Cell::of(mostly(case))));
        table.row(cells);
    }
    table
}

/// The largest row of the ledger, which may be what no other accounts for: `63% waiting for a CPU`.
fn mostly(case: &Case<'_>) -> String {
    let row = case.trace.and_then(|trace| Some((trace, trace.ledger.rows.iter().max_by_key(|row| row.ns)?)));
    row.map_or_else(String::new, |(trace, row)| {
        let words = ledger::parts(row);
        let what = [words.subject, words.what].join(" ");
        format!("{} {}", percent(row.ns.share_of(trace.ledger.wall_ns)), escaped(what.trim()))
    })
}

#[cfg(test)]
mod tests {
    use inodyne_model::ledger::{Ledger, Row, RowKind};
    use inodyne_model::run::{CacheState, Run};
    use inodyne_model::sample;

    use super::*;
    use crate::report::sentence;

    /// As the sentence about the case does.
    #[test]
    fn what_no_row_accounts_for_is_what_most_of_the_time_was_where_it_is_the_largest() {
        let mut recording = sample::find_recording();
        inodyne_analyse::explain(&mut recording);
        recording.findings.clear();
        let mut told = |unexplained| {
            let rows = [Row::new(RowKind::User, Nanos(30)), Row::new(RowKind::Unexplained, Nanos(unexplained))];
            for trace in &mut recording.traces {
                trace.ledger = Ledger { wall_ns: Nanos(30 + unexplained), rows: rows.to_vec(), ..Ledger::default() };
            }
            let cases = Case::all(&recording);
            (mostly(&cases[0]), sentence::of(&cases[0]).expect("it was traced"))
        };
        let (mostly, sentence) = told(70);
        assert_eq!((mostly.as_str(), sentence.as_str()), ("70% unexplained", "70% of the time is unexplained."));
        assert_eq!(told(10).0, "75% user");
    }

    #[test]
    fn of_several_commands_in_several_places_the_answer_says_which_are_meant() {
        let mut recording = sample::empty();
        recording.places = vec![sample::ext4("ext4", &[]), sample::ext4("xfs", &[])];
        recording.commands = vec![sample::command("find ."), sample::command("git status")];
        for block in 0..20 {
            for (command, longer) in [(0, 1.0), (1, 2.0)] {
                for (place, slower) in [(0, 1.0), (1, 1.5)] {
                    let wall = sample::ms((100.0 + f64::from(block)) * longer * slower);
                    recording.push_run(Run { block, command, ..sample::run(place, CacheState::AsIs, false, wall) });
                }
            }
        }
        inodyne_analyse::explain(&mut recording);
        let said = answer(&recording, &of_times(&recording, |_| true)).expect("an answer");
        assert_eq!(
            said,
            "slower: xfs against ext4 (find ., +50%), git status against find . (on ext4, +100%), \
             xfs against ext4 (git status, +50%), git status against find . (on xfs, +100%)"
        );
    }
}
