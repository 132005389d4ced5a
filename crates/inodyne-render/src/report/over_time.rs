//! How what a command did changed while it ran: the critical path in each quarter of the time.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use inodyne_model::Nanos;
use inodyne_model::cause::Cause;
use inodyne_model::ledger::RowKind;
use inodyne_model::recording::Recording;
use inodyne_model::trace::Trace;

use super::block::Page;
use super::case::Case;
use super::definition::{Definition, Show};
use super::rows::{word, words};
use super::table::{self, Column, Records, Table};
use super::value::{Cell, Value};
use crate::line::Style;
use crate::units::{counted, duration, percent};

pub(super) const SECTION: Definition = Definition { name: "over-time", unasked: true, show: Show::Case(show), records };

/// Into how many parts the time is divided.
const QUARTERS: usize = 4;
/// Anything shorter is not divided unless asked for.
const LONG: Nanos = Nanos(1_000_000_000);
/// Nor is it if no row's share differs by more than this between two quarters.
const CHANGED: f64 = 0.1;
/// Rows that are shown: those that have the most of any quarter.
const MOST_ROWS: usize = 8;
/// The share of one of the quarters that a row must have to be shown.
const SMALL: f64 = 0.02;

/// What was done, as in rows of the ledger, but not through whom.
type What = (RowKind, Option<String>, Option<Cause>);

/// How much of each quarter something took.
type Times = [Nanos; QUARTERS];

/// The quarters of the wall-clock time, and what was done in each.
struct Quarters {
    /// Where they end; the last one ends with the command.
    ends: [u64; QUARTERS],
    /// The largest first, and what is unexplained last.
    rows: Vec<(What, Times)>,
}

impl Quarters {
    /// `None` if the path is not known.
    fn of(trace: &Trace) -> Option<Quarters> {
        if trace.path.steps.is_empty() {
            return None;
        }
        let whole = trace.ledger.wall_ns.0;
        let ends: [u64; QUARTERS] = std::array::from_fn(|at| {
            (u128::from(whole) * (at as u128 + 1) / QUARTERS as u128).try_into().unwrap_or(u64::MAX)
        });
        // There may be millions of steps, but few rows.
        let mut of_rows = vec![Times::default(); trace.path.rows.len()];
        for (step, parts) in trace.path.iter() {
            let length = parts.iter().map(|part| part.ns).sum::<Nanos>().0;
            for part in parts {
                if let Some(sum) = of_rows.get_mut(part.row as usize) {
                    add(sum, divided(part.ns, step.from_ns, length, &ends));
                }
            }
        }
        let mut sums: BTreeMap<What, Times> = BTreeMap::new();
        for (row, times) in trace.path.rows.iter().zip(of_rows) {
            add(sums.entry((row.kind, row.syscall.clone(), row.cause)).or_default(), times);
        }
        let is_any = |what: &What, times: &Times| what.0 != RowKind::Unexplained && *times != Times::default();
        let mut rows: Vec<_> = sums.into_iter().filter(|(what, times)| is_any(what, times)).collect();
        rows.sort_by_key(|(_, times)| Reverse(times.iter().copied().sum::<Nanos>()));
        let mut quarters = Quarters { ends, rows };
        let rest: Times = std::array::from_fn(|at| {
            let explained = quarters.rows.iter().map(|(_, times)| times[at]).sum::<Nanos>();
            quarters.length(at).saturating_sub(explained)
        });
        quarters.rows.push(((RowKind::Unexplained, None, None), rest));
        Some(quarters)
    }

