//! Where file systems are mounted: a directory above a mount point can be renamed, and takes what is mounted there with it.

use std::{
    fs,
    os::{
        fd::{AsFd, AsRawFd},
        unix::ffi::OsStrExt,
    },
};

/// All mount points, written as `/proc` writes them.
pub(super) struct MountPoints(Vec<Vec<u8>>);

impl MountPoints {
    /// As they are now; none where that cannot be told.
    pub fn now() -> Option<Self> {
        let told = fs::read("/proc/self/mountinfo").ok()?;
        let of_line = |line: &[u8]| line.split(|byte| *byte == b' ').nth(4).map(<[u8]>::to_vec);
        Some(Self(told.split(|byte| *byte == b'\n').filter_map(of_line).collect()))
    }

    /// Whether something is mounted on `name` in this directory, or below it; taken to be so where that cannot be told.
    pub fn any_at(&self, directory: impl AsFd, name: &[u8]) -> bool {
        let link = format!("/proc/self/fd/{}", directory.as_fd().as_raw_fd());
        let Ok(directory) = fs::read_link(link) else { return true };
        let path = written(directory.join(std::ffi::OsStr::from_bytes(name)).as_os_str().as_bytes());
        let is_at = |point: &Vec<u8>| point.strip_prefix(&path[..]).is_some_and(|rest| matches!(rest, [] | [b'/', ..]));
        self.0.iter().any(is_at)
    }
}

/// A path as in mountinfo: spaces, tabs, line ends and backslashes are written as three octal digits.
fn written(path: &[u8]) -> Vec<u8> {
    path.iter().fold(Vec::new(), |mut written, byte| {
        match byte {
            b' ' | b'\t' | b'\n' | b'\\' => written.extend(format!("\\{byte:03o}").bytes()),
            byte => written.push(*byte),
        }
        written
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_at_or_below_counts() {
        let root = fs::File::open("/").expect("opened");
        let points = |all: &[&str]| MountPoints(all.iter().map(|point| point.as_bytes().to_vec()).collect());
        assert!(points(&["/proc", "/a/b"]).any_at(&root, b"a"));
        assert!(points(&["/a"]).any_at(&root, b"a"));
        assert!(!points(&["/", "/ab/c", "/x/a"]).any_at(&root, b"a"));
        assert!(points(&[r"/a\040b\134/c"]).any_at(&root, br"a b\"));
        assert!(MountPoints::now().expect("known").any_at(&root, b"proc"));
    }
}
