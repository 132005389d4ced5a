//! Statistics of repeated measurements, each formula with its source.
//!
//! | module | what it answers |
//! |---|---|
//! | [`summary`] | where do values lie, how do they spread |
//! | [`bootstrap`] | between which bounds does a ratio of two things lie |
//! | [`paired`] | how likely are such pairs where there is no difference |
//! | [`holm`] | and where many things were compared at once |
//! | [`verdict`] | what that comes to, in a word |
//! | [`trend`] | does every run take longer than the one before |
//! | [`change_point`] | or is there a step |
//! | [`modes`] | do the runs fall into two groups |
//! | [`outliers`] | which runs lie far from the others |
//!
//! All of it is about times of runs on real machines: skewed to the right, with a few runs far out, drifting, a handful
//! to some hundreds of them. So medians, ranks and resampling come before means and normal distributions.
//! `scripts/make-statistics-fixtures` computes the same with SciPy; the tests compare.

pub mod bootstrap;
pub mod change_point;
pub mod holm;
pub mod modes;
pub mod outliers;
pub mod paired;
pub mod summary;
pub mod trend;
pub mod verdict;

/// Zero, one, or a probability in between, whatever rounding made of it.
fn probability(p: f64) -> f64 {
    p.clamp(0.0, 1.0)
}

/// The probability that a standard normal variable is at most `z`.
fn normal_below(z: f64) -> f64 {
    0.5 * statrs::function::erf::erfc(-z / std::f64::consts::SQRT_2)
}

/// The inverse of [`normal_below`].
fn normal_quantile(p: f64) -> f64 {
    -std::f64::consts::SQRT_2 * statrs::function::erf::erfc_inv(2.0 * p)
}

/// Ranks from 1, where equal values share the middle of theirs; and Σ(t³ - t) over groups of t equal values.
fn ranks(values: &[f64]) -> (Vec<f64>, f64) {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let (mut ties, mut before) = (0.0, 0.0);
    for group in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let size = group.len() as f64;
        for at in group {
            ranks[*at] = before + (size + 1.0) / 2.0;
        }
        before += size;
        ties += size * size * size - size;
    }
    (ranks, ties)
}
