//! Archives in the format of an initial RAM file system: cpio "newc", uncompressed.
//!
//! Written here, and not by a program, so that the same content gives the same bytes: no times, no owners but root,
//! numbers given in order. Several archives one after the other are one initial RAM file system.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const DIRECTORY: u32 = 0o040_755;
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_777;
/// Documentation/driver-api/early-userspace/buffer-format.rst.
const MAGIC: &str = "070701";

/// An archive under construction.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
    directories: BTreeSet<String>,
}

impl Archive {
    /// Adds a directory and those above it, each once.
    pub fn directory(&mut self, path: &str) {
        let path = path.trim_matches('/');
        if path.is_empty() || self.directories.contains(path) {
            return;
        }
        self.parents(path);
        self.directories.insert(path.to_owned());
        self.entry(path, DIRECTORY, &[]);
    }

    /// Adds a file with these permission bits, and the directories above it.
    pub fn file(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.parents(path.trim_matches('/'));
        self.entry(path.trim_matches('/'), REGULAR | (mode & 0o7777), content);
    }

    /// Adds a symbolic link, and the directories above it.
    pub fn symlink(&mut self, path: &str, target: &str) {
        self.parents(path.trim_matches('/'));
        self.entry(path.trim_matches('/'), SYMLINK, target.as_bytes());
    }

    /// Adds a file or a whole directory of the host; names in order.
    ///
    /// # Errors
    /// It cannot be read, or holds what is neither a file, a directory nor a symbolic link.
    pub fn copy(&mut self, from: &Path, to: &str) -> io::Result<()> {
        let metadata = fs::symlink_metadata(from)?;
        if metadata.is_dir() {
            self.directory(to);
            let mut names: Vec<_> =
                fs::read_dir(from)?.map(|entry| entry.map(|e| e.file_name())).collect::<Result<_, _>>()?;
            names.sort();
            for name in names {
                self.copy(&from.join(&name), &format!("{to}/{}", name.to_string_lossy()))?;
            }
        } else if metadata.is_symlink() {
            self.symlink(to, &fs::read_link(from)?.to_string_lossy());
        } else if metadata.is_file() {
            self.file(to, metadata.permissions().mode(), &fs::read(from)?);
        } else {
            return Err(io::Error::other(format!("{} is not a file, directory or symbolic link", from.display())));
        }
        Ok(())
    }

    /// The finished archive. Its length is a multiple of four, so that another one may follow.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn parents(&mut self, path: &str) {
        if let Some((parent, _)) = path.rsplit_once('/') {
            self.directory(parent);
        }
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let links = 1;
        let (uid, gid, time, device) = (0, 0, 0, 0);
        let size = u32::try_from(content.len()).expect("no file of 4 GB in a RAM disk");
        let name_size = name.len() as u32 + 1;
        let check = 0;
        let fields =
            [self.entries, mode, uid, gid, links, time, size, device, device, device, device, name_size, check];
        self.bytes.extend_from_slice(MAGIC.as_bytes());
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_come_once_and_before_what_is_in_them() {
        let mut archive = Archive::default();
        archive.file("/a/b/one", 0o644, b"1");
        archive.file("a/b/two", 0o755, b"22");
        archive.symlink("a/three", "b/one");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8_lossy(&bytes);
        let names: Vec<&str> =
            text.split(MAGIC).skip(1).map(|entry| entry[104..].split('\0').next().unwrap()).collect();
        assert_eq!(names, ["a", "a/b", "a/b/one", "a/b/two", "a/three", "TRAILER!!!"]);
    }

    #[test]
    fn the_same_content_gives_the_same_bytes() {
        let made = || {
            let scratch = tempfile::tempdir().unwrap();
            for name in ["z", "a", "m"] {
                fs::write(scratch.path().join(name), name).unwrap();
            }
            let mut archive = Archive::default();
            archive.copy(scratch.path(), "data").unwrap();
            archive.finish()
        };
        assert_eq!(made(), made());
    }
}
