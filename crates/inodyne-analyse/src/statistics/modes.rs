//! Do the values fall into two groups, as where a cache sometimes holds and sometimes does not?
//!
//! The values' logarithms are cut where the sum of squares within the two parts is least (the exact two-means in one
//! dimension; Fisher, "On grouping for maximum homogeneity", JASA 53 (1958)). The distance of the parts' means, in
//! standard deviations within them, is Ashman's D (Ashman, Bird and Zepf, Astronomical Journal 108 (1994)) with one
//! pooled deviation. Any values can be cut in two: halves of normal ones have a distance of 2.6, of uniform ones 3.5.
//! From `LEAST_SEPARATION` on, with no part so small that it may as well be outliers, and a gap between the parts
//! that is wide compared with those within them, there are two groups; fewer than 1 in 100 samples from a normal
//! distribution look like that.

use super::summary::{mean, median_of};

/// Fewer values show no groups.
const LEAST_VALUES: usize = 15;
/// The least fraction of the values that is a group.
const LEAST_PART: f64 = 0.15;
/// The least distance of the groups.
const LEAST_SEPARATION: f64 = 5.0;
/// How much wider than the widest gap within the groups the one between them is, at least.
const LEAST_GAP: f64 = 1.5;

/// Two groups.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Groups {
    /// Median of the lower one.
    pub low: f64,
    /// Median of the upper one.
    pub high: f64,
    /// Values in the upper one.
    pub high_count: usize,
    /// Distance of their means in standard deviations within them.
    pub separation: f64,
}

/// The two groups of values above zero, where there are two.
pub fn groups(values: &[f64]) -> Option<Groups> {
    let n = values.len();
    if n < LEAST_VALUES || values.iter().any(|value| *value <= 0.0) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let logs: Vec<f64> = sorted.iter().map(|value| value.ln()).collect();
    let least = ((n as f64 * LEAST_PART).ceil() as usize).max(4);
    let squares = |part: &[f64]| {
        let middle = mean(part);
        part.iter().map(|x| (x - middle) * (x - middle)).sum::<f64>()
    };
    let within = |cut: &usize| squares(&logs[..*cut]) + squares(&logs[*cut..]);
    let cut = (1..n).min_by(|a, b| within(a).total_cmp(&within(b)))?;
    if cut < least || n - cut < least {
        return None;
    }
    let (low, high) = logs.split_at(cut);
    let deviation = (within(&cut) / (n - 2) as f64).sqrt();
    let separation = (mean(high) - mean(low)) / deviation;
    let widest = |part: &[f64]| part.windows(2).map(|two| two[1] - two[0]).fold(0.0, f64::max);
    let gap = high[0] - low[low.len() - 1];
    let apart = separation >= LEAST_SEPARATION && gap >= LEAST_GAP * widest(low).max(widest(high));
    // Values that never vary within their groups have no deviation to measure by.
    (apart && separation.is_finite()).then(|| Groups {
        low: median_of(&sorted[..cut]),
        high: median_of(&sorted[cut..]),
        high_count: n - cut,
        separation,
    })
}
