//! Dealing one tree to several layers, so that all of them together show it again.
//!
//! Every directory is in every layer, with the same owner, mode and times. Every other file is in one layer: in turn,
//! in the order in which the directories are read, and all names of a file with several in the same one.

use std::{
    collections::HashMap,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
};

use rustix::fs::{AtFlags, CWD, FileType, Timespec, Timestamps, utimensat};

use crate::{LabError, walk::walk};

/// Moves each file of `lowest` to the layer whose turn it is: `lowest` itself or one of the `others`, which are empty.
pub(super) fn split(lowest: &Path, others: &[PathBuf]) -> Result<(), LabError> {
    if others.is_empty() {
        return Ok(());
    }
    let mut directories = vec![PathBuf::new()];
    let (mut files, mut links, mut turn) = (Vec::new(), HashMap::new(), 0);
    walk(lowest, &mut |entry| {
        if entry.file_type() == FileType::Directory {
            directories.push(entry.path.into());
            return Ok(());
        }
        let mut deal = || {
            turn += 1;
            (turn - 1) % (others.len() + 1)
        };
        let layer = match entry.stat.stx_nlink {
            1 => deal(),
            _ => *links.entry(entry.stat.stx_ino).or_insert_with(deal),
        };
        if layer > 0 {
            files.push((entry.path.to_owned(), layer - 1));
        }
        Ok(())
    })?;
    let metadata = |path: &Path| fs::symlink_metadata(path).map_err(|error| LabError::io("inspect", path, error));
    let known = directories.iter().map(|path| metadata(&lowest.join(path))).collect::<Result<Vec<_>, _>>()?;
    for layer in others {
        for path in directories.iter().skip(1).map(|path| layer.join(path)) {
            fs::create_dir(&path).map_err(|error| LabError::io("make directory", path, error))?;
        }
    }
    for (path, layer) in files {
        let to = others[layer].join(&path);
        fs::rename(lowest.join(&path), &to).map_err(|error| LabError::io("move to", to, error))?;
    }
    // Moving changes the times of directories, and so does making one in another: so they are set last, and from the bottom up.
    for (path, metadata) in directories.iter().zip(known).rev() {
        for layer in others.iter().map(PathBuf::as_path).chain([lowest]) {
            set(&layer.join(path), &metadata)?;
        }
    }
    Ok(())
}

fn set(directory: &Path, metadata: &fs::Metadata) -> Result<(), LabError> {
    let failed = |error| LabError::io("write", directory, error);
    chown(directory, Some(metadata.uid()), Some(metadata.gid())).map_err(failed)?;
    fs::set_permissions(directory, fs::Permissions::from_mode(metadata.mode() & 0o7777)).map_err(failed)?;
    let times = Timestamps {
        last_access: Timespec { tv_sec: metadata.atime(), tv_nsec: metadata.atime_nsec() },
        last_modification: Timespec { tv_sec: metadata.mtime(), tv_nsec: metadata.mtime_nsec() },
    };
    utimensat(CWD, directory, &times, AtFlags::SYMLINK_NOFOLLOW).map_err(|errno| failed(errno.into()))
}
