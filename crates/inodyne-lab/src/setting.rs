//! Settings of the kernel that are changed as long as a place is there: files under /sys and /proc/sys.
//!
//! A setting is known to be restorable before it is touched: its present value is written back first. A small process
//! ([`guard`]) then waits with that value, so that whatever ends this one, the machine is as it was. What the kernel
//! made of a value is read back and compared.
//!
//! Some settings concern the whole machine, so two places cannot want different values at once. Within this process
//! places that want the same share it; against other processes a lock on the file itself decides, which the guard
//! holds as well: it ends with the restoring.

mod guard;

use std::{
    fs::File,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::FileExt,
    },
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
    thread,
    time::Duration,
};

use rustix::{
    fs::{FileType, FlockOperation, Mode, OFlags, ResolveFlags, flock, fstat, fstatfs, open, openat2},
    io::Errno,
};

use crate::LabError;
use guard::Guard;

/// A changed setting, until the last of those who want it is dropped.
#[derive(Debug)]
pub(crate) struct Setting {
    _guard: Guard,
    /// The file itself first.
    files: Vec<Locked>,
    path: PathBuf,
    value: String,
}

/// All that this process has changed.
static CHANGED: Mutex<Vec<Weak<Setting>>> = Mutex::new(Vec::new());

impl Setting {
    /// Changes the setting, or shares it with a place that has changed it in the same way.
    pub fn change(path: &Path, value: &str) -> Result<Arc<Self>, LabError> {
        let failed = |problem: String| failed(path, value, problem);
        let mut changed = CHANGED.lock().unwrap_or_else(PoisonError::into_inner);
        changed.retain(|setting| setting.strong_count() > 0);
        let files: Vec<_> = std::iter::once(path.to_owned())
            .chain(counterpart(path))
            .map(|path| Locked::open(&path).map_err(&failed))
            .collect::<Result<_, _>>()?;
        for other in changed.iter().filter_map(Weak::upgrade) {
            if other.files[0].identity == files[0].identity && other.value == value {
                return Ok(other);
            }
            if other.files.iter().any(|other| files.iter().any(|file| file.identity == other.identity)) {
                let (other, value) = (other.path.display(), &other.value);
                return Err(failed(format!("another place has set {other} to {value}: use one of them at a time")));
            }
        }
        for file in &files {
            file.lock().map_err(&failed)?;
        }
        let before = files.iter().map(Locked::read).collect::<Result<Vec<_>, _>>().map_err(&failed)?;
        // Of a pair the one at zero is not in force, and zero could not be written to it.
        let restored: Vec<_> =
            files.iter().zip(&before).filter(|(_, before)| files.len() == 1 || *before != "0").collect();
        if restored.is_empty() {
            return Err(failed(
                "it could not be restored afterwards, since it and its counterpart are both 0".to_owned(),
            ));
        }
        for (file, before) in &restored {
            let refused = |problem| failed(format!("it could not be restored afterwards: {problem}"));
            file.write(before).map_err(refused)?;
        }
        let restored: Vec<_> = restored.iter().map(|(file, before)| (file.fd.as_fd(), before.as_bytes())).collect();
        let guard = Guard::fork(&restored).map_err(|error| failed(format!("cannot start its guard: {error}")))?;
        let setting = Arc::new(Self { _guard: guard, files, path: path.into(), value: value.into() });
        setting.write()?;
        changed.push(Arc::downgrade(&setting));
        Ok(setting)
    }

    /// The file, as it was asked for.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The value.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Writes the value, and looks whether the kernel has taken it as it is.
    fn write(&self) -> Result<(), LabError> {
        let failed = |problem| failed(&self.path, &self.value, problem);
        self.files[0].write(&self.value).map_err(failed)?;
        let is = self.files[0].read().map_err(failed)?;
        let is_same = is.split_whitespace().eq(self.value.split_whitespace());
        if is_same { Ok(()) } else { Err(failed(format!("the kernel made it {is}"))) }
    }

