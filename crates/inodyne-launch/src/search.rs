//! Where the file of a command is.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::AccessFlags;

/// Where `execvp` would look if there were no PATH.
const WITHOUT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The file that `execvp` would execute for the first word of a command, with this PATH.
///
/// # Errors
/// None is there (ENOENT), or none that may be executed (EACCES); for a word with a slash also EISDIR, or what the look-up of the path says.
pub fn find(word: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, Errno> {
    if word.is_empty() {
        return Err(Errno::ENOENT);
    }
    if word.as_bytes().contains(&b'/') {
        return executable(Path::new(word)).map(|()| PathBuf::from(word));
    }
    let mut result = Errno::ENOENT;
    for directory in std::env::split_paths(path.unwrap_or(OsStr::new(WITHOUT_PATH))) {
        let candidate = directory.join(word);
        match executable(&candidate) {
            Ok(()) => return Ok(candidate),
            // A file that is found but must not be executed is the better answer, should nothing else be found.
            Err(Errno::EACCES) => result = Errno::EACCES,
            Err(_) => {}
        }
    }
    Err(result)
}

fn executable(file: &Path) -> Result<(), Errno> {
    let kind = nix::sys::stat::stat(file)?.st_mode & libc::S_IFMT;
    if kind == libc::S_IFDIR {
        return Err(Errno::EISDIR);
    }
    nix::unistd::access(file, AccessFlags::X_OK)
}
