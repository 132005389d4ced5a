//! The order in which the runs of a block take place. Pure.
//!
//! ```text
//! for each group of cases
//!     warm-up   thrown away
//!     block 0   every case once, untraced, in an order of its own
//!     block 1   …
//!     block n   the same, traced
//! ```
//!
//! Runs of a block are close in time, so a machine that is busy for a while slows all of them, and pairs made within a
//! block do not show it. The order within a block is drawn at random, and the next block has it backwards: so each case comes before each
//! other one as often as after it, whatever was drawn, and being first or last in a block favours nobody. The seed makes it the same next
//! time.

use inodyne_model::case::CaseKey;
use inodyne_model::random::Random;

use crate::experiment::Group;

/// Identifies a run within its experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunKey {
    /// What runs where.
    pub case: CaseKey,
    /// Block of the schedule.
    pub block: u32,
    /// Whether it is traced.
    pub traced: bool,
}

/// Draws the order of block after block.
#[derive(Debug)]
pub struct Order {
    random: Random,
    /// The order that was drawn last, of untraced or of traced runs, until a block has had it backwards.
    drawn: Option<(bool, Vec<CaseKey>)>,
}

impl Order {
    /// The same seed draws the same orders.
    pub fn new(seed: u64) -> Order {
        Order { random: Random::seeded(seed), drawn: None }
    }

    /// The runs of a block that is not counted.
    pub fn warm_up(&mut self, group: &Group) -> Vec<RunKey> {
        let mut cases = group.cases.clone();
        self.random.shuffle(&mut cases);
        keys(cases, 0, false)
    }

    /// The runs of the next block. Cases that have left since the block before are left out of its order, too.
    pub fn next(&mut self, group: &Group, block: u32, traced: bool) -> Vec<RunKey> {
        let drawn = self.drawn.take().filter(|(of_traced, _)| *of_traced == traced);
        let backwards = drawn.map(|(_, cases)| {
            cases.into_iter().rev().filter(|case| group.cases.contains(case)).collect::<Vec<CaseKey>>()
        });
        let cases = backwards.filter(|cases| cases.len() == group.cases.len()).unwrap_or_else(|| {
            let mut cases = group.cases.clone();
            self.random.shuffle(&mut cases);
            self.drawn = Some((traced, cases.clone()));
            cases
        });
        keys(cases, block, traced)
    }
}

fn keys(cases: Vec<CaseKey>, block: u32, traced: bool) -> Vec<RunKey> {
    cases.into_iter().map(|case| RunKey { case, block, traced }).collect()
}

#[cfg(test)]
mod tests {
    use inodyne_model::run::CacheState;

    use super::*;

    fn blocks(seed: u64) -> Vec<Vec<(usize, usize)>> {
        let group = &Group::crossed(3, 2, &[CacheState::Warm])[0];
        let mut order = Order::new(seed);
        let pairs = |runs: Vec<RunKey>| runs.iter().map(|run| (run.case.place, run.case.command)).collect();
        (0..50).map(|block| pairs(order.next(group, block, false))).collect()
    }

    #[test]
    fn a_block_has_each_run_once_in_an_order_that_the_seed_decides() {
        let drawn = blocks(7);
        for block in &drawn {
            let mut sorted = block.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]);
        }
        assert_eq!(drawn, blocks(7));
        assert_ne!(drawn, blocks(8));
        // No place is always first.
        assert!((0..3).all(|place| drawn.iter().any(|block| block[0].0 == place)));
    }

    #[test]
    fn each_case_comes_before_each_other_one_as_often_as_after_it() {
        for seed in 0..20 {
            let drawn = blocks(seed);
            for even in [2, 10, 50] {
                let at = |block: &[(usize, usize)], case| block.iter().position(|run| *run == case).unwrap();
                let before = |a, b| drawn[..even].iter().filter(|block| at(block, a) < at(block, b)).count();
                assert_eq!((before((0, 0), (2, 1)), before((1, 0), (0, 1))), (even / 2, even / 2), "seed {seed}");
            }
        }
    }

    #[test]
    fn who_has_left_is_left_out_of_the_order_backwards_and_traced_runs_have_one_of_their_own() {
        let group = &Group::crossed(3, 1, &[CacheState::Warm])[0];
        let places = |runs: Vec<RunKey>| runs.iter().map(|run| run.case.place).collect::<Vec<_>>();
        let mut order = Order::new(7);
        order.warm_up(group);
        let first = places(order.next(group, 0, false));
        let fewer = Group { cases: group.cases.iter().filter(|case| case.place != 1).copied().collect() };
        let backwards: Vec<usize> = first.iter().rev().filter(|place| **place != 1).copied().collect();
        assert_eq!(places(order.next(&fewer, 1, false)), backwards);
        let third = places(order.next(&fewer, 2, false));
        let [traced, again] = [3, 4].map(|block| places(order.next(&fewer, block, true)));
        assert!(traced.iter().rev().eq(&again), "{third:?} {traced:?} {again:?}");
    }
}
