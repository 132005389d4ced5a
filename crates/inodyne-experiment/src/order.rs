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
//! block do not show it. The order within a block is drawn anew for each, so that no case always follows the same other
//! one; the seed makes it the same next time.

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
}

impl Order {
    /// The same seed draws the same orders.
    pub fn new(seed: u64) -> Order {
        Order { random: Random::seeded(seed) }
    }

    /// The runs of the next block.
    pub fn next(&mut self, group: &Group, block: u32, traced: bool) -> Vec<RunKey> {
        let mut runs: Vec<RunKey> = group.cases.iter().map(|case| RunKey { case: *case, block, traced }).collect();
        self.random.shuffle(&mut runs);
        runs
    }
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
}
