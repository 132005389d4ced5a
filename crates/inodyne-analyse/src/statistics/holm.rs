//! Many comparisons at once: of a hundred that mean nothing, five would look like something.
//!
//! Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979): the
//! chance that any that is nothing is called something stays below the level, however the comparisons depend on each
//! other.

/// The p-values, corrected for one another: the k-th smallest of m is multiplied by m - k + 1, never below a smaller
/// one's, at most 1.
pub fn corrected(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut corrected = vec![1.0; p_values.len()];
    let mut least = 0.0f64;
    for (step, at) in order.into_iter().enumerate() {
        let left = (p_values.len() - step) as f64;
        least = least.max((p_values[at] * left).min(1.0));
        corrected[at] = least;
    }
    corrected
}
