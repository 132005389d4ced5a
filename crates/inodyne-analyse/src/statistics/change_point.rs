//! Is there a run from which everything is slower?
//!
//! Pettitt, "A non-parametric approach to the change-point problem", Applied Statistics 28 (1979): the cut for which
//! the ranks before and after it differ most, with his approximate p-value 2 exp(-6 K² / (n³ + n²)). It finds one step,
//! and by ranks, so a single slow run is none. A steady trend makes ranks differ as well: [`steps_better_than`] tells which of
//! the two describes the values better.

use super::trend::Line;
use super::{probability, ranks};
use crate::statistics::summary::median_of;

/// A step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// The first place after it.
    pub at: usize,
    /// Median before.
    pub before: f64,
    /// Median from there on.
    pub after: f64,
    /// How likely such a step is if the order means nothing.
    pub p: f64,
}

/// The most likely step. None for fewer than four values.
pub fn change_point(values: &[f64]) -> Option<Step> {
    if values.len() < 4 {
        return None;
    }
    let n = values.len() as f64;
    let (ranks, _) = ranks(values);
    let (mut sum, mut largest, mut at) = (0.0, 0.0f64, 1);
    for (place, rank) in ranks.iter().enumerate().take(values.len() - 1) {
        sum += rank;
        let count = (place + 1) as f64;
        let u = (2.0 * sum - count * (n + 1.0)).abs();
        if u > largest {
            (largest, at) = (u, place + 1);
        }
    }
    let p = probability(2.0 * (-6.0 * largest * largest / (n * n * n + n * n)).exp());
    let (before, after) = values.split_at(at);
    Some(Step { at, before: median_of(before), after: median_of(after), p })
}

/// Whether two levels leave less of the values unexplained than a line does (sum of absolute distances).
pub fn steps_better_than(step: &Step, line: &Line, values: &[f64]) -> bool {
    let far = |height: &dyn Fn(usize) -> f64| -> f64 {
        values.iter().enumerate().map(|(place, value)| (value - height(place)).abs()).sum()
    };
    far(&|place| if place < step.at { step.before } else { step.after }) < far(&|place| line.at(place))
}
