//! What pairs of runs say about settings that were tried: a figure for those that were screened, a verdict for those that were
//! confirmed.
//!
//! Several settings are confirmed at once, so their p-values are corrected for one another (Holm). A winner is one whose interval and
//! whose corrected p-value both say that it is faster, by more than the margin.

use inodyne_model::Nanos;
use inodyne_model::comparison::{Interval, Verdict};
use inodyne_model::random::Random;
use inodyne_model::run::Run;
use inodyne_model::tuning::{Measured, Objective};

use crate::statistics::{bootstrap, holm, paired, summary, verdict};

/// The random numbers of every interval start with this seed, so that it does not depend on what else was tried.
const SEED: u64 = 0x7475_6e65;

/// Runs in pairs: of the base, and with a setting.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pairs {
    /// What is to become smaller.
    costs: Vec<bootstrap::Pair>,
    times: Vec<bootstrap::Pair>,
    /// Empty where no number is asked for.
    numbers: Vec<bootstrap::Pair>,
}

impl Pairs {
    /// The pairs of those runs for which the value that is to become better is known.
    pub fn of<'a>(runs: impl IntoIterator<Item = (&'a Run, &'a Run)>, objective: Objective) -> Pairs {
        let mut pairs = Pairs::default();
        let both = |pair: (&Run, &Run), of: &dyn Fn(&Run) -> Option<f64>| Some((of(pair.0)?, of(pair.1)?));
        for pair in runs {
            let time = |run: &Run| objective.time(run).map(|time| time.0 as f64);
            let (costs, times) = (both(pair, &|run| objective.cost(run)), both(pair, &time));
            if let Some((costs, times)) = costs.zip(times) {
                pairs.costs.push((costs.0.max(f64::MIN_POSITIVE), costs.1));
                pairs.times.push(times);
                pairs.numbers.extend(both(pair, &|run| run.number).filter(|_| objective.is_number()));
            }
        }
        pairs
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.costs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.costs.is_empty()
    }

    fn p_value(&self) -> f64 {
        paired::p_value(&self.costs)
    }

    fn interval(&self) -> Option<Interval> {
        bootstrap::median_ratio(&self.costs, &mut Random::seeded(SEED))
    }

    fn measured(&self, p: f64) -> Option<Measured> {
        let medians = |pairs: &[bootstrap::Pair]| {
            let median = |of: fn(&bootstrap::Pair) -> f64| summary::median_of(&Vec::from_iter(pairs.iter().map(of)));
            (!pairs.is_empty()).then(|| (median(|pair| pair.0), median(|pair| pair.1)))
        };
        let (base, with) = medians(&self.times)?;
        let numbers = medians(&self.numbers);
        let ratios: Vec<f64> = self.costs.iter().map(|(a, b)| b / a).collect();
        let shown = self.interval().filter(|_| self.len() >= inodyne_model::comparison::LEAST_PAIRS);
        Some(Measured {
            pairs: self.len(),
            base_ns: Nanos::rounded(base),
            wall_ns: Nanos::rounded(with),
            base_number: numbers.map(|numbers| numbers.0),
            number: numbers.map(|numbers| numbers.1),
            ratio: summary::median_of(&ratios),
            ci_low: shown.map(|interval| interval.low),
            ci_high: shown.map(|interval| interval.high).filter(|high| high.is_finite()),
            p,
        })
    }
}

/// What pairs say before anything is confirmed. None without pairs.
pub fn screened(pairs: &Pairs) -> Option<Measured> {
    pairs.measured(pairs.p_value())
}

/// What fresh pairs say about each setting, and whether it helps.
pub fn confirmed(all: &[Pairs], margin: f64) -> Vec<Option<(Measured, bool)>> {
    let corrected = holm::corrected(&all.iter().map(Pairs::p_value).collect::<Vec<_>>());
    let one = |(pairs, p): (&Pairs, f64)| {
        let measured = pairs.measured(p)?;
        let is_better = verdict::judge(pairs.len(), pairs.interval(), p, margin) == Verdict::Faster;
        Some((measured, is_better && measured.ratio < 1.0 - margin))
    };
    all.iter().zip(corrected).map(one).collect()
}

/// How many pairs can decide this many settings at once.
pub fn pairs_needed(settings: usize) -> usize {
    verdict::pairs_needed(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(pairs: u64, ratio: f64) -> Pairs {
        let run = |wall_ns| Run { wall_ns: Nanos(wall_ns), ..Run::default() };
        let pair = |n| (run(1_000_000 + n), run((1_000_000.0 * ratio) as u64 + 2 * n));
        let runs: Vec<(Run, Run)> = (0..pairs).map(pair).collect();
        Pairs::of(runs.iter().map(|(base, with)| (base, with)), Objective::Exit)
    }

    #[test]
    fn a_number_is_better_where_it_is_lower_or_higher() {
        let run = |number| Run { wall_ns: Nanos(1_000), number, ..Run::default() };
        let runs = |with: f64| -> Vec<(Run, Run)> {
            (0..10).map(|n| (run(Some(100.0 + f64::from(n))), run(Some(with + f64::from(n))))).collect()
        };
        let judged = |with, objective| {
            let runs = runs(with);
            let pairs = Pairs::of(runs.iter().map(|(base, with)| (base, with)), objective);
            confirmed(&[pairs], 0.02)[0].unwrap()
        };
        assert_eq!([50.0, 200.0].map(|with| judged(with, Objective::Lowest).1), [true, false]);
        assert_eq!([50.0, 200.0].map(|with| judged(with, Objective::Highest).1), [false, true]);
        let (measured, _) = judged(200.0, Objective::Highest);
        assert_eq!((measured.base_number, measured.number, measured.base_ns), (Some(104.5), Some(204.5), Nanos(1_000)));
        assert!((0.5..0.52).contains(&measured.ratio), "{measured:?}");
        assert!((1.9..2.0).contains(&Objective::Highest.shown(measured.ratio)));
        // A run that printed no number has none, and is left out.
        let without = [(run(None), run(Some(1.0)))];
        assert!(Pairs::of(without.iter().map(|(base, with)| (base, with)), Objective::Lowest).is_empty());
    }

    #[test]
    fn a_gain_above_the_margin_helps_and_less_does_not() {
        let helps = |ratio: f64, pairs| {
            let all = [times(pairs, ratio), times(pairs, 1.0), times(pairs, 1.3)];
            confirmed(&all, 0.02)[0].unwrap().1
        };
        assert!(helps(0.8, 10) && !helps(0.99, 10) && !helps(1.2, 10));
        // Six pairs can decide one thing, but not three at once.
        assert!(!helps(0.8, 6) && pairs_needed(3) == 7);
    }

    #[test]
    fn few_pairs_have_no_interval() {
        assert_eq!(screened(&Pairs::default()), None);
        let of_two = screened(&times(2, 0.5)).unwrap();
        assert_eq!((of_two.pairs, of_two.interval(), of_two.ratio < 0.51), (2, None, true));
    }
}
