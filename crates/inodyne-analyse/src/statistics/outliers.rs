//! Which values lie far from the others? They are flagged, never dropped.
//!
//! Iglewicz and Hoaglin, "How to detect and handle outliers" (1993): the modified z-score 0.6745 (x - median) / MAD of the
//! logarithms, as noise of times is multiplicative. Where more than half of the values are alike, the MAD is zero, and the
//! mean deviation takes its place: (x - median) / (1.2533 mean deviation), as they advise.
//!
//! The score beyond which a value is far depends on how many there are. Their limit of 3.5 marks something in every sixth
//! sample of 6 normal values, and in every tenth of 100: of many the farthest is far by chance, and the MAD of a few
//! is often small by chance. So the limit is the z-score that the farthest of n normal values exceeds in one of twenty
//! samples, times 1.05 + 7 / n for the MAD: then 4 to 6% of normal samples of 6 to 100 have a far value (tests/trust.rs counts).

use super::normal_quantile;
use super::summary::{mean, median, median_of};

/// The fraction of samples without outliers in which something is marked all the same.
const LEVEL: f64 = 0.05;
/// Fewer values have no far ones.
const LEAST_VALUES: usize = 6;

/// The places of values far from the median, in order.
pub fn outliers(values: &[f64]) -> Vec<usize> {
    if values.len() < LEAST_VALUES {
        return Vec::new();
    }
    let positive = values.iter().all(|value| *value > 0.0);
    let values: Vec<f64> = values.iter().map(|value| if positive { value.ln() } else { *value }).collect();
    let middle = median_of(&values);
    let deviations: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    let scale = match median(&mut deviations.clone()) / 0.6745 {
        0.0 => mean(&deviations) * 1.253_314,
        mad => mad,
    };
    let n = values.len() as f64;
    let limit = normal_quantile(1.0 - LEVEL / (2.0 * n)) * (1.05 + 7.0 / n);
    let far = |(_, deviation): &(usize, &f64)| scale > 0.0 && **deviation / scale > limit;
    deviations.iter().enumerate().filter(far).map(|(place, _)| place).collect()
}
