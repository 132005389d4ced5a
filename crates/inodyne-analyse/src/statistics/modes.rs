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
    let cut = best_cut(&logs)?;
    if cut < least || n - cut < least {
        return None;
    }
    let (low, high) = logs.split_at(cut);
    let deviation = ((squares(low) + squares(high)) / (n - 2) as f64).sqrt();
    let separation = (mean(high) - mean(low)) / deviation;
    let widest = |part: &[f64]| part.windows(2).map(|two| two[1] - two[0]).fold(0.0, f64::max);
    let gap = high[0] - low[low.len() - 1];
    let apart = separation >= LEAST_SEPARATION && gap > 0.0 && gap >= LEAST_GAP * widest(low).max(widest(high));
    // Values that never vary within their groups have no deviation to measure by.
    (apart && separation.is_finite()).then(|| Groups {
        low: median_of(&sorted[..cut]),
        high: median_of(&sorted[cut..]),
        high_count: n - cut,
        separation,
    })
}

/// The sum of the squared distances from the mean.
fn squares(part: &[f64]) -> f64 {
    let middle = mean(part);
    part.iter().map(|x| (x - middle) * (x - middle)).sum()
}

/// Before which of these values, in rising order, they are cut: where the squares within both parts sum to the least. In one pass, since
/// there may be a hundred thousand of them.
fn best_cut(values: &[f64]) -> Option<usize> {
    let middle = mean(values);
    // Near zero, sums of squares lose few digits.
    let distances = || values.iter().map(|x| x - middle);
    let (all, of_all) = distances().fold((0.0, 0.0), |(sum, squares), d| (sum + d, squares + d * d));
    let (mut sum, mut best) = (0.0, None);
    for (cut, d) in (1..values.len()).zip(distances()) {
        sum += d;
        let (low, high) = (cut as f64, (values.len() - cut) as f64);
        let within = of_all - sum * sum / low - (all - sum) * (all - sum) / high;
        if best.is_none_or(|(least, _)| within < least) {
            best = Some((within, cut));
        }
    }
    best.map(|(_, cut)| cut)
}

#[cfg(test)]
mod tests {
    use inodyne_model::random::Random;

    use super::*;

    #[test]
    fn the_cut_is_where_the_parts_are_closest_within() {
        let mut random = Random::seeded(4);
        for count in 2..200 {
            let far = if count % 3 == 0 { 0.3 } else { 0.0 };
            let mut values: Vec<f64> =
                (0..count).map(|at| 18.0 + 0.05 * random.normal() + if at % 2 == 0 { far } else { 0.0 }).collect();
            values.sort_by(f64::total_cmp);
            let within = |cut: usize| squares(&values[..cut]) + squares(&values[cut..]);
            let least = (1..count).map(within).fold(f64::INFINITY, f64::min);
            let found = within(best_cut(&values).expect("two or more"));
            assert!(found <= least + 1e-9, "{count} values: {found} and {least}");
        }
        assert_eq!([best_cut(&[]), best_cut(&[1.0])], [None; 2]);
        assert_eq!(groups(&[250.0; 40]), None);
    }
}
