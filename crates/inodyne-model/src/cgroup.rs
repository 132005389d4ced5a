//! What people call a control group.

/// The number of digits in a container id: 256 bits in hexadecimal, with all runtimes.
pub const ID_DIGITS: usize = 64;
/// How many of them are shown, as in `docker ps`.
const DIGITS_TOLD: usize = 12;

/// The most telling part of a control group's path: the container, the innermost systemd unit, or else all of it.
///
/// ```
/// use inodyne_model::cgroup::short_name;
/// assert_eq!(short_name("/system.slice/db.service/workers"), "db.service");
/// let id = "3f2a".repeat(16);
/// assert_eq!(short_name(&format!("/machine.slice/libpod-{id}.scope/container")), "container 3f2a3f2a3f2a");
/// assert_eq!(short_name("/web/backend"), "/web/backend");
/// ```
pub fn short_name(path: &str) -> String {
    let parts = || path.rsplit('/');
    if let Some(id) = parts().find_map(container_id) {
        return format!("container {}", &id[..DIGITS_TOLD]);
    }
    let is_unit = |part: &&str| [".service", ".scope", ".slice"].iter().any(|kind| part.ends_with(kind));
    parts().find(is_unit).unwrap_or(path).to_owned()
}

/// The container id in the name of a control group: `docker-ID.scope`, `cri-containerd-ID.scope`, `libpod-ID`, `ID`. The group of the
/// process that watches a container (`libpod-conmon-ID.scope`) is not the container's.
pub fn container_id(directory: &str) -> Option<&str> {
    let stem = directory.strip_suffix(".scope").unwrap_or(directory);
    let id = stem.rsplit(['-', ':']).next()?;
    (id.len() == ID_DIGITS && id.bytes().all(is_id_digit) && !stem.contains("conmon")).then_some(id)
}

/// Whether this may be a digit of a container id.
pub fn is_id_digit(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_that_says_something_is_told() {
        let id = "0123456789abcdef".repeat(4);
        let of = |path: &str| short_name(&path.replace("ID", &id));
        assert_eq!(of("/docker/ID"), "container 0123456789ab");
        assert_eq!(of("/kubepods.slice/kubepods-pod1.slice/cri-containerd-ID.scope"), "container 0123456789ab");
        assert_eq!(of("/user.slice/user-1000.slice/user@1000.service/app.slice/backup.service"), "backup.service");
        assert_eq!(of("/user.slice/user-1000.slice/session-3.scope"), "session-3.scope");
        assert_eq!(of("/machine.slice/libpod-conmon-ID.scope"), of("/libpod-conmon-ID.scope"));
        assert_eq!(of("/"), "/");
    }
}
