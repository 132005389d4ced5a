//! Which settings of the machine a recording may change: those that have to do with files and storage. A recording may come from anybody,
//! and what is written below /proc/sys can do anything. Of block devices it may change only the one that is made for the place, and of that not whether its
//! cache is written back. To change another one, give the place with `--at`.

use inodyne_lab::{PlaceSpec, Where};

use super::making;

/// Directories, and the names in them. `*` is any one directory.
const KNOWN: [(&str, &[&str]); 6] = [
    (
        "/proc/sys/vm",
        &[
            "dirty_background_bytes",
            "dirty_background_ratio",
            "dirty_bytes",
            "dirty_expire_centisecs",
            "dirty_ratio",
            "dirty_writeback_centisecs",
            "dirtytime_expire_seconds",
            "page-cluster",
            "swappiness",
            "vfs_cache_pressure",
        ],
    ),
    (
        "/sys/block/LOOP/queue",
        &["max_sectors_kb", "nr_requests", "read_ahead_kb", "rotational", "rq_affinity", "scheduler", "wbt_lat_usec"],
    ),
    ("/sys/block/LOOP/bdi", &["max_ratio", "min_ratio", "read_ahead_kb", "strict_limit"]),
    ("/sys/fs/ext4/*", &["inode_readahead_blks", "mb_stream_req", "mb_group_prealloc"]),
    ("/sys/fs/btrfs/*", &["bg_reclaim_threshold", "commit_stats"]),
    ("/sys/fs/xfs/*", &["log_recovery_delay"]),
];

/// Whether a place changes known settings only, and is made with known options ([`making`]).
///
/// # Errors
/// It changes another one.
pub fn check(spec: &PlaceSpec) -> Result<(), String> {
    let Where::Made(made) = spec.place() else { return Ok(()) };
    if let Some(file) = made.setting_files().find(|file| !is_known(file)) {
        return Err(format!(
            "the recording wants to change {file}, which is not a setting of files: give --at a place"
        ));
    }
    making::check(made)?;
    made.below().try_for_each(check)
}

fn is_known(file: &str) -> bool {
    let Some((directory, name)) = file.rsplit_once('/') else { return false };
    let is_like = |pattern: &str| {
        let (mut wanted, mut parts) = (pattern.split('/'), directory.split('/'));
        wanted.by_ref().zip(parts.by_ref()).all(|(wanted, part)| wanted == "*" && !part.is_empty() || wanted == part)
            && pattern.split('/').count() == directory.split('/').count()
    };
    KNOWN.iter().any(|(pattern, names)| names.contains(&name) && is_like(pattern))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_settings_come_from_a_recording() {
        let check = |spec: &str| check(&spec.parse().unwrap());
        for spec in [
            "ext4",
            "ext4:set=/proc/sys/vm/dirty_bytes=8388608",
            "overlay:lower=[ext4:set=/sys/block/LOOP/queue/nr_requests=4]",
            "ext4:set=/sys/block/LOOP/queue/rotational=1,set=/sys/block/LOOP/bdi/max_ratio=1",
        ] {
            assert_eq!(check(spec), Ok(()), "{spec}");
        }
        for spec in [
            "ext4:set=/proc/sys/kernel/core_pattern=|/tmp/x",
            "overlay:lower=[ext4:set=/proc/sys/kernel/modprobe=/tmp/x]",
            "ext4:set=/proc/sys/vm/x/dirty_bytes=1",
            "ext4:set=/sys/block/queue/read_ahead_kb=1",
            "ext4:set=/sys/block/sda/queue/read_ahead_kb=0",
            "ext4:set=/sys/block/sda/queue/rotational=0",
            "ext4:set=/sys/block/LOOP/subsystem/sda/queue/rotational=0",
            "ext4:set=/sys/block/LOOP/queue/write_cache=write through",
            "ext4:set=/sys/block/sda/bdi/max_ratio=1",
            "ext4:set=/sys/class/bdi/8:0/max_ratio=1",
            "overlay:lower=[squashfs:mkfs=-p 'x f 644 0 0 id']",
        ] {
            assert!(check(spec).is_err_and(|told| told.contains("--at")), "{spec}");
        }
    }
}
