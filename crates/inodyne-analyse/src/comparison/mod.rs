//! Cases compared: how much slower, whether that is real, and where the difference lies.
//!
//! ```text
//! cases     a command in a place in a state of the caches, with its runs by block and its traces; and which two of
//!           them are compared: every place with the first one, every command with the first one
//! pending   what is compared for a pair of cases, in pairs from the same block
//! ```
//!
//! The runs of a block are next to each other in time, so they are paired. The wall-clock time is that of untraced runs,
//! where there are any, and so is the time until everything was durable; calls and rows of the ledger come from traced
//! runs, and are compared where there are at least two of each. Failed runs stay in, are counted, and cause the verdict to be withheld.

pub(crate) mod cases;
mod ledgers;
mod pending;

use std::collections::BTreeMap;

use inodyne_model::Nanos;
use inodyne_model::comparison::{Comparison, Interval, LEAST_PAIRS, LedgerDifference, Verdict};
use inodyne_model::metric::Metric;
use inodyne_model::random::Random;
use inodyne_model::recording::Recording;
use inodyne_model::run::CacheState;

use crate::statistics::{bootstrap, holm, paired, summary, verdict};
use cases::PairedCases;
pub(crate) use ledgers::subtracted;
use pending::{PendingComparison, SEED};

/// All comparisons of a recording, the wall-clock time of each pair of cases first; none where there is only one case.
pub(crate) fn all(recording: &Recording) -> Vec<Comparison> {
    let cases = cases::all(recording);
    let compared = compared(&cases::case_pairs(recording, &cases), recording.margin);
    compared.into_iter().map(|(_, comparison)| comparison).collect()
}

/// All comparisons of these pairs of cases, each with the number of its pair.
pub(crate) fn compared(case_pairs: &[PairedCases<'_>], margin: f64) -> Vec<(usize, Comparison)> {
    let pending: Vec<(usize, PendingComparison)> = case_pairs
        .iter()
        .enumerate()
        .flat_map(|(number, pair)| pending::of(pair).into_iter().map(move |comparison| (number, comparison)))
        .collect();
    let p_values: Vec<f64> = pending.iter().map(|(_, comparison)| paired::p_value(&comparison.pairs)).collect();
    let corrected = corrected(&pending, &p_values);
    let finish = |((number, comparison), (p, (p_corrected, needs_pairs)))| {
        let pair = &case_pairs[number];
        (number, Comparison { needs_pairs, ..finished(pair, comparison, p, p_corrected, margin) })
    };
    pending.into_iter().zip(p_values.into_iter().zip(corrected)).map(finish).collect()
}

/// How far the widest interval of the wall-clock times' ratios (to the end, and to durable where that was measured) in a
/// state of the caches reaches to either side, as a fraction of the ratio: needed for deciding about more runs. Only of the places from
/// `first_place` on: those before it are measured already. None while some pair of cases has too few pairs for an interval; zero where
/// nothing is compared, since no further run would make that any narrower.
pub fn precision(recording: &Recording, first_place: usize, cache: CacheState) -> Option<f64> {
    let cases = cases::all(recording);
    let case_pairs = cases::case_pairs(recording, &cases);
    let asked = |pair: &&PairedCases<'_>| pair.a.key.cache == cache && pair.a.key.place >= first_place;
    let pending = case_pairs.iter().filter(asked).flat_map(pending::of);
    let reach = |comparison: PendingComparison| {
        let Interval { value, low, high } = bootstrap::median_ratio(&comparison.pairs, &mut Random::seeded(SEED))?;
        (comparison.pairs.len() >= LEAST_PAIRS).then_some((high / value).max(value / low) - 1.0)
    };
    let is_headline = |comparison: &PendingComparison| {
        matches!(comparison.metric, Metric::Wall | Metric::Durable) && !comparison.traced
    };
    let mut widths = pending.filter(is_headline).map(reach);
    widths.try_fold(0.0f64, |widest, width| Some(widest.max(width?)))
}

/// Where the differences come from, for every pair of cases with traces.
pub(crate) fn ledger_differences(recording: &Recording) -> Vec<LedgerDifference> {
    let cases = cases::all(recording);
    cases::case_pairs(recording, &cases).iter().filter_map(subtracted).collect()
}

/// Corrects within families. The headlines of all pairs of cases form one; for each pair of cases, its CPU times, the wall times of
/// its calls, their CPU times, and the rows of its ledger form one each: questions that are asked together. Each corrected value comes
/// with the number of pairs that its family needs.
fn corrected(pending: &[(usize, PendingComparison)], p_values: &[f64]) -> Vec<(f64, usize)> {
    let mut families: BTreeMap<(u8, usize), Vec<usize>> = BTreeMap::new();
    for (at, (pair, comparison)) in pending.iter().enumerate() {
        let family = match comparison.metric {
            Metric::Wall | Metric::Durable => (0, 0),
            Metric::User | Metric::Sys => (1, *pair),
            Metric::SyscallWall(_) => (2, *pair),
            Metric::SyscallCpu(_) => (3, *pair),
            Metric::Ledger(_) => (4, *pair),
        };
        families.entry(family).or_default().push(at);
    }
    let mut corrected = vec![(1.0, 0); pending.len()];
    for family in families.into_values() {
        let of_family: Vec<f64> = family.iter().map(|at| p_values[*at]).collect();
        let needs = verdict::pairs_needed(family.len());
        for (at, p) in family.into_iter().zip(holm::corrected(&of_family)) {
            corrected[at] = (p, needs);
        }
    }
    corrected
}

fn finished(
    pair: &PairedCases<'_>,
    comparison: PendingComparison,
    p: f64,
    p_corrected: f64,
    margin: f64,
) -> Comparison {
    let PendingComparison { metric, traced, pairs, failed } = comparison;
    let mut random = Random::seeded(SEED);
    let ratio = bootstrap::median_ratio(&pairs, &mut random);
    // A single pair has a ratio and no interval.
    let value = ratio.map(|ratio| ratio.value).or(match pairs[..] {
        [(a, b)] if a > 0.0 => Some(b / a),
        _ => None,
    });
    let median =
        |of: fn(&bootstrap::Pair) -> f64| Nanos::rounded(summary::median_of(&Vec::from_iter(pairs.iter().map(of))));
    let judged = ratio.or_else(|| bootstrap::above_nothing(&pairs));
    let verdict = if failed > 0 { Verdict::Withheld } else { verdict::judge(pairs.len(), judged, p_corrected, margin) };
    let ends = |interval: &Interval| interval.high.is_finite();
    Comparison {
        cases: pair.keys(),
        metric,
        traced,
        pairs: pairs.len(),
        failed,
        a_median_ns: median(|pair| pair.0),
        b_median_ns: median(|pair| pair.1),
        ratio: value,
        ci_low: ratio.map(|ratio| ratio.low),
        ci_high: ratio.filter(ends).map(|ratio| ratio.high),
        ratio_of_medians: bootstrap::ratio_of_medians(&pairs, &mut random).filter(ends),
        ratio_of_means: bootstrap::ratio_of_means(&pairs, &mut random).filter(ends),
        p,
        p_corrected,
        margin,
        needs_pairs: 0,
        verdict,
    }
}

#[cfg(test)]
mod tests;
