//! Unpacking a tar archive into a place: plain, or compressed by gzip, zstd or xz, told by its first bytes.
//!
//! No entry may leave the place, neither by `..` nor over a symbolic link; one that tries is an error, because then
//! the place would not hold what the archive says. Owners in the archive are ignored; devices and pipes are reported
//! as left out.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek},
    path::{Path, PathBuf},
};

use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
use tar::{Archive, Entry, EntryType};

use crate::LabError;

/// Unpacks `archive` into `target`, which exists; returns what was left out.
pub(crate) fn unpack(archive: &Path, target: &Path) -> Result<Vec<PathBuf>, LabError> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => LabError::io("write", target, error),
        _ => LabError::Archive { path: archive.into(), problem: words(&error) },
    };
    let mut reader = Archive::new(open(archive).map_err(failed)?);
    reader.set_preserve_permissions(true);
    reader.set_preserve_ownerships(false);
    let mut left_out = Vec::new();
    let mut directories = Vec::new();
    for entry in reader.entries().map_err(failed)? {
        let mut entry = entry.map_err(failed)?;
        let path = entry.path().map_err(failed)?.into_owned();
        match entry.header().entry_type() {
            EntryType::XGlobalHeader | EntryType::XHeader => continue,
            EntryType::Char | EntryType::Block | EntryType::Fifo => {
                left_out.push(path);
                continue;
            }
            // Last, so that a directory without write permission can be filled and its time stays.
            EntryType::Directory => {
                directories.push(entry);
                continue;
            }
            _ => {}
        }
        if is_sparse(&mut entry).map_err(failed)? {
            let problem = format!("its entry {} is sparse as POSIX has it: use tar --format=gnu", path.display());
            return Err(LabError::Archive { path: archive.into(), problem });
        }
        if !entry.unpack_in(target).map_err(failed)? {
            return Err(leaves(archive, &path));
        }
    }
    directories.sort_by(|a, b| b.path_bytes().cmp(&a.path_bytes()));
    for mut entry in directories {
        let path = entry.path().map_err(failed)?.into_owned();
        if !entry.unpack_in(target).map_err(failed)? {
            return Err(leaves(archive, &path));
        }
        let seconds = entry.header().mtime().map_err(failed)?;
        let time = Timespec { tv_sec: i64::try_from(seconds).unwrap_or_default(), tv_nsec: 0 };
        let times = Timestamps { last_access: time, last_modification: time };
        let directory = target.join(path.strip_prefix("/").unwrap_or(&path));
        utimensat(CWD, &directory, &times, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| LabError::io("write", directory, errno))?;
    }
    Ok(left_out)
}

/// Whether an entry holds the pieces of a sparse file with a list of them, in a form that would be unpacked as if it were the
/// file. (The form of GNU tar before is a kind of entry of its own, and unpacked as it should be.)
fn is_sparse(entry: &mut Entry<'_, impl Read>) -> io::Result<bool> {
    let Some(extensions) = entry.pax_extensions()? else { return Ok(false) };
    // What looks malformed is a value with a line end in it, a name for example.
    Ok(extensions.flatten().any(|extension| extension.key_bytes().starts_with(b"GNU.sparse.")))
}

fn leaves(archive: &Path, entry: &Path) -> LabError {
    LabError::Archive { path: archive.into(), problem: format!("its entry {} would leave the place", entry.display()) }
}

/// The archive's bytes, whatever they are compressed by.
fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    let mut file = File::open(path)?;
    let mut start = Vec::new();
    file.by_ref().take(512).read_to_end(&mut start)?;
    file.rewind()?;
    let file = BufReader::with_capacity(256 << 10, file);
    Ok(match start.as_slice() {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(file)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(zstd::Decoder::with_buffer(file)?),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Box::new(XzReader::new(file, true)),
        tar if tar.get(257..262) == Some(b"ustar") => Box::new(file),
        _ => return Err(io::Error::other("is no tar archive (tar, tar.gz, tar.zst and tar.xz are read)")),
    })
}

/// An error with its causes, in one line: the outer ones only say where.
fn words(error: &io::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text.replace('\n', " ")
}
