//! What pairs of runs say of settings that were tried: a figure for those that were screened, a verdict for those that were
//! confirmed.
//!
//! Several settings are confirmed at once, so their p-values are corrected for one another (Holm). A winner is one whose interval and
//! whose corrected p-value both say that it is faster, by more than the margin.

use inodyne_model::Nanos;
use inodyne_model::comparison::Verdict;
use inodyne_model::random::Random;
use inodyne_model::tuning::Measured;

use crate::statistics::{bootstrap, holm, paired, summary, verdict};

/// The random numbers of every interval start with this seed, so that it does not depend on what else was tried.
const SEED: u64 = 0x7475_6e65;

/// Pairs of times: of the base, and with a setting.
pub type Times = Vec<(Nanos, Nanos)>;

/// What pairs say before anything is confirmed. None without pairs.
pub fn screened(times: &Times) -> Option<Measured> {
    let pairs = floats(times);
    measured(&pairs, paired::p_value(&pairs))
}

/// What fresh pairs say of each setting, and whether it helps.
pub fn confirmed(all: &[Times], margin: f64) -> Vec<Option<(Measured, bool)>> {
    let pairs: Vec<Vec<bootstrap::Pair>> = all.iter().map(floats).collect();
    let corrected = holm::corrected(&pairs.iter().map(|pairs| paired::p_value(pairs)).collect::<Vec<_>>());
    let one = |(pairs, p): (&Vec<bootstrap::Pair>, f64)| {
        let measured = measured(pairs, p)?;
        let interval = bootstrap::median_ratio(pairs, &mut Random::seeded(SEED));
        let is_faster = verdict::judge(pairs.len(), interval, p, margin) == Verdict::Faster;
        Some((measured, is_faster && measured.ratio < 1.0 - margin))
    };
    pairs.iter().zip(corrected).map(one).collect()
}

/// How many pairs can decide so many settings at once.
pub fn pairs_needed(settings: usize) -> usize {
    verdict::pairs_needed(settings)
}

fn floats(times: &Times) -> Vec<bootstrap::Pair> {
    times.iter().map(|(a, b)| (a.0.max(1) as f64, b.0 as f64)).collect()
}

fn measured(pairs: &[bootstrap::Pair], p: f64) -> Option<Measured> {
    let median =
        |of: fn(&bootstrap::Pair) -> f64| Nanos::rounded(summary::median_of(&Vec::from_iter(pairs.iter().map(of))));
    let ratios: Vec<f64> = pairs.iter().map(|(a, b)| b / a).collect();
    let interval = bootstrap::median_ratio(pairs, &mut Random::seeded(SEED));
    let shown = interval.filter(|_| pairs.len() >= inodyne_model::comparison::LEAST_PAIRS);
    (!pairs.is_empty()).then(|| Measured {
        pairs: pairs.len(),
        base_ns: median(|pair| pair.0),
        wall_ns: median(|pair| pair.1),
        ratio: summary::median_of(&ratios),
        ci_low: shown.map(|interval| interval.low),
        ci_high: shown.map(|interval| interval.high),
        p,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(pairs: u64, ratio: f64) -> Times {
        (0..pairs).map(|n| (Nanos(1_000_000 + n), Nanos((1_000_000.0 * ratio) as u64 + 2 * n))).collect()
    }

    #[test]
    fn a_gain_above_the_margin_helps_and_less_does_not() {
        let helps = |ratio: f64, pairs| {
            let all = [times(pairs, ratio), times(pairs, 1.0), times(pairs, 1.3)];
            confirmed(&all, 0.02)[0].unwrap().1
        };
        assert!(helps(0.8, 10) && !helps(0.99, 10) && !helps(1.2, 10));
        // Six pairs can decide one thing, and not three at once.
        assert!(!helps(0.8, 6) && pairs_needed(3) == 7);
    }

    #[test]
    fn few_pairs_have_no_interval() {
        assert_eq!(screened(&Times::new()), None);
        let of_two = screened(&times(2, 0.5)).unwrap();
        assert_eq!((of_two.pairs, of_two.interval(), of_two.ratio < 0.51), (2, None, true));
    }
}
