//! How a ratio is put: `12% slower`, `[+8%, +17%]`, `2.3 times as fast`.

use inodyne_model::comparison::{Comparison, LEAST_PAIRS, Verdict};
use inodyne_model::count::Grouped;
use inodyne_model::metric::Metric;

use crate::units::counted;

/// From here on, "times" says more than "per cent".
const MANY: f64 = 2.0;

/// Nobody would wait for more pairs than this.
const MOST_PAIRS: f64 = 1_000.0;

/// The verdict as a sentence about the two sides.
pub(crate) fn sentence(comparison: &Comparison, a: &str, b: &str) -> String {
    let ratio = comparison.ratio.unwrap_or(f64::NAN);
    match comparison.verdict {
        Verdict::Slower if ratio >= MANY => format!("{b} takes {} times as long as {a}", times(ratio)),
        Verdict::Slower => format!("{b} is {} slower than {a}", percent(ratio - 1.0)),
        Verdict::Faster if ratio <= 1.0 / MANY => format!("{b} is {} times as fast as {a}", times(1.0 / ratio)),
        Verdict::Faster => format!("{b} is {} faster than {a}", percent(1.0 - ratio)),
        Verdict::NoDifference => {
            format!("no difference of {} or more between {b} and {a}", percent(comparison.margin))
        }
        Verdict::NotEnoughRuns if comparison.pairs < needed(comparison) => match comparison.ratio {
            Some(ratio) => format!("{b} against {a}: {} so far, not enough runs", change(ratio)),
            None => format!("{b} against {a}: not enough runs"),
        },
        Verdict::NotEnoughRuns => format!("not enough runs to tell {b} from {a}"),
        Verdict::Withheld => {
            let of = Grouped(2 * comparison.pairs as u64);
            format!("no verdict about {b} and {a}: {} of {of} runs failed", Grouped(comparison.failed as u64))
        }
    }
}

/// The verdict in a word or a few, for a column.
pub(crate) fn word(comparison: &Comparison) -> String {
    match comparison.verdict {
        Verdict::NoDifference => format!("no difference of {} or more", percent(comparison.margin)),
        _ => word_in_short(comparison),
    }
}

/// The same where there is little room. An undecided one says how many pairs would decide it.
pub(crate) fn word_in_short(comparison: &Comparison) -> String {
    let enough = if comparison.verdict == Verdict::NotEnoughRuns { enough(comparison) } else { None };
    enough.unwrap_or_else(|| comparison.verdict.to_string())
}

/// A ratio with its interval, to be drawn, and what counts as no difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Whisker {
    /// `None` if there is no ratio.
    pub(crate) ratio: Option<f64>,
    /// The 95% interval.
    pub(crate) interval: Option<(f64, f64)>,
    /// Differences below this part count as none.
    pub(crate) margin: f64,
}

impl Whisker {
    pub(super) fn of(comparison: &Comparison) -> Whisker {
        Whisker { ratio: comparison.ratio, interval: ends(comparison), margin: comparison.margin }
    }
}

/// Whether it is about the whole time, which has room for more than an interval.
fn is_headline(comparison: &Comparison) -> bool {
    matches!(comparison.metric, Metric::Wall | Metric::Durable)
}

/// How many pairs could decide it.
fn needed(comparison: &Comparison) -> usize {
    comparison.needs_pairs.max(LEAST_PAIRS)
}

/// How many pairs would decide it: `needs 12 pairs`; `needs about 40 pairs`, if that is estimated from the width of the interval.
/// `None` if there would be too many to try.
fn enough(comparison: &Comparison) -> Option<String> {
    if comparison.pairs < needed(comparison) {
        return Some(format!("needs {}", pairs(needed(comparison))));
    }
    let (ratio, (low, high)) = (comparison.ratio?, comparison.ci_low.zip(comparison.ci_high)?);
    let (effect, margin) = (ratio.ln().abs(), comparison.margin.ln_1p());
    // An interval narrows with the square root of the number of pairs. A difference is shown once the interval ends short of 1,
    // and that there is none once the interval lies within the margin.
    let wanted = effect.max(margin - effect);
    let times = ((high.ln() - low.ln()) / 2.0 / wanted).powi(2);
    let count = (comparison.pairs as f64 * times).max(comparison.pairs as f64 + 1.0);
    // It is no more than a guess.
    let step = if count < 100.0 { 5.0 } else { 50.0 };
    (count <= MOST_PAIRS).then(|| format!("needs about {}", pairs(((count / step).ceil() * step) as usize)))
}

/// The ends of the interval, if there are enough pairs to show it.
fn ends(comparison: &Comparison) -> Option<(f64, f64)> {
    comparison.ci_low.zip(comparison.ci_high).filter(|_| comparison.pairs >= LEAST_PAIRS)
}

