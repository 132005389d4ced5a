//! How times, shares and sizes are written.

use inodyne_model::Nanos;
use inodyne_model::count::Grouped;
pub(crate) use inodyne_model::count::counted;
use jiff::Timestamp;

/// A time with three significant digits or more, in the unit that suits it.
pub(crate) fn duration(ns: Nanos) -> String {
    duration_beside(ns, ns)
}

/// The same in the unit and with the decimals that suit `other`: for times that are compared with it. One that is less than a
/// hundredth of it keeps its own, as it would look like zero.
pub fn duration_beside(ns: Nanos, other: Nanos) -> String {
    let other = if ns.0 > 0 && ns.0 < other.0 / 100 { ns } else { other };
    match other.0 {
        0..1_000 => format!("{} ns", ns.0),
        1_000..999_500 => format!("{} µs", three_digits(ns.0 as f64 / 1e3, other.0 as f64 / 1e3)),
        999_500..99_950_000 => format!("{} ms", three_digits(ns.0 as f64 / 1e6, other.0 as f64 / 1e6)),
        99_950_000..99_995_000_000 => format!("{ns}"),
        _ => format!("{:.1} s", ns.as_secs_f64()),
    }
}

/// As many decimals as `other` needs for three digits.
fn three_digits(value: f64, other: f64) -> String {
    let decimals = if other < 9.995 { 2 } else { usize::from(other < 99.95) };
    format!("{value:.decimals$}")
}

/// A number above 0 without a unit: four significant digits, or all before the point.
pub(crate) fn number(value: f64) -> String {
    match value {
        huge if huge >= 1e15 => format!("{value:.3e}"),
        large if large >= 1e3 => Grouped(value.round() as u64).to_string(),
        small => {
            let decimals = (3.0 - small.max(1e-9).log10().floor()) as usize;
            format!("{value:.decimals$}")
        }
    }
}

/// The unit of a table of times: the one in which its largest time has one to three digits before the point.
pub(crate) fn unit(largest: Nanos) -> &'static str {
    scale(largest).0
}

/// The unit, how many nanoseconds it is, and with how many decimals the largest time has three significant digits or
/// more, so that small rows do not vanish.
fn scale(largest: Nanos) -> (&'static str, f64, usize) {
    let (unit, ns) = match largest.0 {
        0..1_000 => return ("ns", 1.0, 0),
        1_000..999_950 => ("µs", 1e3),
        999_950..999_950_000 => ("ms", 1e6),
        _ => ("s", 1e9),
    };
    let decimals = match largest.0 as f64 / ns {
        ..9.995 => 2,
        ..9_999.5 => 1,
        _ => 0,
    };
    // A hundredth of a second is a long time for a system call.
    let decimals = decimals + usize::from(unit == "s" && largest.0 < 1_000_000_000_000);
    (unit, ns, decimals)
}

/// A time in the unit of a table whose largest time is `largest`, without the unit. A time that is not zero is not written as zero.
pub(crate) fn scaled(ns: Nanos, largest: Nanos) -> String {
    let (_, unit, decimals) = scale(largest);
    let text = format!("{:.decimals$}", ns.0 as f64 / unit);
    if ns.0 > 0 && is_zero(&text) { format!("<{:.decimals$}", 0.1f64.powi(decimals as i32)) } else { text }
}

/// The same for a difference, with its sign; without one if it rounds to zero.
pub(crate) fn scaled_difference(ns: i64, largest: Nanos) -> String {
    let (_, unit, decimals) = scale(largest);
    let size = format!("{:.decimals$}", ns.unsigned_abs() as f64 / unit);
    match ns {
        _ if is_zero(&size) => size,
        0.. => format!("+{size}"),
        _ => format!("-{size}"),
    }
}

fn is_zero(number: &str) -> bool {
    number.bytes().all(|c| c == b'0' || c == b'.')
}

/// A share in whole per cent; small ones with a decimal, and only zero looks like zero.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if p <= 0.0 => "0%".to_owned(),
        p if p < 0.05 => "<0.1%".to_owned(),
        p if p < 0.95 => format!("{p:.1}%"),
        p => format!("{p:.0}%"),
    }
}

/// How often something is done per second: whole numbers, small ones with a decimal, and only zero looks like zero.
pub(crate) fn rate(per_second: f64) -> String {
    match per_second {
        none if none <= 0.0 => "0".to_owned(),
        few if few < 0.05 => "<0.1".to_owned(),
        few if few < 9.95 => format!("{few:.1}"),
        many => Grouped(many.round() as u64).to_string(),
    }
}

/// The same for bytes, with their unit.
pub(crate) fn rate_of_bytes(per_second: f64) -> String {
    if per_second > 0.0 && per_second < 9.95 {
        return format!("{} bytes", rate(per_second));
    }
    bytes(per_second.round() as u64)
}

/// Microseconds, with decimals if there are few.
pub(crate) fn micros(ns: Nanos) -> String {
    let micros = ns.0 as f64 / 1e3;
    if micros < 99.95 { format!("{micros:.1}") } else { format!("{micros:.0}") }
}

/// Bytes in powers of 1,000.
pub fn bytes(bytes: u64) -> String {
    let value = bytes as f64;
    match bytes {
        0..1_000 => counted(bytes, "byte", "bytes"),
        1_000..999_500 => format!("{} kB", three_digits(value / 1e3, value / 1e3)),
        999_500..999_500_000 => format!("{} MB", three_digits(value / 1e6, value / 1e6)),
        _ => format!("{} GB", three_digits(value / 1e9, value / 1e9)),
    }
}