    /// Makes sure of the value after the file may have vanished and come back, as those of a mounted file system do.
    pub fn again(self: Arc<Self>) -> Result<Arc<Self>, LabError> {
        let is_there = Locked::open(&self.path).is_ok_and(|file| file.identity == self.files[0].identity);
        if is_there {
            return self.write().map(|()| self);
        }
        let (path, value) = (self.path.clone(), self.value.clone());
        drop(self);
        Self::change(&path, &value)
    }
}

fn failed(path: &Path, value: &str, problem: String) -> LabError {
    LabError::Setting { file: path.into(), value: value.into(), problem }
}

/// Of these pairs the kernel heeds one, and sets the other to zero.
const PAIRS: [[&str; 2]; 2] = [
    ["/proc/sys/vm/dirty_bytes", "/proc/sys/vm/dirty_ratio"],
    ["/proc/sys/vm/dirty_background_bytes", "/proc/sys/vm/dirty_background_ratio"],
];

fn counterpart(path: &Path) -> Option<PathBuf> {
    PAIRS.iter().find_map(|[a, b]| match path {
        _ if path == Path::new(a) => Some(b.into()),
        _ if path == Path::new(b) => Some(a.into()),
        _ => None,
    })
}

/// The file of a setting, open for reading and writing.
#[derive(Debug)]
struct Locked {
    fd: File,
    identity: (u64, u64),
}

/// Where settings are, and the numbers of the file systems that must be there.
const ROOTS: [(&str, i64); 2] = [("/sys/", 0x6265_6572), ("/proc/sys/", 0x9fa0)];

impl Locked {
    /// Opens a file that is really below /sys or /proc/sys, over no link and no mount that leads out.
    fn open(path: &Path) -> Result<Self, String> {
        let found = ROOTS.iter().find_map(|(root, magic)| Some((root, magic, path.strip_prefix(root).ok()?)));
        let (root, magic, below) = found.ok_or("only files under /sys and /proc/sys are settings")?;
        let directory = open(*root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| format!("cannot open {root}: {errno}"))?;
        if fstatfs(&directory).is_ok_and(|stat| stat.f_type != *magic) {
            return Err(format!("{root} is not what the kernel mounts there"));
        }
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
        let file = openat2(&directory, below, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty(), resolve);
        let file: OwnedFd = file.map_err(|errno| match errno {
            Errno::NOENT => "there is no such file".into(),
            Errno::XDEV | Errno::LOOP => format!("it leads out of {root}"),
            Errno::ACCESS | Errno::PERM => "it may not be read and written, and so not be restored".into(),
            Errno::ISDIR => "it is a directory".into(),
            errno => errno.to_string(),
        })?;
        let stat = fstat(&file).map_err(|errno| errno.to_string())?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err("it is no file".into());
        }
        Ok(Self { fd: file.into(), identity: (stat.st_dev, stat.st_ino) })
    }

    /// Takes the file for this process and its guard. Another's guard may just be restoring it.
    fn lock(&self) -> Result<(), String> {
        for _ in 0..100 {
            match flock(&self.fd, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) => thread::sleep(Duration::from_millis(10)),
                result => return result.map_err(|errno| format!("cannot lock it: {errno}")),
            }
        }
        Err("another inodyne has changed it: wait until that one has ended".into())
    }

    /// The value; where the file lists all that can be chosen, the chosen one.
    fn read(&self) -> Result<String, String> {
        let mut buffer = vec![0; 4096];
        let length = self.fd.read_at(&mut buffer, 0).map_err(|error| format!("cannot read it: {error}"))?;
        let text = String::from_utf8_lossy(&buffer[..length]).trim().to_owned();
        let chosen = text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
        Ok(chosen.map_or(text.clone(), str::to_owned))
    }

    fn write(&self, value: &str) -> Result<(), String> {
        match self.fd.write_at(value.as_bytes(), 0) {
            Ok(length) if length == value.len() => Ok(()),
            Ok(_) => Err("it took only a part".into()),
            Err(error) => Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
