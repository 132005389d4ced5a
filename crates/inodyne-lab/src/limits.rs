//! How slow a device is to be, as the user writes it: `delay=2ms`, `bandwidth=50M`, `iops=200`.

use std::{fmt, str::FromStr, time::Duration};

use crate::Size;

/// The limits that a device made here is held to. Each on its own, or together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Every request is answered this much later.
    pub delay: Option<Delay>,
    /// This many bytes are moved per second, reads and writes together.
    pub bandwidth: Option<Size>,
    /// This many requests are answered per second.
    pub iops: Option<u32>,
}

impl Limits {
    /// Below this a read of one page would take a second.
    pub(crate) const LEAST_BANDWIDTH: Size = Size::from_bytes(4096);

    /// Whether the device may be as fast as it can be.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Text that is not a delay.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a delay: write a number with us, ms or s, such as 2ms, up to 10s")]
pub struct ParseDelayError(String);

/// A time by which answers come later: from 1 microsecond to 10 seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay(Duration);

/// Longest suffix first: `ms` ends in `s`.
const UNITS: [(&str, u64); 3] = [("us", 1), ("ms", 1_000), ("s", 1_000_000)];

impl Delay {
    /// As a duration.
    pub const fn duration(self) -> Duration {
        self.0
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_micros() as u64;
        let (suffix, unit) = UNITS.into_iter().rev().find(|(_, unit)| micros.is_multiple_of(*unit)).unwrap_or(UNITS[0]);
        write!(f, "{}{suffix}", micros / unit)
    }
}

impl FromStr for Delay {
    type Err = ParseDelayError;

    fn from_str(text: &str) -> Result<Self, ParseDelayError> {
        let wrong = || ParseDelayError(text.into());
        let found = UNITS.iter().find_map(|(suffix, unit)| Some((text.strip_suffix(suffix)?, unit)));
        let (digits, unit) = found.ok_or_else(wrong)?;
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong());
        }
        let micros = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(*unit));
        let micros = micros.filter(|micros| (1..=10_000_000).contains(micros)).ok_or_else(wrong)?;
        Ok(Self(Duration::from_micros(micros)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        for text in ["2ms", "1us", "1500us", "10s"] {
            assert_eq!(text.parse::<Delay>().unwrap().to_string(), text);
        }
        assert_eq!("2000us".parse::<Delay>().unwrap().to_string(), "2ms");
        for text in ["", "2", "ms", "-1ms", "+1ms", "1.5ms", "0ms", "11s", "2 ms", "2m", "99999999999999999999s"] {
            assert!(text.parse::<Delay>().is_err(), "{text}");
        }
    }
}
