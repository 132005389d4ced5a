//! Settings of the kernel that are changed for a place: files under /sys and /proc/sys.
//!
//! A setting is known to be restorable before it is touched: its present value is written back first. A small process
//! ([`guard`]) then waits with that value, so that whatever ends this one, the machine is as it was. What the kernel
//! made of a value is read back and compared, also of the old one at the end.
//!
//! Some settings concern the whole machine, so two places cannot have different values in force at once, and while one has
//! its turn, those of the others are lifted. Within this process they share the files and their old values; against other
//! processes a lock on the file itself decides, from the first change to the end. The guard holds it as well: it ends with
//! the restoring.

mod guard;

use std::{
    fs::{self, File},
    io::ErrorKind,
    mem,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::{FileExt, MetadataExt},
    },
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use rustix::{
    fs::{FileType, FlockOperation, Mode, OFlags, ResolveFlags, flock, fstat, fstatfs, open, openat2},
    io::{Errno, pwrite},
};

use crate::LabError;
use guard::Guard;

/// A setting with the value that a place wants: in force from the change on, until it is lifted or dropped.
#[derive(Debug)]
pub(crate) struct Setting {
    files: Arc<Files>,
    /// Which of them it is.
    at: usize,
    path: PathBuf,
    value: String,
    is_in_force: AtomicBool,
}

/// A file that this process may change, with its counterpart where it is one of a pair.
#[derive(Debug)]
struct Files {
    _guard: Guard,
    locked: Vec<Locked>,
    /// What to write to which of them when nobody wants another value.
    before: Vec<(usize, String)>,
    in_force: Mutex<Option<InForce>>,
}

/// What is in force instead.
#[derive(Debug)]
struct InForce {
    at: usize,
    path: PathBuf,
    value: String,
    /// How many want it.
    holders: usize,
}

/// All that this process may change.
static CHANGED: Mutex<Vec<Weak<Files>>> = Mutex::new(Vec::new());

/// What could not be restored, and nobody has asked for yet.
static NOT_RESTORED: Mutex<Vec<LabError>> = Mutex::new(Vec::new());

