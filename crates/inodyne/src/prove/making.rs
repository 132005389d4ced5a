//! Which options of mkfs and mount a recording may give: those that say what the file system is like. A recording may come from anybody,
//! and places are made as root. With other options mkfs copies a directory, writes a file or runs a command (mkfs.ext4 -d and -z, mksquashfs
//! -p), and a mount leads to files that are there already. To give one of these, give the place with `--at`.

use inodyne_lab::{Kind, MadePlace};

/// What a program that makes a file system takes: options with a value, and options without one.
struct Known {
    valued: &'static [&'static str],
    flags: &'static [&'static str],
}

/// mke2fs(8)
const EXT: Known = Known {
    valued: &["-b", "-C", "-E", "-g", "-G", "-i", "-I", "-J", "-L", "-m", "-N", "-O", "-r", "-T", "-U"],
    flags: &["-F", "-j", "-q", "-v"],
};
/// mkfs.xfs(8)
const XFS: Known = Known { valued: &["-b", "-d", "-i", "-l", "-L", "-m", "-n", "-s"], flags: &["-f", "-K", "-q"] };
/// mkfs.btrfs(8)
const BTRFS: Known = Known {
    valued: &[
        "-d",
        "--data",
        "-m",
        "--metadata",
        "-n",
        "--nodesize",
        "-s",
        "--sectorsize",
        "-O",
        "--features",
        "-R",
        "--runtime-features",
        "--csum",
        "--checksum",
        "-L",
        "--label",
        "-U",
        "--uuid",
    ],
    flags: &["-f", "--force", "-M", "--mixed", "-K", "--nodiscard", "-q", "-v"],
};
/// mksquashfs(1)
const SQUASHFS: Known = Known {
    valued: &[
        "-comp",
        "-b",
        "-processors",
        "-Xcompression-level",
        "-Xwindow-size",
        "-Xstrategy",
        "-Xdict-size",
        "-Xbcj",
    ],
    flags: &[
        "-noI",
        "-noId",
        "-noD",
        "-noF",
        "-noX",
        "-no-compression",
        "-no-fragments",
        "-always-use-fragments",
        "-tailends",
        "-all-root",
        "-no-duplicates",
        "-no-xattrs",
        "-no-exports",
        "-exports",
        "-no-sparse",
        "-nopad",
        "-Xhc",
    ],
};
/// mkfs.erofs(1)
const EROFS: Known = Known { valued: &["-z", "-C", "-E", "-b", "-L", "-T", "-U", "-x"], flags: &["--all-root"] };
/// Tmpfs and what lies over other places are not formatted.
const NONE: Known = Known { valued: &[], flags: &[] };

/// In the value of an option, these name another file or device.
const LEADING_ELSEWHERE: &[&str] = &["device", "file", "logdev", "name", "rtdev"];

/// Mount options: of every file system, of ext2 to ext4, of XFS, of btrfs, of tmpfs, of squashfs, of EROFS, of overlays, and of FUSE.
const MOUNT: &[&str] = &[
    "defaults",
    "auto",
    "noauto",
    "ro",
    "rw",
    "suid",
    "dev",
    "exec",
    "async",
    "atime",
    "diratime",
    "norelatime",
    "nostrictatime",
    "iversion",
    "noiversion",
    "nosuid",
    "nodev",
    "noexec",
    "sync",
    "dirsync",
    "noatime",
    "relatime",
    "strictatime",
    "nodiratime",
    "lazytime",
    "nolazytime",
    "data",
    "commit",
    "barrier",
    "nobarrier",
    "journal_async_commit",
    "journal_checksum",
    "delalloc",
    "nodelalloc",
    "discard",
    "nodiscard",
    "inode_readahead_blks",
    "max_batch_time",
    "min_batch_time",
    "stripe",
    "auto_da_alloc",
    "noauto_da_alloc",
    "dioread_lock",
    "dioread_nolock",
    "noload",
    "user_xattr",
    "nouser_xattr",
    "acl",
    "noacl",
    "init_itable",
    "noinit_itable",
    "errors",
    "data_err",
    "journal_ioprio",
    "nojournal_checksum",
    "block_validity",
    "noblock_validity",
    "resuid",
    "resgid",
    "dax",
    "quota",
    "noquota",
    "usrquota",
    "grpquota",
    "prjquota",
    "prefetch_block_bitmaps",
    "no_prefetch_block_bitmaps",
    "logbsize",
    "logbufs",
    "allocsize",
    "inode32",
    "inode64",
    "largeio",
    "nolargeio",
    "swalloc",
    "wsync",
    "filestreams",
    "sunit",
    "swidth",
    "noalign",
    "uquota",
    "gquota",
    "pquota",
    "nouuid",
    "ikeep",
    "noikeep",
    "norecovery",
    "attr2",
    "noattr2",
    "compress",
    "compress-force",
    "ssd",
    "nossd",
    "ssd_spread",
    "space_cache",
    "nospace_cache",
    "autodefrag",
    "noautodefrag",
    "nodatacow",
    "datacow",
    "nodatasum",
    "datasum",
    "thread_pool",
    "flushoncommit",
    "noflushoncommit",
    "max_inline",
    "metadata_ratio",
    "treelog",
    "notreelog",
    "clear_cache",
    "user_subvol_rm_allowed",
    "size",
    "nr_inodes",
    "nr_blocks",
    "huge",
    "mode",
    "uid",
    "gid",
    "mpol",
    "noswap",
    "threads",
    "cache_strategy",
    "metacopy",
    "redirect_dir",
    "index",
    "xino",
    "volatile",
    "nfs_export",
    "userxattr",
    "uuid",
    "attr_timeout",
    "entry_timeout",
    "negative_timeout",
    "kernel_cache",
    "max_read",
    "default_permissions",
    "allow_other",
];

