//! What tracing may cost the processes it follows, and how many of their calls are timed so that it costs no more. Pure.
//!
//! ```text
//! cost    ▁▁▁▂▂▆▆▆▆▆▃▃▃▁▁▁▁
//! budget  ▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃
//! 1 in    1111118888884211          up at once as far as is needed, down step by step, and not as soon as it might do
//! ```

use std::fmt;
use std::str::FromStr;

/// No fewer than one call in this many is timed, unless `--sample-calls` asks for fewer: the cost that is left then is that of counting.
const FEWEST: u32 = 64;

/// More are timed again only if that would take no more than this part of the budget; otherwise the rate would oscillate.
const COMFORTABLE: f64 = 0.8;

/// A part of one CPU, in per cent.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Percent(f64);

impl Percent {
    /// One is a whole CPU.
    pub fn of_a_cpu(self) -> f64 {
        self.0 / 100.0
    }
}

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Percent, String> {
        match text.trim_end_matches('%').parse::<f64>() {
            Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(Percent(percent)),
            _ => Err("write a percentage of one CPU: 5%".to_owned()),
        }
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

/// How many calls are timed.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    limit: Percent,
    least: u32,
    one_in: u32,
}

impl Budget {
    /// One call in `least` is timed, and fewer where that costs more than `limit`.
    pub fn new(limit: Percent, least: u32) -> Budget {
        Budget { limit, least, one_in: least }
    }

    /// What it may cost.
    pub fn limit(&self) -> Percent {
        self.limit
    }

    /// One call in this many is to be timed.
    pub fn one_in(&self) -> u32 {
        self.one_in
    }

    /// Adapts to what happened since the last time, by what it would have cost if one call in this many had been timed, as a part of one CPU.
    pub fn adapt(&mut self, cost: impl Fn(u32) -> f64) {
        let limit = self.limit.of_a_cpu();
        if cost(self.one_in) <= limit {
            let more = (self.one_in / 2).max(self.least);
            if cost(more) <= limit * COMFORTABLE {
                self.one_in = more;
            }
            return;
        }
        while self.one_in < FEWEST && cost(self.one_in) > limit {
            self.one_in = (self.one_in * 2).min(FEWEST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many million calls a second, each for 100 ns, or for 60 where it is not timed.
    fn cost(millions: f64) -> impl Fn(u32) -> f64 {
        move |one_in| millions * 1e6 * (60.0 + 40.0 / f64::from(one_in)) / 1e9
    }

    fn after(budget: &mut Budget, millions: f64) -> u32 {
        budget.adapt(cost(millions));
        budget.one_in()
    }

    #[test]
    fn fewer_calls_are_timed_at_once_and_more_of_them_step_by_step() {
        let mut budget = Budget::new(Percent(7.0), 1);
        assert_eq!(after(&mut budget, 0.5), 1);
        // All of them: 10%. One in two: 8%. One in four: 7%.
        assert_eq!(after(&mut budget, 1.0), 4);
        assert_eq!(after(&mut budget, 1.0), 4);
        // One in two would be 7.2% of it, and then 5.76%, which is more than 0.8 of the budget.
        assert_eq!([after(&mut budget, 0.9), after(&mut budget, 0.72)], [4, 4]);
        assert_eq!([after(&mut budget, 0.5), after(&mut budget, 0.5), after(&mut budget, 0.5)], [2, 1, 1]);
    }

    #[test]
    fn a_steady_load_ends_at_one_rate() {
        for hundredths in 1..400 {
            let mut budget = Budget::new(Percent(5.0), 1);
            let rates: Vec<u32> = (0..12).map(|_| after(&mut budget, f64::from(hundredths) / 100.0)).collect();
            assert!(rates[8..].iter().all(|rate| *rate == rates[8]), "{hundredths}: {rates:?}");
        }
    }

    #[test]
    fn where_counting_alone_costs_too_much_no_fewer_than_one_in_64_are_timed() {
        let mut budget = Budget::new(Percent(5.0), 1);
        assert_eq!(after(&mut budget, 10.0), FEWEST);
        assert!(cost(10.0)(FEWEST) > budget.limit().of_a_cpu());
    }

    #[test]
    fn no_more_are_timed_than_was_asked_for() {
        let mut budget = Budget::new(Percent(5.0), 3);
        assert_eq!(after(&mut budget, 0.0), 3);
        assert_eq!(after(&mut budget, 0.72), 6);
        assert_eq!([after(&mut budget, 0.0), after(&mut budget, 0.0)], [3, 3]);
        let mut rarely = Budget::new(Percent(5.0), 1_000);
        assert_eq!([after(&mut rarely, 0.0), after(&mut rarely, 10.0)], [1_000, 1_000]);
    }

    #[test]
    fn a_budget_is_a_percentage_of_one_cpu() {
        for (text, shown) in [("5", "5%"), ("0.5%", "0.5%"), ("0", "0%"), ("250%", "250%")] {
            assert_eq!(text.parse::<Percent>().map(|percent| percent.to_string()), Ok(shown.to_owned()));
        }
        for wrong in ["", "-1", "inf", "nan", "five", "5s"] {
            assert!(wrong.parse::<Percent>().is_err(), "{wrong}");
        }
    }
}
