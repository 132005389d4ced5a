//! Times, shares and counts, as sentences write them.

use inodyne_model::count::Grouped;

/// Nanoseconds as evidence writes them: three digits and a unit.
pub(crate) fn seconds(ns: f64) -> String {
    // What rounds to a thousand of a unit is one of the next.
    let (value, unit) = match ns {
        ns if ns < 999.5 => return format!("{:.0} ns", ns.max(0.0).abs()),
        ns if ns < 999.5e3 => (ns / 1e3, "µs"),
        ns if ns < 999.5e6 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.digits$} {unit}")
}

/// A share in whole percent; a little is not nothing.
pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        little if little > 0.0 && little <= 0.5 => "less than 1%".to_owned(),
        percent => format!("{percent:.0}%"),
    }
}

/// `once`, `1,234 times`
pub(crate) fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        several => format!("{} times", Grouped(several)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_unit_that_they_round_to() {
        assert_eq!([0.0, 999.4, 999.5, 999_499.0].map(seconds), ["0 ns", "999 ns", "1.00 µs", "999 µs"]);
        assert_eq!([999_500.0, 999_499_999.0, 999_500_000.0].map(seconds), ["1.00 ms", "999 ms", "1.00 s"]);
        assert_eq!([9.994e9, 9.995e9, 99.95e9].map(seconds), ["9.99 s", "10.0 s", "100 s"]);
    }

    #[test]
    fn a_little_is_not_nothing() {
        assert_eq!([0.0, 0.001, 0.005, 0.006, 0.5].map(percent), ["0%", "less than 1%", "less than 1%", "1%", "50%"]);
    }
}
