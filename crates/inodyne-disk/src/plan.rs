//! What is measured of a disk, in which order, and whether it was the disk that was measured.
//!
//! An unnamed file is created in the directory, and fio writes and reads it bypassing the page cache, as much of it as can be written in
//! the time given. Some file systems only appear to do that (ext4 with `data=journal`). So after each measurement the disk's own counters
//! show whether the disk transferred what fio did: if it did not, memory answered, and no result is given.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use inodyne_lab::{DeviceStats, Ground};
use inodyne_model::disk_limits::DiskLimits;
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, Mode, OFlags, StatxFlags, fallocate, ftruncate, openat, statvfs, statx,
};
use rustix::io::Errno;

use crate::error::DiskError;
use crate::fio::{self, Found, Measurement};
use crate::identity::Identity;

/// How large the file is: larger than most disks' own caches.
const FILE_BYTES: u64 = 512 << 20;
/// At most this much is written to measure flushes.
const FLUSHED_BYTES: u64 = 64 << 20;
/// What must stay free on the file system in addition.
const SPARE_BYTES: u64 = 64 << 20;
/// With less than this, random reads would hit the same blocks again and again.
const LEAST_BYTES: u64 = 1 << 20;
/// About how long fio needs to start and to finish.
const BEGIN_AND_END: Duration = Duration::from_millis(300);
/// The share of what fio transferred that the disk must have transferred. The rest may have been in flight at the end.
const MOVED: f64 = 0.9;

/// A disk that can be measured.
#[derive(Debug)]
pub struct Plan {
    directory: PathBuf,
    fio: PathBuf,
    fs: String,
    device: (u32, u32),
    disk: Identity,
    each: Duration,
}

impl Plan {
    /// Looks at what is below a directory. Nothing is written yet. `each` is how long each measurement is to take.
    ///
    /// # Errors
    /// There is no fio, no disk below the directory, too little free space, or no direct I/O.
    pub fn new(directory: &Path, each: Duration) -> Result<Plan, DiskError> {
        if !directory.is_dir() {
            return Err(DiskError::NotADirectory(directory.into()));
        }
        let ground = Ground::of(directory)?;
        let fs = ground.fs;
        let no_disk = |why| DiskError::NoDisk { directory: directory.into(), fs: fs.clone(), why };
        if let Some(why) = why_no_disk(&fs) {
            return Err(no_disk(why));
        }
        let device = ground.device.ok_or_else(|| no_disk("lies on no disk of this machine"))?;
        let number = format!("{}:{}", device.0, device.1);
        let disk = Identity::of(&number).ok_or_else(|| no_disk("lies on no disk of this machine"))?;
        if fs == "btrfs" && disks_of_btrfs(&number) > 1 {
            return Err(no_disk("lies on several disks"));
        }
        let path = std::env::var_os("PATH");
        let fio = inodyne_launch::find("fio".as_ref(), path.as_deref()).map_err(|_| DiskError::NoFio)?;
        let stat = statvfs(directory)
            .map_err(|errno| DiskError::File { directory: directory.into(), source: errno.into() })?;
        let (free, needed) = (stat.f_bavail.saturating_mul(stat.f_frsize), FILE_BYTES + SPARE_BYTES);
        if free < needed {
            return Err(DiskError::NoRoom { directory: directory.into(), free, needed });
        }
        Ok(Plan { directory: directory.into(), fio, fs, device, disk, each })
    }

    /// The disk.
    pub fn disk(&self) -> &Identity {
        &self.disk
    }

    /// The kind of file system on it.
    pub fn fs(&self) -> &str {
        &self.fs
    }

    /// About how long it takes at most.
    pub fn longest(&self) -> Duration {
        (self.each + BEGIN_AND_END) * Measurement::ALL.len() as u32
    }

    /// How much it writes at most.
    pub fn most_written(&self) -> u64 {
        2 * FILE_BYTES + FLUSHED_BYTES
    }

    /// How large the file is.
    pub fn file_bytes(&self) -> u64 {
        FILE_BYTES
    }

    /// Measures, and reports what is being measured.
    ///
    /// # Errors
    /// The file cannot be created, fio failed, or something other than the disk was measured.
    pub fn run(&self, tell: &mut dyn FnMut(Measurement)) -> Result<DiskLimits, DiskError> {
        let file = self.file()?;
        let mut measure = |measurement, bytes| {
            tell(measurement);
            self.measure(&file, measurement, bytes)
        };
        let written = measure(Measurement::Fill, FILE_BYTES)?.bytes;
        if written < LEAST_BYTES {
            return Err(DiskError::TooSlow { least: LEAST_BYTES });
        }
        let write = measure(Measurement::Write, written)?;
        let read = measure(Measurement::Read, written)?;
        let one = measure(Measurement::ReadOne, written)?;
        let many = measure(Measurement::ReadMany, written)?;
        let flush = measure(Measurement::Flush, written.min(FLUSHED_BYTES))?;
        Ok(DiskLimits {
            measured_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            fs: self.fs.clone(),
            file_bytes: written,
            read: one.latency,
            reads_per_s: many.requests_per_s,
            read_bytes_per_s: read.bytes_per_s,
            write_bytes_per_s: write.bytes_per_s,
            flush: flush.latency,
        })
    }