/// The interval of a comparison; empty if there is none. Given in "times" where the sentence is.
pub(crate) fn interval(comparison: &Comparison) -> String {
    let (Some(ratio), Some(low), Some(high)) = (comparison.ratio, comparison.ci_low, comparison.ci_high) else {
        return String::new();
    };
    match comparison.verdict {
        _ if comparison.pairs < LEAST_PAIRS => format!("(needs {} pairs)", needed(comparison)),
        Verdict::NotEnoughRuns if is_headline(comparison) => {
            let more = enough(comparison).map_or_else(String::new, |enough| format!(" ({enough})"));
            format!("{}{more}", changes(low, high))
        }
        Verdict::Slower if ratio >= MANY => format!("[{}, {}]", times(low), times(high)),
        Verdict::Faster if ratio <= 1.0 / MANY => format!("[{}, {}]", times(1.0 / high), times(1.0 / low)),
        _ => changes(low, high),
    }
}

/// The interval as changes in per cent, whatever the verdict: `[+8%, +17%]`.
pub(crate) fn changes(low: f64, high: f64) -> String {
    let ends = [low - 1.0, high - 1.0];
    let fine = ends.iter().all(|end| end.abs() < 0.0995);
    let [low, high] = ends.map(|end| signed(end, fine));
    format!("[{low}, {high}]")
}

/// A ratio as a change: `+12%`, `-0.4%`; from tenfold on as a multiple.
pub(crate) fn change(ratio: f64) -> String {
    if ratio >= 10.0 { format!("×{}", times(ratio)) } else { signed(ratio - 1.0, (ratio - 1.0).abs() < 0.0995) }
}

fn signed(change: f64, fine: bool) -> String {
    let percent = change * 100.0;
    let text = match fine {
        true => format!("{percent:+.1}%"),
        // What is left may be little, but it is not nothing.
        false if percent < -99.0 && percent > -100.0 => format!("{:+.1}%", percent.max(-99.9)),
        false => format!("{percent:+.0}%"),
    };
    // What rounds to zero has no sign.
    match text.as_str() {
        "+0.0%" | "-0.0%" | "+0%" | "-0%" => "0%".to_owned(),
        _ => text,
    }
}

/// A part in per cent: a whole number, or below ten with a decimal if that is not zero.
fn percent(part: f64) -> String {
    let percent = part * 100.0;
    let fine = format!("{percent:.1}");
    if percent >= 9.95 || fine.ends_with(".0") { format!("{percent:.0}%") } else { format!("{fine}%") }
}

fn times(ratio: f64) -> String {
    if ratio < 99.5 { format!("{ratio:.1}") } else { format!("{ratio:.0}") }
}

/// `50 pairs`, `1 pair`.
pub fn pairs(count: usize) -> String {
    counted(count as u64, "pair", "pairs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_decided_says_how_many_runs_would() {
        let mut recording = inodyne_model::sample::find_recording();
        inodyne_analyse::explain(&mut recording);
        let mut one = recording.comparisons[0].clone();
        one.verdict = Verdict::NotEnoughRuns;
        (one.pairs, one.needs_pairs, one.margin) = (8, 9, 0.02);
        (one.ratio, one.ci_low, one.ci_high) = (Some(0.9), Some(0.8), Some(1.0125));
        assert_eq!(word_in_short(&one), "needs 9 pairs");
        one.pairs = 20;
        // The interval is as wide as the difference is large, but for a little.
        assert_eq!(word(&one), "needs about 25 pairs");
        // That there is no difference is shown sooner than a difference as small as this one.
        (one.ratio, one.ci_low, one.ci_high) = (Some(0.995), Some(0.97), Some(1.02));
        assert_eq!(word_in_short(&one), "needs about 60 pairs");
        one.ci_high = Some(2.0);
        assert_eq!(word(&one), "not enough runs");
    }

    #[test]
    fn changes_are_as_fine_as_they_are_small() {
        assert_eq!(changes(1.08, 1.17), "[+8%, +17%]");
        assert_eq!(changes(0.99, 1.0104), "[-1.0%, +1.0%]");
        assert_eq!(changes(0.999_999, 1.0), "[0%, 0%]");
        assert_eq!([0.9, 1.004, 25.0].map(change), ["-10%", "+0.4%", "×25.0"]);
        assert_eq!([0.004, 0.0002, 0.0].map(change), ["-99.6%", "-99.9%", "-100%"]);
        assert_eq!([0.02, 0.015, 0.117].map(percent), ["2%", "1.5%", "12%"]);
    }
}
