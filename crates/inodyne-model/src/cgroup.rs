//! What people call a control group.

/// Digits of a container's id that are told, as `docker ps` does.
const ID_DIGITS: usize = 12;
/// So many hexadecimal digits are the id of a container.
const ID_LENGTH: usize = 64;

/// What tells most of a control group's path: the container, the innermost unit of systemd, or else all of it.
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
    if let Some(id) = parts().find_map(container) {
        return format!("container {}", &id[..ID_DIGITS]);
    }
    let is_unit = |part: &&str| [".service", ".scope", ".slice"].iter().any(|kind| part.ends_with(kind));
    parts().find(is_unit).unwrap_or(path).to_owned()
}

/// The id of a container in the name of its group: `docker-ID.scope`, `libpod-ID`, `cri-containerd-ID.scope`, or `ID` alone. What watches over
/// one of Podman's is no container itself.
fn container(part: &str) -> Option<&str> {
    let words = part.split(|letter: char| !letter.is_ascii_alphanumeric());
    let is_id = |word: &&str| word.len() == ID_LENGTH && word.bytes().all(|digit| digit.is_ascii_hexdigit());
    words.into_iter().find(is_id).filter(|_| !part.contains("conmon"))
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
