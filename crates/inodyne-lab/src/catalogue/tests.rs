//! Every setting changes what it says, and docs/tune.md says the same of it.

use std::path::Path;

use super::*;

fn place(text: &str) -> PlaceSpec {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn with(name: &str, value: &str, at: &str) -> Result<String, String> {
    let tunable = Tunable::named(name).unwrap();
    let changed = tunable.apply(&place(at), value).map_err(|error| error.to_string())?;
    assert_eq!(place(&changed.to_string()), changed, "{name}={value} on {at}");
    Ok(changed.to_string())
}

#[test]
fn a_setting_changes_the_file_system_that_it_is_for() {
    for (name, value, before, after) in [
        ("journal-size", "64", "ext4", "ext4:mkfs=-J size=64"),
        ("journal-size", "64", "ext4:mkfs=-J size=4 -b 1024", "ext4:mkfs=-J size=64 -b 1024"),
        ("inode-size", "128", "ext4:mkfs=-I 512 -O ^filetype", "ext4:mkfs=-I 128 -O ^filetype"),
        ("dir-index", "^dir_index", "ext4:mkfs=-O ^filetype", "ext4:mkfs=-O ^filetype,^dir_index"),
        ("dir-index", "dir_index", "ext4:mkfs=-O ^dir_index", "ext4:mkfs=-O dir_index"),
        ("orphan-file", "orphan_file", "ext4:size=1G", "ext4:size=1G,mkfs=-O orphan_file"),
        ("orphan-file", "orphan_file", "ext4:mkfs=-O ^orphan_file", "ext4:mkfs=-O orphan_file"),
        ("orphan-file", "^orphan_file", "ext4:mkfs=-O ^filetype", "ext4:mkfs=-O ^filetype,^orphan_file"),
        ("commit", "60", "slow=btrfs:mount=commit=5,noatime", "slow=btrfs:mount=noatime,commit=60"),
        ("atime", "noatime", "overlay:lower=xfs", "overlay:lower=[xfs:mount=noatime]"),
        ("metacopy", "on", "overlay:lower=xfs", "overlay:lower=xfs,mount=metacopy=on"),
        (
            "fuse-timeouts",
            "entry_timeout=60,attr_timeout=60",
            "fuse:[xfs],mount=attr_timeout=5,max_read=4096",
            "fuse:xfs,mount=max_read=4096,entry_timeout=60,attr_timeout=60",
        ),
        ("kernel_cache", "kernel_cache", "fuse", "fuse:ext4,mount=kernel_cache"),
        ("atime", "noatime", "fuse", "fuse:[ext4:mount=noatime]"),
        ("nr_requests", "32", "overlay", "overlay:lower=[ext4:set=/sys/block/LOOP/queue/nr_requests=32]"),
        ("dirty_bytes", "9999999", "tmpfs", "tmpfs:set=/proc/sys/vm/dirty_bytes=9999999"),
        ("agcount", "16", "xfs:mkfs=-d 'agcount=4,size=1g'", "xfs:mkfs=-d size=1g,agcount=16"),
    ] {
        let changed = with(name, value, before);
        assert!(
            changed.as_deref().is_ok_and(|changed| place(changed) == place(after)),
            "{name} on {before}: {changed:?}"
        );
    }
    assert_eq!(with("agcount", "16", "ext4"), Err("ext4 has no xfs".to_owned()));
    assert!(with("dir-index", "dir_index", "ext4").is_err());
}

#[test]
fn only_what_fits_and_changes_something_is_tried() {
    let tried = |at: &str| {
        let place = place(at);
        let of = |tunable: &&'static Tunable| {
            tunable.values_for(&place).map(|value| tunable.written(value.text)).collect::<Vec<_>>()
        };
        CATALOGUE.iter().flat_map(of).collect::<Vec<_>>()
    };
    let ext4 = tried("ext4:size=512M,mount=noatime");
    assert!(ext4.contains(&"-J size=64".to_owned()) && ext4.contains(&"inode_readahead_blks=4096".to_owned()));
    assert!(!ext4.iter().any(|one| ["-J size=256", "noatime", "-O dir_index", "compress=lzo"].contains(&one.as_str())));
    assert!(["-O orphan_file", "-O ^orphan_file"].iter().all(|one| ext4.contains(&(*one).to_owned())));
    assert!(
        !ext4.contains(&"-O filetype".to_owned())
            && tried("ext4:mkfs=-O ^filetype").contains(&"-O filetype".to_owned())
    );
    let [xfs, btrfs] = ["xfs", "btrfs"].map(|at| tried(at).contains(&"read_ahead_kb=1024".to_owned()));
    assert!(xfs && !btrfs);
    assert_eq!(tried("tmpfs").len(), 6);
    assert_eq!(tried("/srv"), [""; 0]);
}

#[test]
fn what_to_write_where_follows_from_how_it_is_set() {
    let permanent = |name: &str, value: &str, at: &str| Tunable::named(name).unwrap().permanent(&place(at), value);
    assert_eq!(permanent("journal-size", "64", "overlay:lower=ext3"), "make it anew: mkfs.ext3 -J size=64");
    assert_eq!(permanent("atime", "noatime", "xfs"), "/etc/fstab: add noatime to the mount options");
    for (name, value, at) in [("data", "journal", "ext4"), ("logbsize", "256k", "xfs"), ("allocsize", "64m", "xfs")] {
        let (told, written) = (permanent(name, value, at), format!("{name}={value}"));
        assert!(told.starts_with(&format!("/etc/fstab: add {written} to the mount options; for / itself")), "{told}");
        assert!(told.contains(&format!(" rootflags={written} ")), "{told}");
    }
    assert!(permanent("kernel_cache", "kernel_cache", "fuse:xfs").starts_with("start the server with -o kernel_cache"));
    assert_eq!(permanent("dirty_bytes", "1", "xfs"), "/etc/sysctl.d/60-inodyne.conf: vm.dirty_bytes = 1");
    assert!(permanent("scheduler", "none", "xfs").ends_with("ATTR{queue/scheduler}=\"none\""));
}

#[test]
fn a_value_that_nobody_knows_risks_what_the_setting_can_risk() {
    let risk = |name: &str, value: &str| Tunable::named(name).unwrap().risk(value);
    assert_eq!(
        [risk("data", "journal"), risk("data", "writeback"), risk("data", "x")].map(Risk::as_str),
        ["none", "durability", "durability"]
    );
    assert_eq!(risk("nr_requests", "7"), Risk::None);
}

/// A row of the table in docs/tune.md.
fn row(tunable: &Tunable) -> String {
    let kinds = match tunable.kinds {
        [] => "the machine".to_owned(),
        kinds => kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", "),
    };
    let value = |value: &Value| {
        let risk = if value.risk == Risk::None { String::new() } else { format!(" ({})", value.risk.as_str()) };
        format!("`{}`{risk}", tunable.written(value.text))
    };
    let values = tunable.values.iter().map(value).collect::<Vec<_>>().join(", ");
    format!("| `{}` | {kinds} | {} | {values} | {} |", tunable.name, tunable.what, tunable.matters)
}

#[test]
fn the_page_lists_every_setting_as_it_is() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tune.md");
    let page = std::fs::read_to_string(&path).expect("docs/tune.md");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let expected: Vec<String> = CATALOGUE.iter().map(|tunable| row(tunable)).collect();
    assert_eq!(rows, expected, "the table of docs/tune.md should be:\n{}", expected.join("\n"));
}
