//! Whether two places hold the same data: a digest of all that a command could tell apart, but for times and owners.
//!
//! Over the sorted paths: of each its type, mode, size, the target of a link, and the contents of a file. Sizes of directories
//! are the file system's own business. It tells apart what differs by accident, an archive cut short, a script that does not
//! do the same twice; it is no protection against somebody who wants two trees to look alike.

use std::{ffi::CStr, os::unix::ffi::OsStrExt, path::Path, path::PathBuf};

use rustix::{
    fs::{FileType, OFlags, readlinkat},
    io::{read, retry_on_intr},
};

use crate::{
    LabError,
    walk::{Entry, open_quietly, walk},
};

/// The digest of what is below `root`, as 32 hexadecimal digits.
pub(crate) fn of(root: &Path) -> Result<String, LabError> {
    let mut whole = Hash::new();
    for (path, entry) in entries(root)? {
        whole.add(path.as_os_str().as_bytes());
        entry.0.iter().for_each(|half| whole.add(&half.to_le_bytes()));
    }
    let [high, low] = whole.end().0;
    Ok(format!("{high:016x}{low:016x}"))
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

/// What a hash comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Value([u64; 2]);

/// Two lanes of multiply and fold over eight bytes at a time, as wyhash does, each with keys of its own; the length of each
/// piece goes in as well.
#[derive(Clone, Copy, Debug)]
struct Hash([u64; 2]);

/// Odd numbers without a pattern: the first digits of the square roots of 2, 3, 5 and 7, as in SHA-512.
const KEYS: [[u64; 2]; 2] =
    [[0x6a09_e667_f3bc_c909, 0xbb67_ae85_84ca_a73b], [0x3c6e_f372_fe94_f82b, 0xa54f_f53a_5f1d_36f1]];

impl Hash {
    const fn new() -> Self {
        Self([KEYS[0][1], KEYS[1][1]])
    }

    fn add(&mut self, bytes: &[u8]) {
        let mut pieces = bytes.chunks_exact(8);
        for piece in &mut pieces {
            self.word(u64::from_le_bytes(piece.try_into().unwrap_or_default()));
        }
        let mut last = [0; 8];
        last[..pieces.remainder().len()].copy_from_slice(pieces.remainder());
        self.word(u64::from_le_bytes(last));
        self.word(bytes.len() as u64);
    }

    fn word(&mut self, word: u64) {
        for (lane, [add, multiply]) in self.0.iter_mut().zip(KEYS) {
            let product = u128::from(*lane ^ word ^ add) * u128::from(multiply);
            // A product of zero must neither forget what came before nor leave it as it was.
            let folded = product as u64 ^ (product >> 64) as u64;
            *lane ^= folded.wrapping_add(word ^ multiply).rotate_left(29);
        }
    }

    fn end(mut self) -> Value {
        (0..4).for_each(|round| self.word(round));
        Value(self.0)
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
        assert_eq!(digest.len(), 32);
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
