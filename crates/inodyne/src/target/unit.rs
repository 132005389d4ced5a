//! Systemd units: from their names to their control groups, by which systemd knows which processes belong to them (systemd.unit(5)).

use std::path::PathBuf;

use super::{cgroups, container};

/// The kinds of units that have processes.
const KINDS: [&str; 6] = [".service", ".scope", ".slice", ".socket", ".mount", ".swap"];

/// The control groups of the units with this name, of the system and of its users, but not those of containers' own; without a kind, a service
/// is meant.
///
/// # Errors
/// There is none, in one line.
pub fn groups(name: &str) -> Result<Vec<PathBuf>, String> {
    let name = full(name);
    let groups = cgroups::called(&|directory| is_of(directory, &name), &container::is_one);
    match groups.is_empty() {
        false => Ok(groups),
        true => Err(format!("no unit {name} runs: it has no control group")),
    }
}

/// What systemd calls the unit.
pub fn full(name: &str) -> String {
    let has_kind = KINDS.iter().any(|kind| name.ends_with(kind));
    if has_kind { name.to_owned() } else { format!("{name}.service") }
}

/// If a unit's name could be taken for one of the kernel's files (`cpu.service`), the name of its directory begins with an underscore.
fn is_of(directory: &str, name: &str) -> bool {
    directory == name || directory.strip_prefix('_') == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_a_service_where_nothing_else_is_said() {
        assert_eq!(full("nginx"), "nginx.service");
        assert_eq!(full("getty@tty1"), "getty@tty1.service");
        assert_eq!(full("user.slice"), "user.slice");
        assert!(is_of("nginx.service", "nginx.service") && is_of("_cpu.service", "cpu.service"));
        assert!(!is_of("nginx.service.d", "nginx.service") && !is_of("my-nginx.service", "nginx.service"));
        assert!(groups("no-such-unit-here").is_err_and(|why| why.contains("no-such-unit-here.service")));
    }
}
