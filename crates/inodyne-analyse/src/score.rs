//! The score of a prediction: pairs of runs, without the cure and with it, against what was predicted.
//!
//! The machine may be faster or slower than when the recording was made, so fractions are compared, not seconds: of the
//! time without the cure, this fraction was to be saved, and this fraction was.

use inodyne_model::Nanos;
use inodyne_model::comparison::LEAST_PAIRS;
use inodyne_model::finding::{Prediction, Proof};

use inodyne_model::random::Random;

use crate::statistics::{bootstrap, summary};

/// Every score starts with this seed, so that it is reproducible.
const SEED: u64 = 0x5c04e;

/// What these pairs, without the cure and with it, say about the prediction. None without pairs.
pub fn score(predicted: &Prediction, pairs: &[(Nanos, Nanos)], how: &str) -> Option<Proof> {
    let values: Vec<bootstrap::Pair> = pairs.iter().map(|(a, b)| ((a.0 as f64).max(1.0), b.0 as f64)).collect();
    let ratios: Vec<f64> = values.iter().map(|(a, b)| b / a).collect();
    if ratios.is_empty() {
        return None;
    }
    let ratio = summary::median_of(&ratios);
    let interval = bootstrap::median_ratio(&values, &mut Random::seeded(SEED)).filter(|_| pairs.len() >= LEAST_PAIRS);
    let median =
        |of: fn(&bootstrap::Pair) -> f64| Nanos(summary::median_of(&Vec::from_iter(values.iter().map(of))) as u64);
    Some(Proof {
        how: how.to_owned(),
        pairs: u32::try_from(pairs.len()).unwrap_or(u32::MAX),
        base_ns: median(|pair| pair.0),
        wall_ns: median(|pair| pair.1),
        ratio,
        ci_low: interval.map_or(ratio, |interval| interval.low),
        ci_high: interval.map_or(ratio, |interval| interval.high),
        within: predicted.allows(ratio),
    })
}

#[cfg(test)]
mod tests {
    use inodyne_model::finding::Score;

    use super::*;

    const PREDICTED: Prediction =
        Prediction { now_ns: Nanos(1_000), wall_ns: Nanos(400), low_ns: Nanos(300), high_ns: Nanos(500) };

    #[test]
    fn what_counts_is_the_part_saved_whatever_the_speed_of_the_machine() {
        for speed in [1, 7, 1_000] {
            let pairs = [(1_000 * speed, 450 * speed), (1_100 * speed, 480 * speed)].map(|(a, b)| (Nanos(a), Nanos(b)));
            assert!(score(&PREDICTED, &pairs, "").unwrap().within);
        }
        assert!(!score(&PREDICTED, &[(Nanos(1_000), Nanos(600))], "").unwrap().within);
        assert!(!score(&PREDICTED, &[(Nanos(1_000), Nanos(200))], "").unwrap().within);
    }

    #[test]
    fn few_pairs_have_no_interval_and_refute_nothing() {
        let pair = |n: u64| (Nanos(1_000), Nanos(800 + n));
        let of = |count| score(&PREDICTED, &Vec::from_iter((0..count).map(pair)), "").unwrap();
        let (few, enough) = (of(5), of(6));
        assert_eq!((few.ci_low, few.ci_high), (few.ratio, few.ratio));
        assert!(enough.ci_low < enough.ratio && enough.ratio < enough.ci_high, "{enough:?}");
        assert_eq!([&few, &enough].map(|proof| proof.score(&PREDICTED)), [Score::TooFewPairs, Score::Otherwise]);
    }

    #[test]
    fn nothing_measured_is_no_score() {
        assert_eq!(score(&PREDICTED, &[], ""), None);
    }
}
