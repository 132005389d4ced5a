//! The only randomness in inodyne: SplitMix64, with a seed, so that the same recording gives the same report, and the same
//! description the same tree, on every machine and with every version of every library.
//!
//! Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014; constants as in Vigna's
//! public-domain `splitmix64.c`.

/// What the state grows by: 2⁶⁴ divided by the golden ratio, made odd.
const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;

/// Spreads the bits of a number over all 64: the first number that a generator with this seed gives. Consecutive numbers
/// give independent ones.
pub const fn mix(value: u64) -> u64 {
    let z = value.wrapping_add(INCREMENT);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A generator.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A generator that always gives the same numbers for the same seed.
    pub fn seeded(seed: u64) -> Random {
        Random { state: seed }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let next = mix(self.state);
        self.state = self.state.wrapping_add(INCREMENT);
        next
    }

    /// A number from zero up to but not including `end`; zero where `end` is zero. The high half of a product
    /// (Lemire 2019, without the rejection step: the bias is below `end` / 2⁶⁴).
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next_u64()) * end as u128) >> 64) as usize
    }

    /// A number from 0.0 up to but not including 1.0.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A standard normal variable (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Puts values into a random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_reference() {
        // The first outputs of splitmix64.c for the seed 1234567.
        let mut random = Random::seeded(1_234_567);
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
        ];
        assert_eq!(expected.map(|_| random.next_u64()), expected);
    }

    #[test]
    fn numbers_stay_below_their_end() {
        let mut random = Random::seeded(7);
        assert!((0..10_000).all(|n| random.below(n % 9 + 1) <= n % 9));
        assert_eq!(random.below(0), 0);
        assert!((0..10_000).map(|_| random.unit()).all(|x| (0.0..1.0).contains(&x)));
        assert!((0..10_000).all(|_| random.normal().is_finite()));
    }
}