    fn begin(&self, at: usize) -> u64 {
        at.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    fn length(&self, at: usize) -> Nanos {
        Nanos(self.ends[at] - self.begin(at))
    }

    /// Shares of the quarters.
    fn shares(&self, times: &Times) -> [f64; QUARTERS] {
        std::array::from_fn(|at| times[at].share_of(self.length(at)))
    }

    /// The largest difference between two quarters.
    fn most_changed(&self) -> f64 {
        let changes = self.rows.iter().map(|(_, times)| {
            let shares = self.shares(times);
            shares.iter().copied().fold(0.0, f64::max) - shares.iter().copied().fold(1.0, f64::min)
        });
        changes.fold(0.0, f64::max)
    }

    /// The row that differs most between the first quarter and the last, in a sentence.
    fn sentence(&self) -> Option<String> {
        let change = |times: &Times| {
            let shares = self.shares(times);
            shares[QUARTERS - 1] - shares[0]
        };
        let (what, times) = self
            .rows
            .iter()
            .max_by(|(_, a), (_, b)| change(a).abs().total_cmp(&change(b).abs()))
            .filter(|(_, times)| change(times).abs() >= CHANGED)?;
        let [first, .., last] = self.shares(times);
        let grows = if last > first { "grows" } else { "shrinks" };
        Some(format!(
            "{} {grows} from {} of the first quarter to {} of the last.",
            in_words(what),
            percent(first),
            percent(last)
        ))
    }
}

fn add(sum: &mut Times, times: Times) {
    sum.iter_mut().zip(times).for_each(|(sum, ns)| *sum += ns);
}

/// How much of a part of a step is in each quarter: the order in which a step did its parts is not known, so each is spread over all of
/// the step. The sum is the whole part.
fn divided(ns: Nanos, from: u64, length: u64, ends: &[u64; QUARTERS]) -> Times {
    // The last quarter gets all that is left, even of a path that rounding has made longer than the command.
    let until = |at: usize| {
        let passed = if at + 1 == QUARTERS { length } else { ends[at].saturating_sub(from).min(length) };
        (u128::from(ns.0) * u128::from(passed)).checked_div(length.into()).map_or(ns.0, |part| part as u64)
    };
    std::array::from_fn(|at| Nanos(until(at) - at.checked_sub(1).map_or(0, until)))
}

fn in_words((kind, syscall, cause): &What) -> String {
    let (subject, what, _) = words(*kind, syscall.as_deref(), *cause);
    format!("{subject} {what}").trim_end().to_owned()
}

fn show<'a>(page: &mut Page<'a>, case: &Case<'a>) {
    let Some(trace) = case.trace else { return };
    let Some(quarters) = Quarters::of(trace) else { return };
    let is_telling = trace.ledger.wall_ns >= LONG && quarters.most_changed() >= CHANGED;
    if page.is_whole() && !is_telling {
        return;
    }
    page.heading(&format!("What each quarter of the {} went to", duration(trace.ledger.wall_ns)));
    if let Some(sentence) = quarters.sentence() {
        page.paragraph("  ".into(), &sentence, Style::Plain);
    }
    page.table(table(&quarters));
}

fn table(quarters: &Quarters) -> Table {
    let columns =
        [Column::text("").on_page("where").naming().yielding(), Column::text("").on_page("what").class("what")];
    let mut table =
        Table::new("over-time", columns.into_iter().chain(["1st", "2nd", "3rd", "4th"].map(Column::number)));
    let most = |times: &Times| quarters.shares(times).into_iter().fold(0.0, f64::max);
    let mut largest: Vec<f64> = quarters.rows.iter().map(|(_, times)| most(times)).collect();
    largest.sort_by(|a, b| b.total_cmp(a));
    let least = largest.get(MOST_ROWS).copied().unwrap_or_default().max(SMALL);
    let mut small = Times::default();
    for ((kind, syscall, cause), times) in &quarters.rows {
        let (subject, words, style) = words(*kind, syscall.as_deref(), *cause);
        let cells_of_row = cells(&subject, &words, style, quarters.shares(times));
        if *kind == RowKind::Unexplained {
            if table.hidden_rows() > 0 {
                table.hidden = counted(table.hidden_rows() as u64, "smaller row", "smaller rows");
                table.rest(cells(&table.hidden.clone(), "", Style::Dim, quarters.shares(&small)));
            }
            table.row(cells_of_row);
        } else if most(times) <= least {
            add(&mut small, *times);
            table.push(table::RowKind::Hidden, cells_of_row);
        } else {
            table.row(cells_of_row);
        }
    }
    table
}

fn cells(subject: &str, what: &str, style: Style, shares: [f64; QUARTERS]) -> impl Iterator<Item = Cell> {
    let words = [Cell::of(subject), Cell::of(what).styled(style)];
    words.into_iter().chain(shares.map(Cell::share))
}

