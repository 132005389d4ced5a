//! A number of something: fixed, or drawn from a distribution.
//!
//! Trees of equal directories with equal files are easy to reason about, real trees are skewed. Drawing is a pure
//! function of a hash, so every thread, and the checker later, gets the same value without sharing state.

use std::{fmt, str::FromStr};

use crate::TreeError;

/// How many, or how large: `7`, `0..4096` (evenly between, both ends included), `~512` (exponential with that mean).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Always this.
    Fixed(u64),
    /// Evenly between both, ends included.
    Uniform(u64, u64),
    /// Exponential with this mean: many small, few large. Never more than 20 times the mean.
    Exponential(u64),
}

impl Amount {
    /// The value that belongs to `hash`, whose 64 bits must be evenly distributed.
    pub(crate) fn draw(self, hash: u64) -> u64 {
        match self {
            Self::Fixed(value) => value,
            Self::Uniform(low, high) => {
                let values = u128::from(high - low) + 1;
                low + ((u128::from(hash) * values) >> 64) as u64
            }
            Self::Exponential(mean) => {
                let unit = ((hash >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
                (-unit.ln()).min(20.0).mul_add(mean as f64, 0.0).round() as u64
            }
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(value) => write!(f, "{value}"),
            Self::Uniform(low, high) => write!(f, "{low}..{high}"),
            Self::Exponential(mean) => write!(f, "~{mean}"),
        }
    }
}

impl FromStr for Amount {
    type Err = TreeError;

    fn from_str(text: &str) -> Result<Self, TreeError> {
        let number = |digits: &str| {
            digits.replace('_', "").parse::<u64>().map_err(|_| {
                TreeError::Spec(format!("'{text}' is not an amount: write 7, 0..4096 (evenly) or ~512 (exponential)"))
            })
        };
        if let Some(mean) = text.strip_prefix('~') {
            return Ok(Self::Exponential(number(mean)?));
        }
        let Some((low, high)) = text.split_once("..") else { return Ok(Self::Fixed(number(text)?)) };
        let (low, high) = (number(low)?, number(high)?);
        if low > high {
            return Err(TreeError::Spec(format!("'{text}' runs backwards")));
        }
        Ok(Self::Uniform(low, high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inodyne_model::random::mix;

    #[test]
    fn text_and_back() {
        for text in ["0", "7", "0..4096", "~512"] {
            assert_eq!(text.parse::<Amount>().unwrap().to_string(), text);
        }
        for text in ["", "x", "9..3", "~", "-1", "1.."] {
            assert!(text.parse::<Amount>().is_err(), "{text}");
        }
    }

    #[test]
    fn draws_follow_the_distribution() {
        let mean = |amount: Amount| (0..100_000).map(|i| amount.draw(mix(i))).sum::<u64>() as f64 / 100_000.0;
        assert!((mean(Amount::Uniform(10, 20)) - 15.0).abs() < 0.1);
        assert!((mean(Amount::Exponential(1000)) - 1000.0).abs() < 20.0);
        assert!((0..1000).all(|i| (10..=20).contains(&Amount::Uniform(10, 20).draw(mix(i)))));
        assert_eq!(Amount::Uniform(0, u64::MAX).draw(u64::MAX), u64::MAX);
    }
}
