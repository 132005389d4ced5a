//! The machine and the user, as the system tells them.

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
    Host {
        kernel: text(uname.release()),
        arch: text(uname.machine()),
        cpus: std::thread::available_parallelism().map_or(0, |n| n.get() as u32),
        cpu_model: of_cpu("model name"),
        memory_bytes: rustix::system::sysinfo().totalram * u64::from(rustix::system::sysinfo().mem_unit),
        virtual_machine: of_cpu("flags").split(' ').any(|flag| flag == "hypervisor"),
    }
}

/// Seconds since 1970.
pub fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Whose the command is: the named user, or who called sudo, or none where nobody is to be changed.
pub fn user(name: Option<&str>) -> Result<Option<User>, Failure> {
    let us = rustix::process::geteuid();
    let known = match name {
        Some(name) => Some(
            User::named(name)
                .ok_or_else(|| Failure::new(ExitStatus::Usage, format_args!("--user {name}: there is no such user")))?,
        ),
        None => {
            let caller = std::env::var("SUDO_UID").ok().filter(|_| us.is_root());
            caller.and_then(|uid| uid.parse().ok()).and_then(User::with_id)
        }
    };
    Ok(known.filter(|user| user.uid != us.as_raw()))
}
