//! Loop devices: an image seen as a disk, for exactly as long as somebody uses it.
//!
//! Autoclear makes the kernel detach the image at the last close, whoever closes it and why. Direct I/O keeps the image
//! out of the page cache: otherwise a "cold" file system would be read from memory, one layer down. For that, the device's blocks are as
//! large as those of the disk that the image is on.

use std::{
    fs,
    fs::File,
    mem,
    ops::RangeInclusive,
    os::fd::{AsRawFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use inodyne_fuse::{Control, Server};
use rustix::{
    fs::{AtFlags, StatxFlags, fstat, statx},
    io::Errno,
};

use crate::{
    LabError,
    fuse::{self, SlowImage},
    limits::Limits,
};

/// An attached loop device.
#[derive(Debug)]
pub(crate) struct LoopDevice {
    file: File,
    path: PathBuf,
    number: (u32, u32),
    is_direct: bool,
    /// The server behind a slow one; after the device, which it serves.
    server: Option<Server>,
}

/// Other processes look for free devices too; this is how many races we lose before giving up.
const ATTEMPTS: u32 = 200;

impl LoopDevice {
    /// Attaches `image` to a free device, which is slow if there are limits, once it is told to hold them
    /// ([`LoopDevice::control`]). Its server runs in the mount namespace `outside`.
    pub fn new(image: OwnedFd, limits: Limits, outside: BorrowedFd<'_>) -> Result<Self, LabError> {
        if limits.is_none() {
            return Self::attach(&image);
        }
        // The file that is served does not report it.
        let block_size = direct_block_size(&image);
        let SlowImage { file, server, is_direct } = fuse::slow_image(image, limits, outside)?;
        let device = Self::attach_in_blocks(&file, block_size)?;
        Ok(Self { is_direct: device.is_direct && is_direct, server: Some(server), ..device })
    }

    /// Attaches `image` to a free device.
    pub fn attach(image: &OwnedFd) -> Result<Self, LabError> {
        Self::attach_in_blocks(image, direct_block_size(image))
    }

    /// The same, with blocks of this size, or as the kernel chooses.
    fn attach_in_blocks(image: &OwnedFd, block_size: Option<u32>) -> Result<Self, LabError> {
        let control = Path::new("/dev/loop-control");
        let control =
            File::options().read(true).write(true).open(control).map_err(|error| no_device(control, error))?;
        for _ in 0..ATTEMPTS {
            // SAFETY: LOOP_CTL_GET_FREE takes no argument and returns a number.
            let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
            if number < 0 {
                return Err(no_device(Path::new("/dev/loop-control"), std::io::Error::last_os_error()));
            }
            let path = PathBuf::from(format!("/dev/loop{number}"));
            let file = match File::options().read(true).write(true).open(&path) {
                Ok(file) => file,
                // Busy or already taken away again by whoever was faster.
                Err(error) if is_lost_race(&error) => {
                    thread::sleep(Duration::from_millis(2));
                    continue;
                }
                Err(error) => return Err(no_device(&path, error)),
            };
            let config = LoopConfig::new(image, block_size);
            // SAFETY: LOOP_CONFIGURE reads one `struct loop_config`, which `LoopConfig` is, and keeps no reference.
            if unsafe { libc::ioctl(file.as_raw_fd(), LOOP_CONFIGURE, &raw const config) } == 0 {
                let dio = fs::read_to_string(format!("/sys/block/loop{number}/loop/dio"));
                let is_direct = dio.is_ok_and(|dio| dio.trim() == "1");
                let stat = fstat(&file).map_err(|errno| LabError::io("inspect", &path, errno))?;
                let number = (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev));
                let device = Self { file, path, number, is_direct, server: None };
                device.forget_limits()?;
                return Ok(device);
            }
            let error = std::io::Error::last_os_error();
            if !is_lost_race(&error) {
                return Err(LabError::io("attach an image to", path, error));
            }
            thread::sleep(Duration::from_millis(2));
        }
        Err(LabError::NoLoopDevice { problem: format!("{ATTEMPTS} were taken by others first") })
    }

    /// The limits on dirty data stay with a device's number, whatever is attached to it: what an earlier user of this one set
    /// there would make this one wait where others do not.
    fn forget_limits(&self) -> Result<(), LabError> {
        let (major, minor) = self.number;
        for (name, usual) in [("strict_limit", "0"), ("max_ratio", "100")] {
            let file = PathBuf::from(format!("/sys/class/bdi/{major}:{minor}/{name}"));
            // Kernels before 6.2 have no strict_limit.
            let is_limited = fs::read_to_string(&file).is_ok_and(|value| value.trim() != usual);
            if is_limited {
                fs::write(&file, usual).map_err(|error| LabError::io("write", file, error))?;
            }
        }
        Ok(())
    }

    /// `/dev/loop0`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the image is read and written past the page cache.
    pub fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// How a slow one is told to hold its limits, or not.
    pub fn control(&self) -> Option<Arc<Control>> {
        self.server.as_ref().map(|server| server.control().clone())
    }

    /// Major and minor number.
    pub fn number(&self) -> (u32, u32) {
        self.number
    }

    /// Writes out and forgets what the kernel remembers of the device itself (blocks that file systems read through it).
    pub fn forget_buffers(&self) -> Result<(), LabError> {
        // SAFETY: BLKFLSBUF takes no argument.
        if unsafe { libc::ioctl(self.file.as_raw_fd(), BLKFLSBUF) } == 0 {
            return Ok(());
        }
        Err(LabError::io("flush", &self.path, std::io::Error::last_os_error()))
    }
}

/// In which pieces a file can be read and written past the page cache; none where that is not known, or no loop device can have
/// such blocks.
fn direct_block_size(file: &OwnedFd) -> Option<u32> {
    const POSSIBLE: RangeInclusive<u32> = 512..=4096;
    let stat = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    let size = match stat.stx_mask & StatxFlags::DIOALIGN.bits() {
        // Kernels before 6.1 and some file systems do not report it. A partition has the queue of its disk.
        0 => ["queue", "../queue"].iter().find_map(|queue| {
            let device = format!("/sys/dev/block/{}:{}", stat.stx_dev_major, stat.stx_dev_minor);
            fs::read_to_string(format!("{device}/{queue}/logical_block_size")).ok()?.trim().parse().ok()
        })?,
        _ => stat.stx_dio_offset_align,
    };
    Some(size).filter(|size| POSSIBLE.contains(size) && size.is_power_of_two())
}

fn is_lost_race(error: &std::io::Error) -> bool {
    [Errno::BUSY, Errno::NXIO, Errno::NODEV].iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

fn no_device(path: &Path, error: std::io::Error) -> LabError {
    LabError::NoLoopDevice { problem: format!("{}: {error}", path.display()) }
}

const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4c82;
const LOOP_CONFIGURE: libc::Ioctl = 0x4c0a;
const BLKFLSBUF: libc::Ioctl = 0x1261;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// `struct loop_config` of linux/loop.h.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

/// `struct loop_info64` of linux/loop.h.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

const _: () = assert!(mem::size_of::<LoopConfig>() == 304 && mem::size_of::<LoopInfo>() == 232);

impl LoopConfig {
    fn new(image: &OwnedFd, block_size: Option<u32>) -> Self {
        // SAFETY: all fields are integers, for which zero is a value; the kernel wants unused ones to be zero.
        let mut config: Self = unsafe { mem::zeroed() };
        config.fd = image.as_raw_fd() as u32;
        config.block_size = block_size.unwrap_or(0);
        config.info.flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO;
        config.info.file_name[..7].copy_from_slice(b"inodyne");
        config
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::{
        Kind, Size, image, mkfs,
        mount::{Mount, tests::enter_namespace},
    };

    #[test]
    fn on_a_disk_with_large_blocks_so_are_those_of_a_device() {
        enter_namespace();
        let outside = File::open("/proc/thread-self/ns/mnt").unwrap();
        let (image, size) = image::create(Path::new("/var/tmp"), Some(Size::from_mib(64))).unwrap();
        let disk = LoopDevice::attach_in_blocks(&image, Some(4096)).unwrap();
        mkfs::format(Kind::Ext4, disk.path(), size, &[]).unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let _mounted = Mount::new("ext4", &disk.path().display().to_string(), "", scratch.path()).unwrap();
        let slow = Limits { delay: Some("1us".parse().unwrap()), ..Limits::default() };
        for limits in [Limits::default(), slow] {
            let (image, size) = image::create(scratch.path(), Some(Size::from_mib(8))).unwrap();
            let device = LoopDevice::new(image, limits, outside.as_fd()).unwrap();
            let name = device.path().file_name().unwrap().display().to_string();
            let blocks = fs::read_to_string(format!("/sys/block/{name}/queue/logical_block_size")).unwrap();
            assert_eq!((blocks.trim(), device.is_direct()), ("4096", true), "{limits:?}");
            mkfs::format(Kind::Ext4, device.path(), size, &[]).unwrap();
            let target = tempfile::tempdir().unwrap();
            drop(Mount::new("ext4", &device.path().display().to_string(), "", target.path()).unwrap());
        }
    }

    #[test]
    fn limits_of_an_earlier_user_are_forgotten() {
        let bdi = |device: &LoopDevice, name| format!("/sys/class/bdi/7:{}/{name}", device.number().1);
        // Others may take the device in between.
        for _ in 0..50 {
            let (image, _) = crate::image::create(Path::new("/var/tmp"), None).unwrap();
            let device = LoopDevice::attach(&image).unwrap();
            let number = device.number();
            fs::write(bdi(&device, "max_ratio"), "7").unwrap();
            drop(device);
            let device = LoopDevice::attach(&image).unwrap();
            let ratio = fs::read_to_string(bdi(&device, "max_ratio")).unwrap();
            if device.number() == number {
                assert_eq!(ratio.trim(), "100");
                return;
            }
            fs::write(format!("/sys/class/bdi/7:{}/max_ratio", number.1), "100").unwrap();
        }
        panic!("others were faster, fifty times");
    }
}
