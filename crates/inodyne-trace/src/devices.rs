//! Numbers and names of devices.

use std::fs;

/// The kernel's own encoding of a device number, 12 bits of major and 20 of minor (include/linux/kdev_t.h), as people write it: `7:3`.
pub fn number(device: u32) -> String {
    format!("{}:{}", device >> 20, device & 0xf_ffff)
}

/// The name of the block device with this number, where there is one: `loop3`.
pub fn name(number: &str) -> Option<String> {
    let directory = fs::read_link(format!("/sys/dev/block/{number}")).ok()?;
    Some(directory.file_name()?.to_string_lossy().into_owned())
}
