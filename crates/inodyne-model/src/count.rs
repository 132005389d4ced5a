//! Counts as people read them.

use std::fmt;

/// A count with a comma after every three digits: `33,055`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grouped(pub u64);

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut text = String::with_capacity(digits.len() + digits.len() / 3);
        for (at, digit) in digits.char_indices() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        f.pad(&text)
    }
}

/// A count with its noun: `1 thread`, `1,234 threads`.
pub fn counted(count: u64, one: &str, several: &str) -> String {
    format!("{} {}", Grouped(count), if count == 1 { one } else { several })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_by_three() {
        let shown = [0, 999, 1_000, 33_055, 1_048_576].map(|n| Grouped(n).to_string());
        assert_eq!(shown, ["0", "999", "1,000", "33,055", "1,048,576"]);
        assert_eq!(format!("{:>7}", Grouped(1_000)), "  1,000");
    }
}
