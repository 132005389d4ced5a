//! The log-linear histogram of call durations, the same on both sides of the kernel boundary.
//!
//! Each power of two from 2^5 ns to 2^37 ns (32 ns to 137 s) is cut into eight equal buckets, so a bucket is at most
//! an eighth of its lower bound wide and its middle is within 6.25% of every value in it. Below 32 ns the buckets are
//! 4 ns wide; beyond 137 s everything falls into the last one (the exact maximum is kept separately).
//!
//! ```text
//! value ns   0  4  8 ... 28 | 32 36 40 ... 60 | 64 72 ... 120 | 128 144 ...
//! bucket     0  1  2 ...  7 |  8  9 10 ... 15 | 16 17 ...  23 |  24  25 ...
//! ```
//!
//! `bucket_of` in the BPF C (`inodyne-trace/src/bpf/histogram.h`) computes the same index; a test compares the two.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// Number of buckets. Also the length of the array in the BPF map.
pub const BUCKETS: usize = 264;
const SUB_BITS: u32 = 3;
const FIRST_OCTAVE: u32 = 5;

/// The bucket that holds a duration. Range: `0..BUCKETS`.
pub fn bucket_of(ns: u64) -> usize {
    if ns < 1 << FIRST_OCTAVE {
        return (ns >> (FIRST_OCTAVE - SUB_BITS)) as usize;
    }
    let octave = 63 - ns.leading_zeros();
    let sub = (ns >> (octave - SUB_BITS)) & ((1 << SUB_BITS) - 1);
    let index = ((octave - FIRST_OCTAVE + 1) << SUB_BITS) as usize + sub as usize;
    index.min(BUCKETS - 1)
}

/// The bounds of a bucket in nanoseconds: lower included, upper excluded.
pub fn bounds_of(bucket: usize) -> (u64, u64) {
    let (octave, sub) = ((bucket >> SUB_BITS) as u32, (bucket & ((1 << SUB_BITS) - 1)) as u64);
    if octave == 0 {
        let width = 1 << (FIRST_OCTAVE - SUB_BITS);
        return (sub * width, (sub + 1) * width);
    }
    let exponent = octave + FIRST_OCTAVE - 1;
    let width = 1u64 << (exponent - SUB_BITS);
    let low = (1u64 << exponent) + sub * width;
    (low, low + width)
}

/// One bucket that is not empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// Lower bound in nanoseconds, included.
    pub low_ns: u64,
    /// Upper bound in nanoseconds, excluded.
    pub high_ns: u64,
    /// How many durations fell in between.
    pub count: u64,
}

/// A histogram of durations; only the buckets in use, in ascending order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Histogram {
    buckets: Vec<Bucket>,
}

impl Histogram {
    /// From one count per bucket, as the kernel side keeps them.
    pub fn from_counts(counts: &[u64]) -> Histogram {
        let used = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let buckets = used
            .map(|(bucket, &count)| {
                let (low_ns, high_ns) = bounds_of(bucket);
                Bucket { low_ns, high_ns, count }
            })
            .collect();
        Histogram { buckets }
    }

    /// From one count for each power of two: the first is for 0 and 1 ns, the last also for everything longer. The middle of such a bucket is
    /// within 50% of every value in it.
    pub fn from_octaves(counts: &[u32]) -> Histogram {
        let used = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let bucket = |(octave, count): (usize, &u32)| Bucket {
            low_ns: if octave == 0 { 0 } else { 1 << octave },
            high_ns: 2 << octave,
            count: u64::from(*count),
        };
        Histogram { buckets: used.map(bucket).collect() }
    }