    /// An unnamed file with its space already allocated: fio would create one that is too short anew, and needs a name for that.
    fn file(&self) -> Result<File, DiskError> {
        let failed = |errno: Errno| DiskError::File { directory: self.directory.clone(), source: errno.into() };
        let file = File::from(inodyne_lab::unnamed_file(&self.directory).map_err(failed)?);
        match fallocate(&file, FallocateFlags::empty(), 0, FILE_BYTES) {
            Err(Errno::OPNOTSUPP) => ftruncate(&file, FILE_BYTES),
            done => done,
        }
        .map_err(failed)?;
        match has_direct_io(&file).map_err(failed)? {
            true => Ok(file),
            false => Err(DiskError::NotDirect { directory: self.directory.clone(), fs: self.fs.clone() }),
        }
    }

    fn measure(&self, file: &File, measurement: Measurement, bytes: u64) -> Result<Found, DiskError> {
        let doing = measurement.words();
        let before = DeviceStats::of(self.device).unwrap_or_default();
        let found =
            fio::run(&self.fio, measurement, file, bytes, self.each).map_err(|said| DiskError::Fio { doing, said })?;
        let moved = DeviceStats::of(self.device).unwrap_or_default().since(before);
        let moved = if measurement.writes() { moved.write_bytes } else { moved.read_bytes };
        if measurement.is_direct() && (moved as f64) < MOVED * found.bytes as f64 {
            let (disk, asked) = (self.disk.name.clone(), found.bytes);
            return Err(DiskError::NotTheDisk { disk, doing, asked, moved });
        }
        Ok(found)
    }
}

/// Whether the file can be read and written bypassing the page cache. Some file systems accept the flag but do not honour it. Those that know
/// say so beforehand (statx); for the others it turns out later.
fn has_direct_io(file: &File) -> Result<bool, Errno> {
    let stat = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)?;
    if stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0 {
        return Ok(stat.stx_dio_offset_align != 0);
    }
    let again = format!("/proc/self/fd/{}", file.as_raw_fd());
    match openat(CWD, again, OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC, Mode::empty()) {
        Ok(_) => Ok(true),
        Err(Errno::INVAL) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Why there is no disk below a file system of this kind, whatever it claims to be mounted from.
fn why_no_disk(fs: &str) -> Option<&'static str> {
    match fs {
        "tmpfs" | "ramfs" | "devtmpfs" | "hugetlbfs" => Some("is in memory"),
        "overlay" => Some("shows other file systems"),
        "virtiofs" | "9p" | "nfs" | "nfs4" | "cifs" | "smb3" | "ceph" => Some("is served by another machine"),
        _ if fs == "fuse" || fs == "fuseblk" || fs.starts_with("fuse.") => Some("is served by a program"),
        _ => None,
    }
}

/// How many disks the btrfs that includes this one spans.
fn disks_of_btrfs(number: &str) -> usize {
    let Ok(own) = std::fs::read_link(format!("/sys/dev/block/{number}")) else { return 0 };
    let Some(name) = own.file_name() else { return 0 };
    let all = std::fs::read_dir("/sys/fs/btrfs").into_iter().flatten().flatten();
    let devices = all.map(|one| one.path().join("devices")).find(|devices| devices.join(name).exists());
    devices.and_then(|devices| std::fs::read_dir(devices).ok()).map_or(0, Iterator::count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_disk_is_refused_and_the_reason_said() {
        let refused = |directory: &str| Plan::new(Path::new(directory), Duration::from_secs(1)).unwrap_err();
        let memory = refused("/dev/shm");
        assert!(memory.is_usage() && memory.to_string().contains("tmpfs is in memory"), "{memory}");
        assert!(refused("/proc").to_string().contains("lies on no disk"));
        assert!(matches!(refused("/proc/none"), DiskError::NotADirectory(_)));
        for (fs, why) in [("fuse.sshfs", "a program"), ("fuseblk", "a program"), ("nfs4", "another machine")] {
            assert!(why_no_disk(fs).is_some_and(|said| said.contains(why)), "{fs}");
        }
        assert_eq!(["ext4", "fusion"].map(why_no_disk), [None, None]);
    }
}
