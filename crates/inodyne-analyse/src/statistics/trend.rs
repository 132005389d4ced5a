//! Does every run take longer than the one before?
//!
//! The slope is the median of the slopes between all pairs of runs (Theil 1950; Sen, "Estimates of the regression
//! coefficient based on Kendall's tau", JASA 63 (1968)); one slow run does not bend it. Whether there is a trend at all
//! is Mann's test (Econometrica 13 (1945)) with Kendall's distribution ("Rank correlation methods", 1948): of all pairs
//! of runs, how many rise?

use super::summary::median;
use super::{normal_below, probability};

/// Up to this many values the distribution is counted exactly (as SciPy does), unless some are equal.
const MOST_EXACT: usize = 33;
/// Of more values, this many are compared with each other, evenly spaced: time and memory grow with the square.
const MOST_COMPARED: usize = 2_000;

/// A line through values in their order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// The rise from one value to the next.
    pub slope: f64,
    /// Its height at the first value: median of the values less the slope times the median place.
    pub start: f64,
    /// How likely such a rise or fall is if the order means nothing, two-sided.
    pub p: f64,
}

impl Line {
    /// Its height at a place.
    pub fn at(&self, place: usize) -> f64 {
        self.start + self.slope * place as f64
    }
}

/// The line through values. None for fewer than three.
pub fn trend(values: &[f64]) -> Option<Line> {
    if values.len() < 3 {
        return None;
    }
    let (places, compared): (Vec<usize>, Vec<f64>) = compared(values).unzip();
    let mut slopes = Vec::with_capacity(compared.len() * (compared.len() - 1) / 2);
    let (mut rises, mut falls) = (0usize, 0usize);
    for (number, first) in compared.iter().enumerate() {
        for (later, second) in compared.iter().enumerate().skip(number + 1) {
            slopes.push((second - first) / (places[later] - places[number]) as f64);
            rises += usize::from(second > first);
            falls += usize::from(second < first);
        }
    }
    let pairs = slopes.len();
    let slope = median(&mut slopes);
    let start = median(&mut values.to_vec()) - slope * (values.len() - 1) as f64 / 2.0;
    let exact = values.len() <= MOST_EXACT && rises + falls == pairs;
    let balance = rises as f64 - falls as f64;
    let p = if exact { exactly(values.len(), rises.min(falls)) } else { normally(&compared, balance) };
    Some(Line { slope, start, p })
}

/// The values that are compared, with their places.
fn compared(values: &[f64]) -> impl Iterator<Item = (usize, f64)> {
    let count = values.len().min(MOST_COMPARED);
    let place = move |number: usize| number * (values.len() - 1) / (count - 1).max(1);
    (0..count).map(place).map(|place| (place, values[place]))
}

/// Of all orders of n different values, twice the fraction with at most `fewer` falling pairs (or rising ones).
fn exactly(n: usize, fewer: usize) -> f64 {
    // chance[k]: that k pairs fall among the first values. The next value is equally likely to fall below any number of them.
    let mut chance = vec![0.0; fewer + 1];
    chance[0] = 1.0;
    for size in 2..=n {
        let before = chance.clone();
        for (falls, slot) in chance.iter_mut().enumerate() {
            *slot = before[(falls + 1).saturating_sub(size)..=falls].iter().sum::<f64>() / size as f64;
        }
    }
    probability(2.0 * chance.iter().sum::<f64>())
}

fn normally(values: &[f64], balance: f64) -> f64 {
    let n = values.len() as f64;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let ties: f64 =
        sorted.chunk_by(|a, b| a == b).map(|group| group.len() as f64).map(|t| t * (t - 1.0) * (2.0 * t + 5.0)).sum();
    let variance = (n * (n - 1.0) * (2.0 * n + 5.0) - ties) / 18.0;
    if variance <= 0.0 { 1.0 } else { probability(2.0 * normal_below(-(balance / variance.sqrt()).abs())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_values_some_are_compared_from_the_first_to_the_last() {
        let values: Vec<f64> = (0..50_001).map(|place| 5.0 + 2.0 * f64::from(place)).collect();
        let places: Vec<usize> = compared(&values).map(|(place, _)| place).collect();
        assert_eq!((places.len(), places[0], places[MOST_COMPARED - 1]), (MOST_COMPARED, 0, 50_000));
        assert_eq!(compared(&values[..3]).map(|(place, _)| place).collect::<Vec<_>>(), [0, 1, 2]);
        let line = trend(&values).expect("enough values");
        assert!((line.slope - 2.0).abs() < 1e-9 && (line.start - 5.0).abs() < 1e-6 && line.p < 1e-9, "{line:?}");
    }
}
