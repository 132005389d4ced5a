//! What runs when. Pure.
//!
//! ```text
//! for each state of the caches
//!     warm-up   thrown away
//!     block 0   every place with every command once, untraced, in an order of its own
//!     block 1   …
//!     block n   the same, traced
//! ```
//!
//! Runs of a block stand side by side in time, so a machine that is busy for a while slows all of them, and pairs made
//! within a block do not show it. The order inside of a block is drawn anew for each, so that no alternative always
//! follows the same other one; the seed makes it the same next time.

use inodyne_analyse::statistics::random::Random;
use inodyne_model::comparison::Side;
use inodyne_model::run::CacheState;

/// Which of the runs it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Which {
    /// Index of the place.
    pub place: usize,
    /// Index of the command.
    pub command: usize,
    /// State of the caches before.
    pub cache: CacheState,
    /// Block of the schedule.
    pub block: u32,
    /// Whether it is traced.
    pub traced: bool,
}

impl Which {
    /// The same, where the recording has other places and commands before.
    pub fn after(self, first: Side) -> Which {
        Which { place: first.place + self.place, command: first.command + self.command, ..self }
    }
}

/// Draws the order of block after block.
#[derive(Debug)]
pub struct Order {
    random: Random,
    places: usize,
    commands: usize,
}

impl Order {
    /// Of so many places and commands.
    pub fn new(seed: u64, places: usize, commands: usize) -> Order {
        Order { random: Random::seeded(seed), places, commands }
    }

    /// The runs of the next block.
    pub fn next(&mut self, cache: CacheState, block: u32, traced: bool) -> Vec<Which> {
        let of_place = |place| (0..self.commands).map(move |command| Which { place, command, cache, block, traced });
        let mut runs: Vec<Which> = (0..self.places).flat_map(of_place).collect();
        self.random.shuffle(&mut runs);
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(seed: u64) -> Vec<Vec<(usize, usize)>> {
        let mut order = Order::new(seed, 3, 2);
        let pairs = |runs: Vec<Which>| runs.iter().map(|run| (run.place, run.command)).collect();
        (0..50).map(|block| pairs(order.next(CacheState::Warm, block, false))).collect()
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
        // Nobody is always first.
        assert!((0..3).all(|place| drawn.iter().any(|block| block[0].0 == place)));
    }
}
