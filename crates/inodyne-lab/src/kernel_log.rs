//! What the kernel logs about a device from a given moment on.
//!
//! File systems explain a refused mount there and only there. Nothing here fails: without the log an error is just
//! less clear.

use std::{fs::File, io::Read, os::unix::fs::OpenOptionsExt};

use rustix::fs::{OFlags, SeekFrom, seek};

/// The kernel's log, read from where it ended.
pub(crate) struct KernelLog(File);

impl KernelLog {
    /// From now on; `None` where the log may not be read.
    pub fn from_now() -> Option<Self> {
        let flags = OFlags::NONBLOCK.bits() as i32;
        let file = File::options().read(true).custom_flags(flags).open("/dev/kmsg").ok()?;
        seek(&file, SeekFrom::End(0)).ok()?;
        Some(Self(file))
    }

    /// The messages so far that name `device` (`/dev/loop0`).
    pub fn about(&self, device: &str) -> Vec<String> {
        let device = device.trim_start_matches("/dev/");
        let mut messages = Vec::new();
        let mut buffer = [0; 8192];
        loop {
            match (&self.0).read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => {
                    let record = String::from_utf8_lossy(&buffer[..length]);
                    let Some((_, text)) = record.split_once(';') else { continue };
                    let text = text.lines().next().unwrap_or_default();
                    if names(text, device) {
                        messages.push(text.to_owned());
                    }
                }
                // Overwritten before it was read: go on with what is there.
                Err(error) if error.raw_os_error() == Some(rustix::io::Errno::PIPE.raw_os_error()) => {}
                Err(_) => break,
            }
        }
        messages
    }
}

/// Whether `text` names the device, and not one whose number only begins with the same digits.
fn names(text: &str, device: &str) -> bool {
    text.match_indices(device).any(|(at, _)| !text[at + device.len()..].starts_with(|next: char| next.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn a_device_is_not_its_longer_neighbour() {
        assert!(names("EXT4-fs (loop1): bad option", "loop1"));
        assert!(!names("EXT4-fs (loop11): bad option", "loop1"));
        assert!(names("loop11 loop1", "loop1"));
    }
}
