//! Names of control groups, by the numbers that the kernel side has seen (`bpf/cgroup.h`): looked up soon after they appear, since a group may
//! be gone by the end.
//!
//! A group's number is all that the file handle of its directory consists of, so the directory can be opened by number alone. The root's number
//! tells nothing, so it has no name here; nor has a group that is already gone, or lies outside of what this process can see.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::{Path, PathBuf};

use crate::map::ArrayView;
use crate::skeleton::InodyneMaps;

/// The path of a group below the mount point, by its number: `/system.slice/db.service`.
pub type Names = BTreeMap<u64, String>;

/// The groups that have appeared so far.
pub struct Cgroups {
    seen: ArrayView<u64>,
    asked: usize,
    names: Names,
    /// Where cgroup v2 is mounted, once that was needed.
    root: Option<(PathBuf, File)>,
}

impl Cgroups {
    /// None yet.
    pub fn new(maps: &InodyneMaps<'static>) -> Result<Cgroups, libbpf_rs::Error> {
        Ok(Cgroups { seen: ArrayView::new(&maps.cgroups_seen)?, asked: 0, names: Names::new(), root: None })
    }

    /// Looks up the names of those that are new among the first `used`.
    pub fn look(&mut self, used: u32) {
        let used = (used as usize).min(self.seen.len());
        while self.asked < used {
            let number = self.seen.get(self.asked);
            // It has been counted, but is still being written.
            if number == 0 {
                return;
            }
            self.asked += 1;
            self.root = self.root.take().or_else(root);
            let name = self.root.as_ref().and_then(|(path, root)| name(path, root, number));
            self.names.extend(name.map(|name| (number, name)));
        }
    }

    /// All names.
    pub fn names(&self) -> &Names {
        &self.names
    }
}

/// Where cgroup v2 is mounted.
fn root() -> Option<(PathBuf, File)> {
    let path = mount_point(&std::fs::read("/proc/self/mountinfo").ok()?)?;
    let root = File::open(&path).ok()?;
    Some((path, root))
}

/// The first mount point of cgroup v2. The name of any other mount need not be UTF-8.
fn mount_point(mounts: &[u8]) -> Option<PathBuf> {
    String::from_utf8_lossy(mounts).lines().find_map(mounted_at).map(Path::to_owned)
}

/// The mount point in a line of /proc/PID/mountinfo, if it is of cgroup v2: proc_pid_mountinfo(5).
fn mounted_at(line: &str) -> Option<&Path> {
    let (mount, filesystem) = line.split_once(" - ")?;
    (filesystem.split(' ').next() == Some("cgroup2")).then(|| mount.split(' ').nth(4).map(Path::new))?
}

/// A `struct file_handle` (open_by_handle_at(2)) with the number of a kernfs directory.
#[repr(C)]
struct Handle {
    bytes: u32,
    kind: i32,
    number: [u8; 8],
}

fn name(root: &Path, mount: &File, number: u64) -> Option<String> {
    const OF_KERNEL: i32 = 0xfe; // include/linux/exportfs.h: FILEID_KERNFS
    let mut handle = Handle { bytes: 8, kind: OF_KERNEL, number: number.to_ne_bytes() };
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
    // SAFETY: a descriptor that is open, and a handle with as many bytes as it says; the kernel only reads it.
    let opened = unsafe { libc::syscall(libc::SYS_open_by_handle_at, mount.as_raw_fd(), &raw mut handle, flags) };
    let opened = i32::try_from(opened).ok().filter(|opened| *opened >= 0)?;
    // SAFETY: just opened, and owned by nobody else.
    let directory = unsafe { File::from_raw_fd(opened) };
    let path = std::fs::read_link(format!("/proc/self/fd/{}", directory.as_raw_fd())).ok()?;
    let below = path.strip_prefix(root).ok()?.to_str()?;
    (!below.is_empty()).then(|| format!("/{below}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_version_2_are_where_they_are_mounted() {
        let line = "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw";
        assert_eq!(mounted_at(line), Some(Path::new("/sys/fs/cgroup/unified")));
        assert_eq!(mounted_at("32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu"), None);
        assert_eq!(mounted_at(""), None);
        let others = b"40 31 8:1 / /mnt/caf\xe9 rw - ext4 /dev/sda1 rw\n".as_slice();
        assert_eq!(mount_point(others), None);
        let all = [others, line.as_bytes()].concat();
        assert_eq!(mount_point(&all), Some(PathBuf::from("/sys/fs/cgroup/unified")));
    }
}
