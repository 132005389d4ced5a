//! Files that are there whole or not at all, also when their writer is killed.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

/// Writes a file by `write`, in place of one of that name that may be there.
///
/// What is being written has no name where the file system can do that (`O_TMPFILE`), so that nothing of it stays if the
/// writer is killed. Then it gets the name asked for; where that is taken, for an instant another one beside it. A pipe or
/// a device of that name is written to, and stays what it is.
///
/// # Errors
/// The directory cannot be written, or is full. Nothing is left then, and a file that was there is as it was.
pub fn write_whole(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return fill(OpenOptions::new().write(true).open(path)?, write).map(|_| ());
    }
    let beside = name_beside(path);
    let (file, named) = match nameless(path) {
        Ok(file) => (file, false),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT) => (File::create(&beside)?, true),
        Err(errno) => return Err(errno.into()),
    };
    let written = fill(file, write).and_then(|file| {
        if named {
            return std::fs::rename(&beside, path);
        }
        match link(&file, path) {
            Err(Errno::EXIST) => {
                link(&file, &beside)?;
                std::fs::rename(&beside, path)
            }
            linked => Ok(linked?),
        }
    });
    if written.is_err() {
        // It is of no use. That it may not exist either is no second error.
        let _ = std::fs::remove_file(&beside);
    }
    written
}

fn fill(file: File, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<File> {
    let mut out = BufWriter::new(file);
    write(&mut out)?;
    out.flush()?;
    out.into_inner().map_err(io::IntoInnerError::into_error)
}

fn nameless(path: &Path) -> Result<File, Errno> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mode = Mode::from_raw_mode(0o666);
    rustix::fs::openat(CWD, directory, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, mode).map(File::from)
}

/// Gives an open file without a name one; open(2), "O_TMPFILE", tells how.
fn link(file: &File, path: &Path) -> Result<(), Errno> {
    let descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::linkat(CWD, descriptor, CWD, path, AtFlags::SYMLINK_FOLLOW)
}

fn name_beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(format!(".{}.partial", std::process::id()));
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<OsString> {
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn a_device_stays_one() {
        write_whole(Path::new("/dev/null"), |out| out.write_all(b"gone")).unwrap();
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
        assert_eq!(
            names(Path::new("/dev")).iter().filter(|name| name.to_string_lossy().ends_with(".partial")).count(),
            0
        );
    }

    #[test]
    fn a_file_is_new_or_replaced_and_nothing_else_is_left() {
        let directory = std::env::temp_dir().join(format!("inodyne-file-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let path = directory.join("file");
        for text in ["first", "second"] {
            write_whole(&path, |out| {
                assert!(names(&directory).iter().all(|name| name == "file"), "it has a name while it is written");
                out.write_all(text.as_bytes())
            })
            .unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        let failed = write_whole(&path, |out| {
            out.write_all(b"half")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        });
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "second");
        assert_eq!(names(&directory), ["file"]);
        std::fs::remove_dir_all(directory).unwrap();
        assert_eq!(write_whole(&path, |_| Ok(())).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
