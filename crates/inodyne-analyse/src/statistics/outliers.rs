//! Which values lie far from the others? They are flagged, never dropped.
//!
//! Iglewicz and Hoaglin, "How to detect and handle outliers" (1993): the modified z-score 0.6745 (x - median) / MAD,
//! beyond 3.5. Where more than half of the values are alike the MAD is zero, and the mean deviation takes its place
//! (x - median) / (1.2533 mean deviation), as they advise.

use super::summary::{mean, median, median_of};

const LIMIT: f64 = 3.5;
/// Fewer values have no far ones.
const LEAST_VALUES: usize = 5;

/// The places of values far from the median, in order.
pub fn outliers(values: &[f64]) -> Vec<usize> {
    if values.len() < LEAST_VALUES {
        return Vec::new();
    }
    let middle = median_of(values);
    let deviations: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    let scale = match median(&mut deviations.clone()) / 0.6745 {
        0.0 => mean(&deviations) * 1.253_314,
        mad => mad,
    };
    let far = |(_, deviation): &(usize, &f64)| scale > 0.0 && **deviation / scale > LIMIT;
    deviations.iter().enumerate().filter(far).map(|(place, _)| place).collect()
}
