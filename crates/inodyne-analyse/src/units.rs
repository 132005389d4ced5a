//! Times and shares, as sentences write them.

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

/// A share in whole percent.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}
