//! What an interval and a p-value come to, in a word.
//!
//! ```text
//!              1 - margin        1        1 + margin
//!                  |             |             |
//!                  |          [--+----]        |           no difference of that size or more
//!                  |             |      [------+-----]     slower, if the p-value agrees
//!   [-----------]  |             |             |           faster, if the p-value agrees
//!              [---+-------------+----]        |           not enough runs
//! ```
//!
//! An interval inside of the margin amounts to the two one-sided tests of equivalence, a little stricter than their usual 90%
//! interval (Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15 (1987)). It comes first: a difference
//! may be real but too small to matter. For a difference, both the interval of the medians and the test of the ranks
//! must say so, which keeps false alarms below the 5% that each alone allows.

use inodyne_model::comparison::{Interval, LEAST_PAIRS, Verdict};

/// What is rarer than this is not taken for chance.
pub const LEVEL: f64 = 0.05;
/// Enough for more comparisons than anybody makes.
const MOST_NEEDED: usize = 64;

/// How many pairs can decide all of this many comparisons that are corrected for one another (Holm), if every pair points the same
/// way: with fewer, even the smallest possible p-value gives no verdict, however large the differences.
pub fn pairs_needed(together: usize) -> usize {
    let least = |pairs: i32| together as f64 * 2.0f64.powi(1 - pairs);
    let mut pairs = LEAST_PAIRS;
    while pairs < MOST_NEEDED && least(pairs as i32) >= LEVEL {
        pairs += 1;
    }
    pairs
}

/// The verdict about `b / a`, whose interval may have no upper end: infinity.
pub fn judge(pairs: usize, ratio: Option<Interval>, p_corrected: f64, margin: f64) -> Verdict {
    let Some(Interval { low, high, .. }) = ratio.filter(|_| pairs >= LEAST_PAIRS) else {
        return Verdict::NotEnoughRuns;
    };
    let differs = p_corrected < LEVEL;
    if low > 1.0 - margin && high < 1.0 + margin {
        Verdict::NoDifference
    } else if differs && low > 1.0 {
        Verdict::Slower
    } else if differs && high < 1.0 {
        Verdict::Faster
    } else {
        Verdict::NotEnoughRuns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_means_what_it_says() {
        let of = |low, high| judge(30, Some(Interval { value: 1.0, low, high }), 0.001, 0.02);
        assert_eq!(of(0.99, 1.01), Verdict::NoDifference);
        assert_eq!(of(1.005, 1.015), Verdict::NoDifference);
        assert_eq!(of(1.01, 1.08), Verdict::Slower);
        assert_eq!(of(0.80, 0.95), Verdict::Faster);
        assert_eq!(of(0.97, 1.01), Verdict::NotEnoughRuns);
        let open = |low| of(low, f64::INFINITY);
        assert_eq!([1.01, 0.99].map(open), [Verdict::Slower, Verdict::NotEnoughRuns]);
    }

    #[test]
    fn as_many_pairs_are_needed_as_can_decide() {
        for (together, pairs) in [(0, 6), (1, 6), (2, 7), (3, 7), (4, 8), (20, 10), (1_000_000, 26)] {
            assert_eq!(pairs_needed(together), pairs, "{together}");
            // All pairs on one side, each comparison like the others: with one pair fewer, the same gives no verdict.
            let decides = |pairs: usize| {
                let one = vec![(1.0, 2.0); pairs];
                let p = crate::statistics::paired::p_value(&one);
                let all = crate::statistics::holm::corrected(&vec![p; together.min(100)]);
                all.iter().all(|p| *p < LEVEL)
            };
            assert!(together > 100 || decides(pairs) && (pairs == LEAST_PAIRS || !decides(pairs - 1)), "{together}");
        }
    }

    #[test]
    fn doubt_is_no_verdict() {
        let estimate = Some(Interval { value: 2.0, low: 1.9, high: 2.1 });
        assert_eq!(judge(5, estimate, 0.001, 0.02), Verdict::NotEnoughRuns);
        assert_eq!(judge(30, estimate, 0.2, 0.02), Verdict::NotEnoughRuns);
        assert_eq!(judge(30, None, 0.001, 0.02), Verdict::NotEnoughRuns);
    }
}