/// A time of the wall clock, in UTC: `2026-11-21 04:14`.
pub(crate) fn date(unix_s: u64) -> String {
    let seconds = i64::try_from(unix_s).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX).strftime("%Y-%m-%d %H:%M").to_string()
}

/// A bar of eighth blocks: `share` of `width` columns.
pub(crate) fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    // Anything that is not zero is visible.
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

/// A column for each count, the largest at full height; anything that is not zero is visible.
pub(crate) fn columns(counts: &[u64]) -> String {
    const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let largest = counts.iter().copied().max().unwrap_or_default().max(1);
    let column = |count: &u64| match count {
        0 => ' ',
        count => EIGHTHS[((*count as f64 / largest as f64 * 7.0).round() as usize).min(7)],
    };
    counts.iter().map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_take_the_unit_that_suits_them() {
        let shown =
            [0, 999, 1_234, 56_700, 999_900, 33_400_000, 99_960_000, 334_000_000, 12_345_678_900, 123_456_000_000];
        let expected =
            ["0 ns", "999 ns", "1.23 µs", "56.7 µs", "1.00 ms", "33.4 ms", "0.100 s", "0.334 s", "12.346 s", "123.5 s"];
        assert_eq!(shown.map(|ns| duration(Nanos(ns))), expected);
    }

    #[test]
    fn a_time_beside_another_has_its_unit_and_never_looks_like_nothing() {
        let beside = |ns| duration_beside(Nanos(ns), Nanos(778_000_000));
        assert_eq!([12_300_000, 1_370_000, 0].map(beside), ["0.012 s", "1.37 ms", "0.000 s"]);
    }

    #[test]
    fn dates_know_of_leap_years() {
        let shown = [0, 951_782_399, 951_782_400, 1_790_000_000, u64::MAX].map(date);
        assert_eq!(shown[..4], ["1970-01-01 00:00", "2000-02-28 23:59", "2000-02-29 00:00", "2026-09-21 14:13"]);
    }

    #[test]
    fn small_shares_are_not_zero() {
        let shown = [0.0, 0.0001, 0.001, 0.0094, 0.0096, 0.714, 1.0].map(percent);
        assert_eq!(shown, ["0%", "<0.1%", "0.1%", "0.9%", "1%", "71%", "100%"]);
    }

    #[test]
    fn small_rates_are_not_zero() {
        let shown = [0.0, 0.0001, 0.05, 0.3, 9.94, 9.96, 192.4, 96_912.0].map(rate);
        assert_eq!(shown, ["0", "<0.1", "0.1", "0.3", "9.9", "10", "192", "96,912"]);
        let shown = [0.0, 0.004, 0.4, 12.0, 786_432.0].map(rate_of_bytes);
        assert_eq!(shown, ["0 bytes", "<0.1 bytes", "0.4 bytes", "12 bytes", "786 kB"]);
    }

    #[test]
    fn one_is_not_several() {
        assert_eq!([0, 1, 1_234].map(|n| counted(n, "thread", "threads")), ["0 threads", "1 thread", "1,234 threads"]);
    }

    #[test]
    fn bars_are_cut_in_eighths() {
        assert_eq!([1.0, 0.5, 0.3, 0.001, 0.0].map(|share| bar(share, 4)), ["████", "██", "█▎", "▏", ""]);
    }

    #[test]
    fn the_largest_time_of_a_table_chooses_its_unit() {
        let largest = [900, 56_700, 5_678_000, 50_080_000, 185_100_000, 999_960_000, 12_345_000_000].map(Nanos);
        assert_eq!(largest.map(unit), ["ns", "µs", "ms", "ms", "ms", "s", "s"]);
        assert_eq!(largest.map(|ns| scaled(ns, ns)), ["900", "56.7", "5.68", "50.1", "185.1", "1.000", "12.35"]);
        assert_eq!([40_000, 200_000, 0].map(|ns| scaled(Nanos(ns), largest[4])), ["<0.1", "0.2", "0.0"]);
    }

    #[test]
    fn differences_have_a_sign_unless_they_are_none() {
        let largest = Nanos(2_000_000_000);
        assert_eq!(
            [15_000_000, -30_000_000, 400, -400].map(|ns| scaled_difference(ns, largest)),
            ["+0.015", "-0.030", "0.000", "0.000"]
        );
    }

    #[test]
    fn columns_are_as_high_as_their_counts() {
        assert_eq!(columns(&[1, 0, 50, 100]), "▁ ▅█");
    }

    #[test]
    fn sizes_take_the_unit_that_suits_them() {
        assert_eq!([999, 1_500, 12_300_000, 4_000_000_000].map(bytes), ["999 bytes", "1.50 kB", "12.3 MB", "4.00 GB"]);
        assert_eq!([0, 1, 2].map(bytes), ["0 bytes", "1 byte", "2 bytes"]);
        // What would be rounded to a thousand has the next unit.
        let shown = [999_499, 999_500, 999_600, 999_499_999, 999_500_000].map(bytes);
        assert_eq!(shown, ["999 kB", "1.00 MB", "1.00 MB", "999 MB", "1.00 GB"]);
    }
}
