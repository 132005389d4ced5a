//! What the kernel says about the mount that a path is on.
//!
//! The path is matched by the mount's number (statx), not by its prefix: bind mounts and mounts over mounts make
//! prefixes lie. The thread's own view is read, because a namespace belongs to a thread.

use std::{ffi::OsString, fs, os::unix::ffi::OsStringExt, path::Path};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use crate::LabError;

/// One line of mountinfo, as far as it matters.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MountInfo {
    /// `ext4`.
    pub fs: String,
    /// `/dev/loop0`.
    pub source: String,
    /// As in /proc/mounts: the mount's options and the file system's, each once.
    pub options: String,
    /// Device number of the file system; major 0 where it has no block device of its own.
    pub device: (u32, u32),
}

/// The mount that `path` is on.
pub(crate) fn of(path: &Path) -> Result<MountInfo, LabError> {
    let stat =
        statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).map_err(|errno| LabError::io("inspect", path, errno))?;
    let file = "/proc/thread-self/mountinfo";
    // Somebody's mount may have a name that is not valid text.
    let bytes = fs::read(file).map_err(|error| LabError::io("read", file, error))?;
    let text = String::from_utf8_lossy(&bytes);
    let found = text.lines().find_map(|line| parse(line).filter(|(id, _)| *id == stat.stx_mnt_id));
    found.map(|(_, info)| info).ok_or_else(|| {
        LabError::io("find the mount of", path, std::io::Error::other("it is not in /proc/self/mountinfo"))
    })
}

fn parse(line: &str) -> Option<(u64, MountInfo)> {
    let (head, tail) = line.split_once(" - ")?;
    let mut head = head.split(' ');
    let id = head.next()?.parse().ok()?;
    let (major, minor) = head.nth(1)?.split_once(':')?;
    let device = (major.parse().ok()?, minor.parse().ok()?);
    let mount_options = head.nth(2)?;
    let mut tail = tail.splitn(3, ' ');
    let (fs, source, super_options) = (tail.next()?, tail.next()?, tail.next()?);
    let mut options: Vec<&str> = mount_options.split(',').collect();
    let more = super_options.split(',').filter(|option| !option.is_empty());
    // A read-write mount of a read-only file system shows both; the file system has the last word.
    for option in more {
        if option == "ro" {
            options[0] = "ro";
        } else if option != "rw" && !options.contains(&option) {
            options.push(option);
        }
    }
    Some((id, MountInfo { fs: unescape(fs), source: unescape(source), options: unescape(&options.join(",")), device }))
}

/// Undoes `\040` and its like.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let octal = (first == b'\\').then(|| after.get(..3)).flatten();
        let octal = octal.and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

    use super::*;
    use crate::mount::{Mount, tests::enter_namespace};

    #[test]
    fn a_line_is_read() {
        let line =
            r"36 35 98:0 /mnt1 /my\040mount rw,noatime shared:1 master:2 - ext4 /dev/my\040disk rw,errors=continue";
        let (id, info) = parse(line).unwrap();
        assert_eq!((id, info.fs.as_str(), info.source.as_str()), (36, "ext4", "/dev/my disk"));
        assert_eq!((info.options.as_str(), info.device), ("rw,noatime,errors=continue", (98, 0)));
        let line = "26 24 0:24 / /dev/pts rw,relatime - devpts devpts ro,relatime,mode=600";
        assert_eq!(parse(line).unwrap().1.options, "ro,relatime,mode=600");
        assert!(parse("nonsense").is_none());
    }

    #[test]
    fn proc_is_proc() {
        let info = of(Path::new("/proc/self")).unwrap();
        assert_eq!((info.fs.as_str(), info.device.0), ("proc", 0));
    }
    #[test]
    fn a_mount_whose_name_is_no_text_hides_no_other() {
        enter_namespace();
        let directory = tempfile::tempdir().unwrap();
        let name = directory.path().join(OsStr::from_bytes(b"caf\xe9"));
        fs::create_dir(&name).unwrap();
        let _mount = Mount::new("tmpfs", "test", "", &name).unwrap();
        assert_eq!(of(Path::new("/proc/self")).unwrap().fs, "proc");
        assert_eq!(of(&name).unwrap().fs, "tmpfs");
    }
}
