//! One host at a time looks for a socket that another one has left, and replaces it.
//!
//! Of two that do so at the same time, the second would remove the first one's new socket, since it has found the old one dead a moment before.
//! A socket cannot be locked itself, so a file beside it is, for as long as that takes.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FlockOperation, flock},
    io::retry_on_intr,
};

/// Being alone with a socket's name, until dropped.
pub(super) struct Alone {
    lock: PathBuf,
    _locked: File,
}

impl Alone {
    /// Waits for others.
    pub fn with(socket: &Path) -> io::Result<Self> {
        let mut lock = socket.as_os_str().to_owned();
        lock.push(".inodyne-lock");
        let lock = PathBuf::from(lock);
        let how = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        loop {
            let mut options = File::options();
            let file = options.write(true).create(true).truncate(false).mode(0o600).custom_flags(how).open(&lock)?;
            retry_on_intr(|| flock(&file, FlockOperation::LockExclusive))?;
            // Whoever had it before has removed it: the next one makes another.
            let locked = file.metadata()?;
            if fs::symlink_metadata(&lock).is_ok_and(|is| (is.dev(), is.ino()) == (locked.dev(), locked.ino())) {
                return Ok(Self { lock, _locked: file });
            }
        }
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.lock);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering::SeqCst},
        thread,
    };

    use super::*;

    #[test]
    fn one_is_there_at_a_time_and_nothing_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let there = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let alone = Alone::with(&socket).unwrap();
                        assert_eq!(there.fetch_add(1, SeqCst), 0);
                        thread::yield_now();
                        there.fetch_sub(1, SeqCst);
                        drop(alone);
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn nobody_waits_for_what_is_no_lock() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let lock = directory.path().join("socket.inodyne-lock");
        std::os::unix::fs::symlink("elsewhere", &lock).unwrap();
        assert!(Alone::with(&socket).is_err());
        fs::remove_file(&lock).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &lock, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        assert!(Alone::with(&socket).is_err());
        assert!(fs::symlink_metadata(&lock).is_ok());
    }
}