/// Whether a file system is made and mounted with known options only.
///
/// # Errors
/// It has another one.
pub fn check(made: &MadePlace) -> Result<(), String> {
    let refused =
        |what: &str| Err(format!("the recording gives {what}, which may lead out of its place: give --at a place"));
    if let Some(word) = unknown_word(&known(made.kind), &made.mkfs_words()) {
        return refused(&format!("mkfs {word}"));
    }
    let name = |option: &str| option.split('=').next().unwrap_or_default().to_owned();
    let mut options = made.mount_options().split(',').filter(|option| !option.is_empty());
    let is_harmless = |option: &&str| MOUNT.contains(&name(option).as_str()) && !option.contains('/');
    // A file system that is full or wrong would end the machine.
    match options.find(|option| !is_harmless(option) || *option == "errors=panic") {
        Some(option) => refused(&format!("mount {option}")),
        None => Ok(()),
    }
}

fn known(kind: Kind) -> Known {
    match kind {
        Kind::Ext2 | Kind::Ext3 | Kind::Ext4 => EXT,
        Kind::Xfs => XFS,
        Kind::Btrfs => BTRFS,
        Kind::Squashfs => SQUASHFS,
        Kind::Erofs => EROFS,
        Kind::Tmpfs | Kind::Overlay | Kind::Bind | Kind::Fuse | Kind::Share => NONE,
    }
}

/// The first word that is neither a known option nor the value of one.
fn unknown_word<'a>(known: &Known, words: &'a [String]) -> Option<&'a str> {
    let mut is_value = false;
    words.iter().map(String::as_str).find(|word| {
        if std::mem::take(&mut is_value) {
            return leads_elsewhere(word);
        }
        is_value = known.valued.contains(word);
        !is_value && !known.flags.contains(word) && with_value(known, word).is_none_or(leads_elsewhere)
    })
}

/// The value in a word that has the option as well: `-I128`, `--nodesize=16k`, `-zlz4hc`.
fn with_value<'a>(known: &Known, word: &'a str) -> Option<&'a str> {
    known.valued.iter().find_map(|option| {
        let value = word.strip_prefix(option)?;
        if option.len() == 2 { Some(value) } else { value.strip_prefix('=') }
    })
}

fn leads_elsewhere(value: &str) -> bool {
    let name = |entry: &str| entry.split('=').next().unwrap_or_default().to_owned();
    let is_option = value.starts_with('-') && value.parse::<i64>().is_err();
    is_option || value.contains('/') || value.split(',').any(|entry| LEADING_ELSEWHERE.contains(&name(entry).as_str()))
}

#[cfg(test)]
mod tests {
    use inodyne_lab::{PlaceSpec, Where};

    use super::*;

    fn checked(spec: &str) -> Result<(), String> {
        let spec: PlaceSpec = spec.parse().expect("it can be made");
        let Where::Made(made) = spec.place() else { panic!("{spec} is made") };
        check(made)
    }

    #[test]
    fn what_a_file_system_is_like_may_be_told() {
        for spec in [
            "ext4:mkfs=-O ^filetype -I 128 -i4096",
            "ext4:mkfs=-J size=4 -E stride=4 -b -4096 -q,mount=defaults,errors=remount-ro,data=journal,commit=60",
            "xfs:size=1G,mkfs=-l size=16m -n ftype=0 -d agcount=8,mount=logbsize=256k",
            "btrfs:mkfs=--nodesize=16k -m single --csum xxhash,mount=compress=zstd:3",
            "squashfs:mkfs=-comp zstd -b 128K -no-xattrs",
            "erofs:mkfs=-zlz4hc -x-1",
            "erofs:mkfs=-x -1",
            "overlay:mount=metacopy=on",
            "fuse:ext4,mount=entry_timeout=60,attr_timeout=60",
        ] {
            assert_eq!(checked(spec), Ok(()), "{spec}");
        }
    }

    #[test]
    fn nothing_of_a_recording_leads_out_of_its_place() {
        for spec in [
            "squashfs:mkfs=-p 'x f 644 0 0 touch /root/owned'",
            "squashfs:mkfs=-p 'x f 644 0 0 id'",
            "btrfs:mkfs=-M vm.img",
            "btrfs:mkfs=--rootdir=home",
            "btrfs:mkfs=-m -r",
            "ext4:mkfs=-d home",
            "ext4:mkfs=-z undo",
            "ext4:mkfs=-J device=UUID=0",
            "ext4:mkfs=-q x",
            "xfs:mkfs=-l logdev=x",
            "xfs:mkfs=-d file,name=x",
            "xfs:mkfs=-p proto",
            "ext4:mount=journal_dev=0x700",
            "ext4:mount=commit=/x",
            "ext4:mount=errors=panic",
            "erofs:mount=device=x",
        ] {
            assert!(checked(spec).is_err_and(|told| told.contains("--at")), "{spec}");
        }
    }
}
