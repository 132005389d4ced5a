//! Unpacking a tar archive into a place: plain, or compressed with gzip, zstd or xz, recognised by its first bytes.
//!
//! No entry may leave the place, neither by `..` nor through a symbolic link; one that tries is an error, because then
//! the place would not hold what the archive says. Owners in the archive are ignored; devices and pipes are reported
//! as left out. Writing itself is in `target`.

mod target;

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek},
    os::unix::fs::{FileTypeExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;
use tar::{Archive, Entry, EntryType};

use self::target::Target;
use crate::{LabError, beneath::plain, error::still_wanted};

/// Unpacks `archive` into `target`, which exists; returns what was left out.
pub(crate) fn unpack(archive: &Path, target: &Path) -> Result<Vec<PathBuf>, LabError> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => LabError::io("write", target, error),
        _ => LabError::Archive { path: archive.into(), problem: words(&error) },
    };
    let wrong = |problem: String| LabError::Archive { path: archive.into(), problem };
    let leaves = |path: &Path| wrong(format!("its entry {} would leave the place", path.display()));
    let mut reader = Archive::new(open(archive).map_err(failed)?);
    let mut target = Target::open(target).map_err(failed)?;
    let mut left_out = Vec::new();
    for entry in reader.entries().map_err(failed)? {
        let mut entry = entry.map_err(failed)?;
        still_wanted()?;
        let named = entry.path().map_err(failed)?.into_owned();
        let of_entry = |error: io::Error| match error.raw_os_error() {
            Some(libc::ELOOP) => leaves(&named),
            Some(libc::EINTR) => LabError::Interrupted,
            Some(_) => failed(io::Error::new(error.kind(), format!("its entry {}: {error}", named.display()))),
            None => failed(error),
        };
        let path = plain(&named).ok_or_else(|| leaves(&named))?;
        let kind = entry.header().entry_type();
        match kind {
            EntryType::XGlobalHeader | EntryType::XHeader | EntryType::GNULongName | EntryType::GNULongLink => continue,
            EntryType::Char | EntryType::Block | EntryType::Fifo => {
                left_out.push(named);
                continue;
            }
            _ => {}
        }
        if is_sparse(&mut entry).map_err(failed)? {
            return Err(wrong(format!(
                "its entry {} is sparse as POSIX has it: use tar --format=gnu",
                named.display()
            )));
        }
        let seconds = entry.header().mtime().map_err(failed)?;
        let mode = entry.header().mode().map_err(failed)?;
        let links_to = entry.link_name().map_err(failed)?.map(|to| to.into_owned());
        // Archives from before POSIX mark directories by a slash.
        let is_old_directory = entry.header().as_ustar().is_none() && entry.path_bytes().ends_with(b"/");
        match (kind, links_to) {
            (EntryType::Directory, _) => target.directory(path, mode, seconds).map_err(of_entry)?,
            (EntryType::Symlink, Some(to)) => target.symlink(&path, &to, seconds).map_err(of_entry)?,
            (EntryType::Link, Some(to)) => {
                let to = plain(&to).ok_or_else(|| leaves(&to))?;
                target.link(&path, &to).map_err(of_entry)?;
            }
            (EntryType::Symlink | EntryType::Link, None) => {
                return Err(wrong(format!("its entry {} does not say where it leads", named.display())));
            }
            _ if is_old_directory => target.directory(path, mode, seconds).map_err(of_entry)?,
            // POSIX says that kinds that nobody knows are taken for files.
            _ => target.file(&path, mode, seconds, kind.is_gnu_sparse(), &mut entry).map_err(of_entry)?,
        }
    }
    target.finish_directories().map_err(failed)?;
    Ok(left_out)
}

/// Whether an entry holds the pieces of a sparse file with a list of them, in a form that would be unpacked as if it were the
/// file. (The earlier form of GNU tar is a kind of entry of its own, and is unpacked as it should be.)
fn is_sparse(entry: &mut Entry<'_, impl Read>) -> io::Result<bool> {
    let Some(extensions) = entry.pax_extensions()? else { return Ok(false) };
    // What looks malformed is a value with a line end in it, a name for example.
    Ok(extensions.flatten().any(|extension| extension.key_bytes().starts_with(b"GNU.sparse.")))
}

/// Bytes in a block of an archive.
const BLOCK: usize = 512;

/// The archive's bytes, whatever they are compressed with.
fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    // Opening a pipe would block until it has a writer.
    let mut file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.file_type().is_fifo() {
        return Err(io::Error::other("is a pipe: give a file, a place may be filled more than once"));
    }
    let mut start = Vec::new();
    file.by_ref().take(BLOCK as u64).read_to_end(&mut start)?;
    file.rewind()?;
    let file = BufReader::with_capacity(256 << 10, file);
    Ok(match start.as_slice() {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(file)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(zstd::Decoder::with_buffer(file)?),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Box::new(XzReader::new(file, true)),
        tar if tar.get(257..262) == Some(b"ustar") => Box::new(file),
        // The end of an archive, which for an empty one is all there is.
        [..] if start.len() == BLOCK && start.iter().all(|byte| *byte == 0) => Box::new(file),
        _ => return Err(io::Error::other("is not a tar archive (tar, tar.gz, tar.zst and tar.xz are read)")),
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
