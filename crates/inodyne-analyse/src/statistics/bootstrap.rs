//! Intervals by resampling: the bias-corrected and accelerated bootstrap (BCa).
//!
//! Efron, "Better bootstrap confidence intervals", JASA 82 (1987); Efron and Tibshirani, "An introduction to the
//! bootstrap" (1993), chapter 14. Pairs are drawn, not values, so whatever a block did to both sides (a busy disk, a
//! clock that throttles) stays in both.
//!
//! ```text
//! interval = [G⁻¹(α₁), G⁻¹(α₂)]       G: distribution of the statistic over the resamples
//! α = Φ(z₀ + (z₀ + z) / (1 - a (z₀ + z)))        z = Φ⁻¹(0.025), Φ⁻¹(0.975)
//! z₀ = Φ⁻¹(fraction of the resamples below the statistic, equal ones counted half)
//! a  = Σ d³ / (6 (Σ d²)^1.5)          d: mean of the jackknife values less each of them
//! ```
//!
//! With few pairs an interval of medians is coarse, and too narrow below about six; [`super::verdict`] gives no
//! verdict there.

use inodyne_model::comparison::Interval;

use super::summary::{mean, median, quantile};
use super::{normal_below, normal_quantile};
use inodyne_model::random::Random;

/// Efron and Tibshirani ask for at least 1,000 resamples for a BCa interval.
pub const RESAMPLES: usize = 4_000;
const CONFIDENCE: f64 = 0.95;

/// A pair: the base, and what is compared with it.
pub type Pair = (f64, f64);

/// The median of the pairs' ratios `b / a`: what the verdicts are about. What slows a whole block cancels out, so it
/// also holds where every block is slower than the one before. None for fewer than two pairs, or where so many bases
/// are zero that the median is infinite; where some are, the upper end may be.
pub fn median_ratio(pairs: &[Pair], random: &mut Random) -> Option<Interval> {
    let ratios: Vec<f64> = pairs.iter().map(|(a, b)| quotient(*b, *a)).collect();
    bca(&ratios, random, RESAMPLES, median)
}

/// Where the median of the ratios is infinite, and every pair that differs says that `b` is more: an interval that lies above
/// everything, since so does every ratio that is known.
pub fn above_nothing(pairs: &[Pair]) -> Option<Interval> {
    let is_above = !pairs.is_empty() && pairs.iter().all(|(a, b)| b >= a);
    let is_infinite = || median(&mut Vec::from_iter(pairs.iter().map(|(a, b)| quotient(*b, *a)))) == f64::INFINITY;
    let infinite = Interval { value: f64::INFINITY, low: f64::INFINITY, high: f64::INFINITY };
    (is_above && is_infinite()).then_some(infinite)
}

/// A ratio; 1 for two that are equal, even where both are zero.
fn quotient(b: f64, a: f64) -> f64 {
    if a == b { 1.0 } else { b / a }
}

/// `median(b) / median(a)`. None for fewer than two pairs, or where the base is zero; where it is zero in resamples, the upper end
/// may be infinite.
pub fn ratio_of_medians(pairs: &[Pair], random: &mut Random) -> Option<Interval> {
    ratio(pairs, random, median)
}

/// `mean(b) / mean(a)`, under the same conditions.
pub fn ratio_of_means(pairs: &[Pair], random: &mut Random) -> Option<Interval> {
    ratio(pairs, random, |values| mean(values))
}

/// `mean(b - a)`. None for fewer than two pairs.
pub fn mean_difference(pairs: &[Pair], random: &mut Random) -> Option<Interval> {
    let differences: Vec<f64> = pairs.iter().map(|(a, b)| b - a).collect();
    bca(&differences, random, RESAMPLES, |values| mean(values))
}

fn ratio(pairs: &[Pair], random: &mut Random, middle: fn(&mut [f64]) -> f64) -> Option<Interval> {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    bca(pairs, random, RESAMPLES, |pairs| {
        a.clear();
        b.clear();
        a.extend(pairs.iter().map(|pair| pair.0));
        b.extend(pairs.iter().map(|pair| pair.1));
        quotient(middle(&mut b), middle(&mut a))
    })
}

