//! Numbers and names of devices.

use std::fs;
use std::path::Path;

/// The kernel's own encoding of a device number, 12 bits of major and 20 of minor (include/linux/kdev_t.h), as people write it: `7:3`.
pub fn number(device: u32) -> String {
    format!("{}:{}", device >> 20, device & 0xf_ffff)
}

/// The name of the block device with this number (`loop3`); the number where there is none, or none any more.
pub fn name(number: &str) -> String {
    let directory = fs::read_link(format!("/sys/dev/block/{number}")).ok();
    let name = directory.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| number.to_owned())
}