    /// The buckets in use, in ascending order.
    pub fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// How many durations were recorded.
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, b| sum.saturating_add(b.count))
    }

    /// The standard deviation (with n - 1) of durations with this mean, taking each as the middle of its bucket but none
    /// above `max`. Middles are within 6.25% of the true values from 32 ns to 137 s. Zero for fewer than two.
    pub fn sd_ns(&self, mean: Nanos, max: Nanos) -> f64 {
        let count = self.count() as f64;
        let squares: f64 = self
            .buckets
            .iter()
            .map(|bucket| {
                let middle = bucket.low_ns.midpoint(bucket.high_ns).min(max.0.max(bucket.low_ns));
                bucket.count as f64 * (middle as f64 - mean.0 as f64).powi(2)
            })
            .sum();
        if count < 2.0 { 0.0 } else { (squares / (count - 1.0)).sqrt() }
    }

    /// Adds another histogram to this one.
    pub fn merge(&mut self, other: &Histogram) {
        for bucket in &other.buckets {
            match self.buckets.binary_search_by_key(&bucket.low_ns, |b| b.low_ns) {
                Ok(at) => self.buckets[at].count = self.buckets[at].count.saturating_add(bucket.count),
                Err(at) => self.buckets.insert(at, *bucket),
            }
        }
    }

    /// The duration below which `quantile` (0.0 to 1.0) of all lie: the middle of the bucket that holds it, clamped
    /// to the exact `min` and `max`. Within 6.25% of the true value from 32 ns to 137 s. Zero where nothing was recorded.
    pub fn quantile(&self, quantile: f64, min: Nanos, max: Nanos) -> Nanos {
        let rank = (quantile * self.count() as f64).ceil().max(1.0) as u64;
        let mut seen = 0u64;
        for bucket in &self.buckets {
            seen = seen.saturating_add(bucket.count);
            if seen >= rank {
                return Nanos(bucket.low_ns.midpoint(bucket.high_ns).max(min.0).min(max.0));
            }
        }
        Nanos::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_duration_lies_in_its_bucket(ns in 0u64..1 << 37) {
            let (low, high) = bounds_of(bucket_of(ns));
            prop_assert!(low <= ns && ns < high);
        }

        #[test]
        fn quantiles_are_within_ten_percent(mut values in prop::collection::vec(32u64..10_000_000_000, 1..400)) {
            let mut counts = [0; BUCKETS];
            for v in &values { counts[bucket_of(*v)] += 1; }
            let histogram = Histogram::from_counts(&counts);
            values.sort_unstable();
            let (min, max) = (Nanos(values[0]), Nanos(values[values.len() - 1]));
            for q in [0.5, 0.9, 0.99] {
                let exact = values[((q * values.len() as f64).ceil() as usize).max(1) - 1] as f64;
                let got = histogram.quantile(q, min, max).0 as f64;
                prop_assert!((got / exact - 1.0).abs() <= 0.10, "q{} exact {} got {}", q, exact, got);
            }
        }

        #[test]
        fn the_deviation_is_close(values in prop::collection::vec(32u64..10_000_000_000, 2..400)) {
            let mut counts = [0; BUCKETS];
            for v in &values { counts[bucket_of(*v)] += 1; }
            let count = values.len() as f64;
            let mean = values.iter().map(|v| *v as f64).sum::<f64>() / count;
            let exact = (values.iter().map(|v| (*v as f64 - mean).powi(2)).sum::<f64>() / (count - 1.0)).sqrt();
            let largest = values.iter().copied().max().unwrap_or_default();
            let got = Histogram::from_counts(&counts).sd_ns(Nanos(mean as u64), Nanos(largest));
            // Every value is off by at most 6.25% of itself, so the root of their squares is too, apart from one degree of freedom.
            let off = 0.0625 * (values.iter().map(|v| (*v as f64).powi(2)).sum::<f64>() / (count - 1.0)).sqrt() + 2.0;
            prop_assert!((got - exact).abs() <= off, "exact {} got {}", exact, got);
        }

        #[test]
        fn merging_adds_counts(a in prop::collection::vec(0u64..1 << 30, 0..50), b in prop::collection::vec(0u64..1 << 30, 0..50)) {
            let of = |values: &[u64]| {
                let mut counts = [0; BUCKETS];
                for v in values { counts[bucket_of(*v)] += 1; }
                Histogram::from_counts(&counts)
            };
            let mut merged = of(&a);
            merged.merge(&of(&b));
            let both: Vec<u64> = a.iter().chain(&b).copied().collect();
            prop_assert_eq!(merged, of(&both));
        }
    }

    #[test]
    fn the_last_bucket_takes_all_that_is_longer() {
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
        assert_eq!(bounds_of(BUCKETS - 1).1, 1 << 37);
    }
}
