//! Whether two places hold the same data: a digest of all that a command could tell apart, except times and owners.
//!
//! Over the sorted paths: each one's type, mode, size, the target of a link, and the contents of a file. The sizes of directories
//! are the file system's own business. It detects accidental differences, such as an archive cut short or a script that does not
//! do the same thing twice; it is no protection against somebody who wants two trees to look alike.

use std::{ffi::CStr, os::unix::ffi::OsStrExt, path::Path, path::PathBuf};

use rustix::{
    fs::{FileType, OFlags, readlinkat},
    io::{read, retry_on_intr},
};
use xxhash_rust::xxh3::Xxh3;

use crate::{
    LabError,
    error::still_wanted,
    walk::{Entry, open_quietly, walk},
};

/// The digest of what is below `root`: `xxh3:` and 32 hexadecimal digits.
pub(crate) fn of(root: &Path) -> Result<String, LabError> {
    let mut whole = Hash::new();
    for (path, entry) in entries(root)? {
        whole.add(path.as_os_str().as_bytes());
        whole.add(&entry.to_le_bytes());
    }
    Ok(format!("xxh3:{:032x}", whole.end()))
}

/// The first path that is not the same below both.
pub(crate) fn first_difference(a: &Path, b: &Path) -> Result<Option<PathBuf>, LabError> {
    let (a, b) = (entries(a)?, entries(b)?);
    let differs = a.iter().zip(&b).find(|(a, b)| a != b).map(|(a, b)| a.0.clone().min(b.0.clone()));
    let longer = || a.get(b.len()).or_else(|| b.get(a.len())).map(|(path, _)| path.clone());
    Ok(differs.or_else(longer))
}

/// All that is below, sorted by path, each with what it is.
fn entries(root: &Path) -> Result<Vec<(PathBuf, Value)>, LabError> {
    let mut entries = Vec::new();
    let mut buffer = vec![0; 256 << 10];
    walk(root, &mut |entry| {
        entries.push((entry.path.to_owned(), value(root, entry, &mut buffer)?));
        Ok(())
    })?;
    entries.sort_unstable();
    Ok(entries)
}

fn value(root: &Path, entry: &Entry<'_>, buffer: &mut [u8]) -> Result<Value, LabError> {
    let failed = |errno| LabError::io("read", root.join(entry.path), errno);
    let mut hash = Hash::new();
    hash.add(&entry.stat.stx_mode.to_le_bytes());
    let kind = entry.file_type();
    if kind != FileType::Directory {
        hash.add(&entry.stat.stx_size.to_le_bytes());
    }
    if kind == FileType::Symlink {
        let target = readlinkat(entry.parent, entry.name, Vec::new()).map_err(failed)?;
        hash.add(CStr::to_bytes(&target));
    }
    if kind == FileType::RegularFile {
        let file = open_quietly(entry.parent, entry.name, OFlags::empty()).map_err(failed)?;
        loop {
            still_wanted()?;
            let mut length = 0;
            while length < buffer.len() {
                match retry_on_intr(|| read(&file, &mut buffer[length..])).map_err(failed)? {
                    0 => break,
                    more => length += more,
                }
            }
            hash.add(&buffer[..length]);
            if length < buffer.len() {
                break;
            }
        }
    }
    Ok(hash.end())
}

/// The value of a hash.
type Value = u128;

/// XXH3 with 128 bits over pieces, each with its length, so that pieces cannot be cut differently.
struct Hash(Box<Xxh3>);

impl Hash {
    fn new() -> Self {
        Self(Box::new(Xxh3::new()))
    }

    fn add(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn end(&self) -> Value {
        self.0.digest128()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, symlink},
    };

    use super::*;

    fn tree(root: &Path) {
        fs::create_dir_all(root.join("b/c")).unwrap();
        fs::write(root.join("b/f"), vec![7; 300_000]).unwrap();
        fs::write(root.join("a"), "").unwrap();
        symlink("b/f", root.join("l")).unwrap();
    }

    #[test]
    fn what_differs_is_told_apart_and_named() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        tree(one.path());
        let digest = of(one.path()).unwrap();
        assert_eq!(digest.len(), "xxh3:".len() + 32);
        type Change = (&'static str, fn(&Path));
        let changes: [Change; 8] = [
            ("", |_| ()),
            ("b/f", |root| {
                let mut content = vec![7; 300_000];
                content[299_999] = 8;
                fs::write(root.join("b/f"), content).unwrap();
            }),
            ("b/f", |root| fs::write(root.join("b/f"), vec![7; 300_001]).unwrap()),
            ("a", |root| fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o640)).unwrap()),
            ("l", |root| {
                fs::remove_file(root.join("l")).unwrap();
                symlink("b/g", root.join("l")).unwrap();
            }),
            ("a", |root| fs::rename(root.join("a"), root.join("aa")).unwrap()),
            ("z", |root| fs::create_dir(root.join("z")).unwrap()),
            ("b/c", |root| fs::remove_dir(root.join("b/c")).unwrap()),
        ];
        for (path, change) in changes {
            fs::remove_dir_all(other.path()).unwrap();
            fs::create_dir(other.path()).unwrap();
            tree(other.path());
            change(other.path());
            assert_eq!(of(other.path()).unwrap() == digest, path.is_empty(), "{path}");
            let first = first_difference(one.path(), other.path()).unwrap();
            assert_eq!(first.unwrap_or_default(), Path::new(path));
        }
    }

    #[test]
    fn pieces_and_their_order_count() {
        let hash = |pieces: &[&[u8]]| {
            let mut hash = Hash::new();
            pieces.iter().for_each(|piece| hash.add(piece));
            hash.end()
        };
        let all = [
            hash(&[]),
            hash(&[b""]),
            hash(&[b"\0"]),
            hash(&[b"\0\0"]),
            hash(&[b"ab", b"c"]),
            hash(&[b"a", b"bc"]),
            hash(&[b"c", b"ab"]),
            hash(&[b"abcdefgh"]),
            hash(&[b"abcdefgh", b""]),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(all[..at].iter().all(|other| other != one), "{at}");
        }
    }
}