/// The BCa interval of a statistic. None for fewer than two values, or where the statistic is not finite. Resamples for which it
/// is infinite count as such, so an end of the interval may be infinite.
pub fn bca<T: Copy>(
    sample: &[T],
    random: &mut Random,
    resamples: usize,
    mut statistic: impl FnMut(&mut [T]) -> f64,
) -> Option<Interval> {
    if sample.len() < 2 {
        return None;
    }
    let mut drawn = sample.to_vec();
    let value = statistic(&mut drawn);
    if !value.is_finite() {
        return None;
    }
    let mut replicas = Vec::with_capacity(resamples);
    for _ in 0..resamples {
        for slot in &mut drawn {
            *slot = sample[random.below(sample.len())];
        }
        replicas.push(statistic(&mut drawn));
    }
    replicas.sort_by(f64::total_cmp);
    let acceleration = acceleration(sample, statistic);
    let bias = bias(&replicas, value);
    let end = |confidence: f64| {
        let z = bias + normal_quantile(confidence);
        let level = normal_below(bias + z / (1.0 - acceleration * z));
        quantile(&replicas, level)
    };
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let (low, high) = (end(tail), end(1.0 - tail));
    // Where nearly all resamples are alike, rounding must not invert the interval or move it past the value.
    Some(Interval { value, low: low.min(high).min(value), high: high.max(low).max(value) })
}

/// How far the middle of the resamples lies from the value, in standard deviations.
fn bias(replicas: &[f64], value: f64) -> f64 {
    let below = replicas.partition_point(|replica| *replica < value);
    let not_above = replicas.partition_point(|replica| *replica <= value);
    let all = replicas.len() as f64;
    let part = (below + not_above) as f64 / (2.0 * all);
    normal_quantile(part.clamp(0.5 / all, 1.0 - 0.5 / all))
}

/// How fast the spread changes with the value, by leaving out one at a time.
fn acceleration<T: Copy>(sample: &[T], mut statistic: impl FnMut(&mut [T]) -> f64) -> f64 {
    let mut without = Vec::with_capacity(sample.len());
    let values: Vec<f64> = (0..sample.len())
        .map(|out| {
            without.clear();
            without.extend(sample.iter().enumerate().filter(|(at, _)| *at != out).map(|(_, value)| *value));
            statistic(&mut without)
        })
        .collect();
    let middle = mean(&values);
    let (cubes, squares) = values.iter().fold((0.0, 0.0), |(cubes, squares), value| {
        let d = middle - value;
        (cubes + d * d * d, squares + d * d)
    });
    let a = cubes / (6.0 * squares.powf(1.5));
    if a.is_finite() { a } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_varies_has_an_interval_of_no_width() {
        let pairs = [(2.0, 3.0); 8];
        let estimate = ratio_of_medians(&pairs, &mut Random::seeded(1)).unwrap();
        assert_eq!((estimate.low, estimate.value, estimate.high), (1.5, 1.5, 1.5));
    }

    #[test]
    fn nothing_is_said_about_one_pair_or_a_base_of_zero() {
        assert_eq!(ratio_of_medians(&[(1.0, 2.0)], &mut Random::seeded(1)), None);
        assert_eq!(ratio_of_medians(&[(0.0, 2.0); 5], &mut Random::seeded(1)), None);
        assert_eq!(mean_difference(&[(0.0, 2.0); 5], &mut Random::seeded(1)).map(|e| e.value), Some(2.0));
    }

    #[test]
    fn a_base_of_zero_in_one_pair_leaves_the_interval_open_at_most() {
        let pairs = |zeros: usize| Vec::from_iter((0..10).map(|n| (if n < zeros { 0.0 } else { 2.0 }, 3.0)));
        let interval = |zeros| median_ratio(&pairs(zeros), &mut Random::seeded(1)).unwrap();
        assert_eq!((interval(1).low, interval(1).value, interval(1).high), (1.5, 1.5, 1.5));
        assert_eq!((interval(4).low, interval(4).value, interval(4).high), (1.5, 1.5, f64::INFINITY));
        assert_eq!(median_ratio(&pairs(6), &mut Random::seeded(1)), None);
        assert!(above_nothing(&pairs(6)).is_some() && above_nothing(&pairs(4)).is_none());
        // Medians of zero on both sides are equal.
        let of_few = [(0.0, 0.0), (0.0, 0.0), (2.0, 2.0), (2.0, 3.0), (2.0, 3.0)];
        let medians = ratio_of_medians(&of_few, &mut Random::seeded(1)).unwrap();
        assert!(medians.value == 1.0 && !medians.low.is_nan() && !medians.high.is_nan(), "{medians:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let pairs: Vec<Pair> = (1..30).map(|n| (f64::from(n % 7 + 20), f64::from(n % 5 + 20))).collect();
        let of = |seed| ratio_of_medians(&pairs, &mut Random::seeded(seed));
        assert_eq!(of(3), of(3));
    }
}
