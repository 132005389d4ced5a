//! Many comparisons at once: of a hundred that mean nothing, five would look like something.
//!
//! Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979): the
//! chance that any is called that is nothing stays below the level, whatever the comparisons have to do with each
//! other.

/// The p-values, corrected for one another: the k-th smallest of m times m - k + 1, never below a smaller one's, at
/// most 1.
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
