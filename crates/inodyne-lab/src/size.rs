//! A number of bytes as people write it: `64M`, `4G`.
//!
//! Suffixes are powers of 1024, as in mkfs and mount options. What is written is what comes back, in the largest unit
//! that divides it.

use std::{fmt, str::FromStr};

/// Text that is not a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a size: write a number with K, M, G or T, such as 512M")]
pub struct ParseSizeError(String);

/// A number of bytes, greater than zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(u64);

const UNITS: [(char, u32); 4] = [('T', 40), ('G', 30), ('M', 20), ('K', 10)];

impl Size {
    /// From bytes.
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// From mebibytes.
    pub(crate) const fn from_mib(mib: u64) -> Self {
        Self(mib << 20)
    }

    /// In bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// The same or less, a whole number of mebibytes: for messages and defaults.
    pub(crate) const fn whole_mib(self) -> Self {
        Self(self.0 >> 20 << 20)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS.iter().find(|(_, bits)| self.0 != 0 && self.0.trailing_zeros() >= *bits) {
            Some((suffix, bits)) => write!(f, "{}{suffix}", self.0 >> bits),
            None => write!(f, "{}", self.0),
        }
    }
}

impl FromStr for Size {
    type Err = ParseSizeError;

    fn from_str(text: &str) -> Result<Self, ParseSizeError> {
        let wrong = || ParseSizeError(text.into());
        let unit = UNITS.iter().find(|(suffix, _)| text.ends_with([*suffix, suffix.to_ascii_lowercase()]));
        let (digits, bits) = unit.map_or((text, 0), |(_, bits)| (&text[..text.len() - 1], *bits));
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong());
        }
        let number: u64 = digits.parse().map_err(|_| wrong())?;
        // Kernel offsets are signed: beyond them no file can reach.
        let bytes = number.checked_mul(1 << bits).filter(|bytes| (1..=i64::MAX as u64).contains(bytes));
        bytes.map(Self).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        for text in ["1", "512", "3K", "64M", "4G", "2T", "1000"] {
            assert_eq!(text.parse::<Size>().unwrap().to_string(), text);
        }
        assert_eq!("1024m".parse::<Size>().unwrap().to_string(), "1G");
        for text in ["", "G", "-1", "+1", "1.5G", "4GB", "0", "0K", "9999999T", "99999999999999999999", "4 G", "４G"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }
}
