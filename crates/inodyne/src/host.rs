//! The machine and the user, as the system reports them.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use inodyne_launch::User;
use inodyne_model::host::Host;

use crate::failure::{ExitStatus, Failure};

/// The machine, as far as it matters to a measurement.
pub fn describe() -> Host {
    let uname = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let of_cpu = |key: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(key));
        line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
    };
    let online = fs::read_to_string("/sys/devices/system/cpu/online").ok().and_then(|list| cpus_in(&list));
    let usable = std::thread::available_parallelism().map_or(0, |n| n.get() as u32);
    Host {
        kernel: text(uname.release()),
        arch: text(uname.machine()),
        cpus: online.unwrap_or(usable),
        usable_cpus: online.filter(|online| *online > usable).map(|_| usable),
        cpu_model: of_cpu("model name"),
        memory_bytes: rustix::system::sysinfo().totalram * u64::from(rustix::system::sysinfo().mem_unit),
        virtual_machine: of_cpu("flags").split(' ').any(|flag| flag == "hypervisor"),
    }
}

/// How many CPUs a list of the kernel names: `0-3,5`; none where it is no such list.
fn cpus_in(list: &str) -> Option<u32> {
    let in_range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        last.parse::<u32>().ok()?.checked_sub(first.parse().ok()?)?.checked_add(1)
    };
    list.trim().split(',').map(in_range).try_fold(0, |sum: u32, count| sum.checked_add(count?))
}

/// Seconds since 1970.
pub fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The user whose command it is: the named one, or the one who called sudo, or none if the user need not change.
pub fn user(name: Option<&str>) -> Result<Option<User>, Failure> {
    let us = rustix::process::geteuid();
    let known = match name {
        Some(name) => Some(
            User::named(name)
                .ok_or_else(|| Failure::new(ExitStatus::Usage, format_args!("--user {name}: there is no such user")))?,
        ),
        None if us.is_root() => who_called_sudo(|name| std::env::var(name).ok())?,
        None => None,
    };
    Ok(known.filter(|user| user.uid != us.as_raw()))
}

/// Who called sudo, from the variables that it sets (sudo(8)). If this program cannot find the user, as a static one cannot find those of
/// a directory service, the variables say enough to run the command as that user; it is never run as root instead.
fn who_called_sudo(variable: impl Fn(&str) -> Option<String>) -> Result<Option<User>, Failure> {
    let Some(uid) = variable("SUDO_UID") else { return Ok(None) };
    let number = |text: &str| text.parse::<u32>().ok();
    let known = number(&uid).and_then(|uid| {
        User::with_id(uid).or_else(|| {
            let (name, gid) = (variable("SUDO_USER")?, number(&variable("SUDO_GID")?)?);
            let home = variable("SUDO_HOME").unwrap_or_else(|| "/".to_owned()).into();
            Some(User { name, uid, gid, groups: vec![gid], home })
        })
    });
    let unknown = || {
        Failure::new(
            ExitStatus::Usage,
            format_args!("SUDO_UID={uid}: there is no such user: --user NAME says whose the command is"),
        )
    };
    known.map(Some).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_called_sudo_is_never_root_for_want_of_an_entry() {
        let called = |set: &[(&str, &str)]| {
            who_called_sudo(|name| set.iter().find(|one| one.0 == name).map(|one| one.1.to_owned()))
        };
        assert!(called(&[]).expect("nobody did").is_none());
        let elsewhere = [("SUDO_UID", "3999999"), ("SUDO_GID", "3999998"), ("SUDO_USER", "somebody")];
        let user = called(&elsewhere).expect("sudo said who").expect("somebody did");
        assert_eq!(
            (user.uid, user.gid, user.groups, user.name.as_str()),
            (3_999_999, 3_999_998, vec![3_999_998], "somebody")
        );
        assert!(called(&elsewhere[..1]).is_err());
        assert!(called(&[("SUDO_UID", "me")]).is_err());
        assert_eq!(called(&[("SUDO_UID", "0")]).ok().flatten().map(|user| user.name), Some("root".to_owned()));
    }
}
