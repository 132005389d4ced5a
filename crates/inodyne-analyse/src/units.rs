//! Times, shares and counts, as sentences write them.

use inodyne_model::count::Grouped;

/// Nanoseconds as evidence writes them: three digits and a unit.
pub(crate) fn seconds(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => return format!("{:.0} ns", ns.max(0.0).abs()),
        ns if ns < 1e6 => (ns / 1e3, "µs"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.digits$} {unit}")
}

/// A share in whole percent; a little is not nothing.
pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        little if little > 0.0 && little < 0.5 => "less than 1%".to_owned(),
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
