//! How likely such pairs are if there is no difference: Wilcoxon's signed-rank test, two-sided.
//!
//! Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1 (1945). Chosen over a permutation test
//! of the mean because ranks keep one slow run from deciding, and over the sign test because it finds small shifts
//! with fewer pairs. If there is no difference, each pair's sign is a coin toss whatever the distribution of the
//! noise, since the order inside a block is random: that is all the exact test needs, and it holds with ties too. The coin is tossed
//! for every second block (the next has the order backwards): where noise carries over from a block to the next, 6% of samples without a
//! difference are below 0.05, not 5%. A verdict asks for an interval without 1 as well.
//!
//! What is ranked is the logarithms of the ratios, as noise of times is multiplicative; differences where a value is zero.
//! Pairs without any difference are left out (Wilcoxon's own treatment).

use super::bootstrap::Pair;
use super::{normal_below, probability, ranks};

/// Up to this many pairs the distribution is counted exactly, beyond that it is taken as normal (as SciPy does).
const MOST_EXACT: usize = 50;

/// The p-value of pairs. One where nothing differs.
pub fn p_value(pairs: &[Pair]) -> f64 {
    let positive = pairs.iter().all(|(a, b)| *a > 0.0 && *b > 0.0);
    let shift = |(a, b): &Pair| if positive { (b / a).ln() } else { b - a };
    signed_rank(&pairs.iter().map(shift).collect::<Vec<_>>())
}

/// The p-value of differences.
pub fn signed_rank(differences: &[f64]) -> f64 {
    let differences: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    if differences.is_empty() {
        return 1.0;
    }
    let (ranks, ties) = ranks(&differences.iter().map(|d| d.abs()).collect::<Vec<_>>());
    let above: f64 = ranks.iter().zip(&differences).filter(|(_, d)| **d > 0.0).map(|(rank, _)| rank).sum();
    if differences.len() <= MOST_EXACT { exact(&ranks, above) } else { normal(differences.len(), ties, above) }
}

/// Over all 2ⁿ choices of signs, counted by a sum over ranks. Ranks of ties are halves, so all are doubled.
fn exact(ranks: &[f64], above: f64) -> f64 {
    let doubled: Vec<usize> = ranks.iter().map(|rank| (rank * 2.0).round() as usize).collect();
    let whole: usize = doubled.iter().sum();
    let mut chance = vec![0.0; whole + 1];
    chance[0] = 1.0;
    let mut reached = 0;
    for rank in doubled {
        reached += rank;
        for sum in (0..=reached).rev() {
            let with = if sum >= rank { chance[sum - rank] } else { 0.0 };
            chance[sum] = (chance[sum] + with) / 2.0;
        }
    }
    let above = (above * 2.0).round() as usize;
    let low: f64 = chance[..=above].iter().sum();
    let high: f64 = chance[above..].iter().sum();
    probability(2.0 * low.min(high))
}

fn normal(n: usize, ties: f64, above: f64) -> f64 {
    let n = n as f64;
    let mean = n * (n + 1.0) / 4.0;
    let variance = (n * (n + 1.0) * (2.0 * n + 1.0) - ties / 2.0) / 24.0;
    probability(2.0 * normal_below(-((above - mean) / variance.sqrt()).abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_on_one_side_is_as_rare_as_coins_say() {
        for n in 1..12 {
            let pairs: Vec<Pair> = (0..n).map(|at| (1.0, 1.5 + f64::from(at))).collect();
            let expected = 2.0 * 0.5f64.powi(n);
            assert!((p_value(&pairs) - expected.min(1.0)).abs() < 1e-12);
        }
    }

    #[test]
    fn equal_pairs_say_nothing() {
        assert_eq!(p_value(&[(3.0, 3.0); 9]), 1.0);
        assert_eq!(p_value(&[]), 1.0);
    }
}