/// The settings that could not be restored since this was last asked. A place that is dropped cannot say it itself.
pub fn take_not_restored() -> Vec<LabError> {
    mem::take(&mut *NOT_RESTORED.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Setting {
    /// Changes the setting, or shares it with a place that has changed it in the same way.
    pub fn change(path: &Path, value: &str) -> Result<Self, LabError> {
        let failed = |problem: String| failed(path, value, problem);
        let mut changed = CHANGED.lock().unwrap_or_else(PoisonError::into_inner);
        changed.retain(|files| files.strong_count() > 0);
        let locked: Vec<_> = std::iter::once(path.to_owned())
            .chain(counterpart(path))
            .map(|path| Locked::open(&path))
            .collect::<Result<_, _>>()
            .map_err(failed)?;
        let own = locked[0].identity;
        let known = changed.iter().filter_map(Weak::upgrade).find_map(|files| Some((files.position(own)?, files)));
        let (at, files) = match known {
            Some(known) => known,
            None => {
                let files = Arc::new(Files::take(locked).map_err(failed)?);
                changed.push(Arc::downgrade(&files));
                (0, files)
            }
        };
        let setting = Self { files, at, path: path.into(), value: value.into(), is_in_force: AtomicBool::new(false) };
        setting.impose()?;
        Ok(setting)
    }

    /// Makes sure of these values in this order, as [`Setting::again`] does, and changes what was not changed before. Where one is refused, none
    /// remains changed.
    pub fn all_again(before: Vec<Self>, wanted: &[(PathBuf, &str)]) -> Result<Vec<Self>, LabError> {
        let (mut settings, mut before) = (Vec::new(), before.into_iter());
        for (path, value) in wanted {
            let changed = match before.next().filter(|before| before.path() == path) {
                Some(before) => before.again(),
                None => Self::change(path, value),
            };
            match changed {
                Ok(setting) => settings.push(setting),
                Err(refused) => {
                    // Each was changed on top of those before it.
                    settings.into_iter().chain(before).rev().for_each(drop);
                    return Err(refused);
                }
            }
        }
        Ok(settings)
    }

    /// The file, as it was asked for.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The value.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Writes the value, even if it is in force already, and checks whether the kernel has taken it as it is.
    pub fn impose(&self) -> Result<(), LabError> {
        let failed = |problem| failed(&self.path, &self.value, problem);
        let mut in_force = self.files.in_force();
        if let Some(other) = in_force.as_ref().filter(|other| other.at != self.at || other.value != self.value) {
            let (other, value) = (other.path.display(), &other.value);
            return Err(failed(format!("another place has set {other} to {value}: use one of them at a time")));
        }
        let wanted = || InForce { at: self.at, path: self.path.clone(), value: self.value.clone(), holders: 0 };
        if !self.is_in_force.swap(true, Ordering::Relaxed) {
            in_force.get_or_insert_with(wanted).holders += 1;
        }
        self.files.locked[self.at].write(&self.value).map_err(failed)?;
        self.check()
    }

    /// Checks whether the kernel has the value as it was written.
    pub fn check(&self) -> Result<(), LabError> {
        let failed = |problem| failed(&self.path, &self.value, problem);
        self.files.locked[self.at].check(&self.value).map_err(failed)
    }

    /// Restores what was before, unless another place wants the same now.
    pub fn lift(&self) {
        if !self.is_in_force.swap(false, Ordering::Relaxed) {
            return;
        }
        let mut in_force = self.files.in_force();
        if let Some(shared) = in_force.as_mut() {
            shared.holders -= 1;
            if shared.holders == 0 {
                *in_force = None;
                self.files.restore();
            }
        }
    }

    /// Makes sure of the value after the file may have vanished and come back, as those of a mounted file system do.
    pub fn again(self) -> Result<Self, LabError> {
        if !self.files.locked[self.at].has_vanished() {
            return self.impose().map(|()| self);
        }
        let (path, value) = (self.path.clone(), self.value.clone());
        drop(self);
        Self::change(&path, &value)
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        self.lift();
    }
}

impl Files {
    /// Takes the files for this process, and makes sure that they can be restored.
    fn take(locked: Vec<Locked>) -> Result<Self, String> {
        for file in &locked {
            file.lock()?;
        }
        let before = locked.iter().map(Locked::read).collect::<Result<Vec<_>, _>>()?;
        // In a pair, the one at zero is not in force, and zero could not be written to it.
        let is_in_force = |before: &String| locked.len() == 1 || before != "0";
        let before: Vec<_> = before.into_iter().enumerate().filter(|(_, before)| is_in_force(before)).collect();
        if before.is_empty() {
            return Err("it could not be restored afterwards, since it and its counterpart are both 0".to_owned());
        }
        // The kernel takes writing nothing for no change.
        if before.iter().any(|(_, before)| before.is_empty()) {
            return Err("it could not be restored afterwards, since it is empty now".to_owned());
        }
        for (at, before) in &before {
            let refused = |problem| format!("it could not be restored afterwards: {problem}");
            locked[*at].write(before).map_err(refused)?;
        }
        let restored: Vec<_> = before.iter().map(|(at, before)| (locked[*at].fd.as_fd(), before.as_bytes())).collect();
        let guard = Guard::fork(&restored).map_err(|error| format!("cannot start its guard: {error}"))?;
        Ok(Self { _guard: guard, locked, before, in_force: Mutex::default() })
    }

    /// Which of them is this file.
    fn position(&self, identity: (u64, u64)) -> Option<usize> {
        self.locked.iter().position(|file| file.identity == identity)
    }

    fn in_force(&self) -> MutexGuard<'_, Option<InForce>> {
        self.in_force.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes back what was before, and reads it: the kernel may make something else of what it took before.
    fn restore(&self) {
        let written: Vec<_> = self.before.iter().map(|(at, value)| self.locked[*at].write(value)).collect();
        for ((at, value), written) in self.before.iter().zip(written) {
            let file = &self.locked[*at];
            if let Err(problem) = written.and_then(|()| file.check(value))
                && !file.has_vanished()
            {
                let error = LabError::NotRestored { file: file.path.clone(), value: value.clone(), problem };
                NOT_RESTORED.lock().unwrap_or_else(PoisonError::into_inner).push(error);
            }
        }
    }
}

fn failed(path: &Path, value: &str, problem: String) -> LabError {
    LabError::Setting { file: path.into(), value: value.into(), problem }
}

/// Of each of these pairs the kernel heeds one, and sets the other to zero.
const PAIRS: [[&str; 2]; 3] = [
    ["/proc/sys/vm/dirty_bytes", "/proc/sys/vm/dirty_ratio"],
    ["/proc/sys/vm/dirty_background_bytes", "/proc/sys/vm/dirty_background_ratio"],
    ["/proc/sys/vm/overcommit_kbytes", "/proc/sys/vm/overcommit_ratio"],
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
    path: PathBuf,
    fd: File,
    identity: (u64, u64),
}

/// A value that fills this many bytes may go on behind them.
const LONGEST: usize = 4096;

/// Where settings are, and the numbers of the file systems that must be there.
const ROOTS: [(&str, i64); 2] = [("/sys/", 0x6265_6572), ("/proc/sys/", 0x9fa0)];

impl Locked {
    /// Opens a file that is really below /sys or /proc/sys, through no link and no mount that leads out.
    fn open(path: &Path) -> Result<Self, String> {
        let found = ROOTS.iter().find_map(|(root, magic)| Some((root, magic, path.strip_prefix(root).ok()?)));
        let (root, magic, below) = found.ok_or("only files under /sys and /proc/sys are settings")?;
        let directory = open(*root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| format!("cannot open {root}: {errno}"))?;
        if fstatfs(&directory).is_ok_and(|stat| stat.f_type != *magic) {
            return Err(format!("{root} is not what the kernel mounts there"));
        }
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
        let opened = || openat2(&directory, below, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty(), resolve);
        let file: OwnedFd = while_busy(opened).map_err(|errno| match errno {
            Errno::NOENT => "there is no such file".into(),
            Errno::XDEV | Errno::LOOP => format!("it leads out of {root}"),
            Errno::ACCESS | Errno::PERM => "it may not be read and written, and so not be restored".into(),
            Errno::ISDIR => "it is a directory".into(),
            errno => errno.to_string(),
        })?;
        let stat = fstat(&file).map_err(|errno| errno.to_string())?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err("it is not a file".into());
        }
        Ok(Self { path: path.into(), fd: file.into(), identity: (stat.st_dev, stat.st_ino) })
    }

    /// Whether the file has gone, as those of a device or a mounted file system do with it. Another one may be there in its place.
    fn has_vanished(&self) -> bool {
        match fs::metadata(&self.path) {
            Ok(there) => (there.dev(), there.ino()) != self.identity,
            Err(error) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        }
    }

    /// Takes the file for this process and its guard. Another process's guard may just be restoring it.
    fn lock(&self) -> Result<(), String> {
        while_busy(|| flock(&self.fd, FlockOperation::NonBlockingLockExclusive)).map_err(|errno| match errno {
            Errno::WOULDBLOCK => "another inodyne has changed it: wait until that one has ended".into(),
            errno => format!("cannot lock it: {errno}"),
        })
    }

    /// The value; where the file lists all that can be chosen, the chosen one. All of it: a part, written back, would be another value.
    fn read(&self) -> Result<String, String> {
        let mut buffer = vec![0; LONGEST];
        let length = self.fd.read_at(&mut buffer, 0).map_err(|error| format!("cannot read it: {error}"))?;
        if length == LONGEST {
            return Err(format!("it has {LONGEST} bytes or more, which could not be restored"));
        }
        let text = String::from_utf8_lossy(&buffer[..length]).trim().to_owned();
        let chosen = text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
        Ok(chosen.map_or(text.clone(), str::to_owned))
    }

    /// Checks whether the kernel has this value.
    fn check(&self, value: &str) -> Result<(), String> {
        let is = self.read()?;
        let is_same = is.split_whitespace().eq(value.split_whitespace());
        if is_same { Ok(()) } else { Err(format!("the kernel made it {is}")) }
    }

    /// Writes a value.
    fn write(&self, value: &str) -> Result<(), String> {
        match while_busy(|| pwrite(&self.fd, value.as_bytes(), 0)) {
            Ok(length) if length == value.len() => Ok(()),
            Ok(_) => Err("it took only a part".into()),
            Err(errno) => Err(errno.to_string()),
        }
    }
}

/// Tries again, for a second, while the kernel is busy: with the queue that a setting belongs to, with another process's lock, or, as it
/// follows a `..` that must not lead out of a directory, with a rename or a mount anywhere (EAGAIN, openat2(2)).
fn while_busy<T>(mut tried: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    for _ in 1..guard::TRIES {
        match tried() {
            Err(errno) if guard::BUSY.contains(&errno.raw_os_error()) => thread::sleep(guard::PAUSE),
            result => return result,
        }
    }
    tried()
}

#[cfg(test)]
mod tests;