/// A row for each quarter and each thing done in it. Those of a quarter sum to its length.
fn records(recording: &Recording) -> Records {
    let columns = ["quarter", "from_ns", "to_ns", "kind", "syscall", "cause", "ns"];
    Records::of_traces(recording, columns, |trace| {
        let Some(quarters) = &Quarters::of(trace) else { return Vec::new() };
        let of_quarter = |at: usize| {
            let of_row = move |((kind, syscall, cause), times): &(What, Times)| -> [Value; 7] {
                [
                    (at + 1).into(),
                    quarters.begin(at).into(),
                    quarters.ends[at].into(),
                    word(*kind),
                    syscall.as_ref().into(),
                    cause.map_or(Value::Nothing, word),
                    times[at].into(),
                ]
            };
            quarters.rows.iter().map(of_row)
        };
        (0..QUARTERS).flat_map(of_quarter).collect()
    })
}

#[cfg(test)]
mod tests {
    use inodyne_model::path::{CriticalPath, PathRow, Step, StepPart};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// One thread; each step with its rows and their tenths of seconds. Row 0 is in user mode, row 1 waits for a device, row 2 runs in
    /// the kernel.
    fn trace(steps: &[(u64, &[(u32, u64)])], wall: u64) -> Trace {
        let row = |kind, syscall: Option<&str>, cause| PathRow {
            kind,
            syscall: syscall.map(str::to_owned),
            cause,
            via: Vec::new(),
        };
        let mut path = CriticalPath {
            rows: vec![
                row(RowKind::User, None, None),
                row(RowKind::Blocked, Some("fsync"), Some(Cause::DeviceRead)),
                row(RowKind::Kernel, Some("write"), None),
            ],
            ..CriticalPath::default()
        };
        for (from, parts) in steps {
            let step = Step {
                from_ns: from * SECOND / 10,
                thread: 1,
                first: path.parts.len() as u32,
                count: parts.len() as u32,
            };
            path.steps.push(step);
            path.parts
                .extend(parts.iter().map(|(row, tenths)| StepPart { row: *row, ns: Nanos(tenths * SECOND / 10) }));
        }
        let mut trace = Trace { path, ..Trace::default() };
        trace.ledger.wall_ns = Nanos(wall * SECOND / 10);
        trace
    }

    fn rows(trace: &Trace) -> Vec<(String, [u64; QUARTERS])> {
        let quarters = Quarters::of(trace).expect("there is a path");
        let tenths = |times: &Times| times.map(|ns| ns.0 / (SECOND / 10));
        quarters.rows.iter().map(|(what, times)| (in_words(what), tenths(times))).collect()
    }

    #[test]
    fn each_quarter_has_its_own_sums() {
        // 8 s: 3 s in user mode, a wait of 4 s across two boundaries, and the last second is not known.
        let trace = trace(&[(0, &[(0, 30)]), (30, &[(1, 40)])], 80);
        let expected = [
            ("fsync blocked: device-read".to_owned(), [0, 10, 20, 10]),
            ("user".to_owned(), [20, 10, 0, 0]),
            ("unexplained".to_owned(), [0, 0, 0, 10]),
        ];
        assert_eq!(rows(&trace), expected);
        let quarters = Quarters::of(&trace).unwrap();
        assert_eq!(quarters.sentence().unwrap(), "user shrinks from 100% of the first quarter to 0% of the last.");
        assert_eq!(quarters.most_changed(), 1.0);
    }

    #[test]
    fn what_a_step_did_in_no_known_order_is_spread_over_it() {
        let trace = trace(&[(0, &[(0, 20), (2, 60)])], 80);
        let expected =
            [("write kernel".to_owned(), [15; 4]), ("user".to_owned(), [5; 4]), ("unexplained".to_owned(), [0; 4])];
        assert_eq!(rows(&trace), expected);
        assert_eq!(Quarters::of(&trace).unwrap().sentence(), None);
    }

    #[test]
    fn nothing_is_lost_by_dividing() {
        let mut random = inodyne_model::random::Random::seeded(7);
        for _ in 0..1_000 {
            let [ns, from, length, whole] = [(); 4].map(|()| random.next_u64() >> (random.below(60) + 4));
            let ends = [whole / 4, whole / 2, whole / 4 * 3, whole];
            let times = divided(Nanos(ns), from, length, &ends);
            assert_eq!(times.iter().map(|part| part.0).sum::<u64>(), ns, "{ns} {from} {length} {whole}");
        }
    }

    #[test]
    fn without_a_path_there_is_nothing() {
        assert!(Quarters::of(&Trace::default()).is_none());
    }
}
