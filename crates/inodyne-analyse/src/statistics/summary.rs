//! Where values lie and how they spread.

use inodyne_model::Nanos;
use inodyne_model::histogram::Bucket;
use inodyne_model::statistics::Spread;

/// The most buckets of a histogram of runs.
const MOST_BUCKETS: usize = 20;

/// The arithmetic mean. Zero for no values.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The median; of an even number, the mean of the two middle ones. Zero for no values. The order of the values is lost.
pub fn median(values: &mut [f64]) -> f64 {
    let (half, odd) = (values.len() / 2, values.len() % 2 == 1);
    if values.is_empty() {
        return 0.0;
    }
    let (below, &mut upper, _) = values.select_nth_unstable_by(half, f64::total_cmp);
    if odd {
        return upper;
    }
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (lower + upper) / 2.0
}

/// The median of values whose order is to be kept.
pub fn median_of(values: &[f64]) -> f64 {
    median(&mut values.to_vec())
}

/// The standard deviation estimated from a sample (with n - 1). Zero for fewer than two values.
pub fn sd(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

/// A quantile of values in rising order, between neighbours in proportion: type 7 of Hyndman and Fan, "Sample
/// quantiles in statistical packages", The American Statistician 50 (1996), the default of R and NumPy.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let at = q.clamp(0.0, 1.0) * last as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    // Equal neighbours may be infinite, and then have no difference.
    if low == high { low } else { low + (high - low) * at.fract() }
}

/// The 95% interval of the median by the ranks of the values, which holds whatever their distribution (Conover, "Practical
/// Nonparametric Statistics", 3rd ed., 3.2). None for fewer than six values.
pub fn median_interval(times: &[Nanos]) -> Option<(Nanos, Nanos)> {
    let n = times.len();
    // The largest rank whose value lies above the median in at most 2.5% of all samples: binomial, with the normal
    // distribution in its place where its smallest terms are no longer numbers.
    let rank = if n > 1_000 {
        (n as f64 / 2.0 - 0.98 * (n as f64).sqrt()).floor() as usize
    } else {
        let (mut rank, mut below, mut term) = (0, 0.0, 0.5f64.powi(n as i32));
        while below + term <= 0.025 {
            below += term;
            rank += 1;
            term *= (n - rank + 1) as f64 / rank as f64;
        }
        rank
    };
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    Some((*sorted.get(rank.checked_sub(1)?)?, *sorted.get(n - rank)?))
}

/// The spread of times.
pub fn spread(times: &[Nanos]) -> Spread {
    let values: Vec<f64> = times.iter().map(|ns| ns.0 as f64).collect();
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let (min_ns, max_ns) = (sorted.first().copied().unwrap_or_default(), sorted.last().copied().unwrap_or_default());
    Spread {
        n: times.len(),
        min_ns,
        mean_ns: Nanos(mean(&values).round() as u64),
        median_ns: inodyne_model::run::median(&sorted).unwrap_or_default(),
        max_ns,
        sd_ns: Nanos(sd(&values).round() as u64),
        histogram: histogram(&sorted),
    }
}

/// Buckets of equal width, log₂ n + 1 of them (Sturges, "The choice of a class interval", JASA 21 (1926)).
fn histogram(sorted: &[Nanos]) -> Vec<Bucket> {
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else { return Vec::new() };
    let span = last.0 - first.0;
    let wanted = (sorted.len().ilog2() as usize + 1).min(MOST_BUCKETS) as u64;
    // The last value lies inside of the last bucket: its upper bound is excluded.
    let width = (span / wanted).saturating_add(1);
    let mut buckets: Vec<Bucket> = (0..=span / width)
        .map(|n| {
            let low_ns = first.0 + n * width;
            Bucket { low_ns, high_ns: low_ns.saturating_add(width), count: 0 }
        })
        .collect();
    for ns in sorted {
        buckets[((ns.0 - first.0) / width) as usize].count += 1;
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As sums of binomial coefficients give them, in whole numbers.
    #[test]
    fn ranks_of_the_interval_of_a_median() {
        let ranks = |n: u64| {
            let times: Vec<Nanos> = (1..=n).rev().map(Nanos).collect();
            median_interval(&times).map(|(low, high)| (low.0, high.0))
        };
        let expected = [None, Some((1, 6)), Some((2, 9)), Some((6, 15)), Some((18, 33)), Some((40, 61))];
        assert_eq!([5, 6, 10, 20, 50, 100].map(ranks), expected);
        assert_eq!(ranks(1_001), Some((469, 533)));
    }

    proptest! {
        #[test]
        fn a_histogram_holds_every_value(mut values in prop::collection::vec(any::<u64>(), 0..200)) {
            let times: Vec<Nanos> = values.iter().copied().map(Nanos).collect();
            let spread = spread(&times);
            prop_assert_eq!(spread.histogram.iter().map(|b| b.count).sum::<u64>(), values.len() as u64);
            prop_assert!(spread.histogram.len() <= MOST_BUCKETS);
            values.sort_unstable();
            let sorted: Vec<f64> = values.iter().map(|x| *x as f64).collect();
            let (median, quantile) = (median_of(&sorted), quantile(&sorted, 0.5));
            prop_assert!((median - quantile).abs() <= median * f64::EPSILON, "{} {}", median, quantile);
        }
    }
}
