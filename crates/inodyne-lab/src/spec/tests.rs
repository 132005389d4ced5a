//! The grammar of places: examples, mistakes, and text ∘ parse = identity.

use proptest::prelude::*;

use super::*;
use crate::{Limits, Size, key::Key, wear::Wear};

fn parse(text: &str) -> PlaceSpec {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn made_of(text: &str) -> MadePlace {
    match parse(text).place {
        Where::Made(made) => made,
        other => panic!("{text} is {other:?}"),
    }
}

#[test]
fn options_keep_the_commas_of_mkfs_and_mount() {
    let made = made_of("ext4:mkfs=-O ^has_journal,^filetype -N 9,size=1G,mount=noatime,data=writeback");
    assert_eq!(made.mkfs_words(), ["-O", "^has_journal,^filetype", "-N", "9"]);
    assert_eq!((made.size.unwrap().to_string().as_str(), made.mount_options()), ("1G", "noatime,data=writeback"));
    let made = made_of("xfs:mkfs=-d 'agcount=4,size=1g' -L \"a,mount=b\"");
    assert_eq!(made.mkfs_words(), ["-d", "agcount=4,size=1g", "-L", "a,mount=b"]);
    assert_eq!(made_of("ext4:mount=data=journal").mount_options(), "data=journal");
    assert_eq!(made_of("tmpfs:mount=nr_inodes=7,size=1M").size, Some(Size::from_mib(1)));
}

#[test]
fn directories_and_labels_are_told_apart() {
    for (text, label, directory) in [
        (".", None, "."),
        ("..", None, ".."),
        ("./ext4", None, "./ext4"),
        ("/a=b", None, "/a=b"),
        ("a=b/c", Some("a"), "b/c"),
        ("here=.", Some("here"), "."),
        ("/x:y", None, "/x:y"),
        ("ext5:/x", None, "ext5:/x"),
        ("ext4=/x", Some("ext4"), "/x"),
    ] {
        let place = parse(text);
        assert_eq!(place.label(), label, "{text}");
        assert_eq!(place.place(), &Where::Existing(directory.into()), "{text}");
    }
    assert_eq!(parse("slow=ext4").name(), "slow");
    assert_eq!(parse("ext4:size=1G").name(), "ext4:size=1G");
    assert_eq!(PlaceSpec::from(Path::new("ext4")).to_string(), "./ext4");
    assert_eq!(PlaceSpec::from(Path::new("/a")).to_string(), "/a");
}

#[test]
fn a_path_is_never_read_as_options() {
    for directory in [
        "/srv/data",
        "/home/a/x,set=/proc/sys/kernel/core_pattern=|/home/a/evil",
        "/home/a/x,mount=ro",
        "/home/a/x],set=/proc/sys/kernel/core_pattern=|/home/a/[,set=",
        "/home/a/'x",
    ] {
        let spec = PlaceSpec::showing(Path::new(directory));
        let Where::Made(made) = spec.place() else { panic!("{spec:?}") };
        let lower = PlaceSpec { label: None, place: Where::Existing(directory.into()) };
        assert_eq!(made, &MadePlace { lower: Some(Box::new(lower)), ..MadePlace::plain(Kind::Bind) });
        assert!(!spec.is_made());
    }
    for directory in ["/srv/data", "/a/x,set=/proc/sys/vm/y=1", "/a/x,mount=ro"] {
        let spec = PlaceSpec::showing(Path::new(directory));
        assert_eq!(parse(&spec.to_string()), spec);
    }
}

#[test]
fn mistakes_are_named_with_what_there_is() {
    for (text, says) in [
        ("ext5", "there are ext2, ext3, ext4, xfs, btrfs, tmpfs, overlay, bind, fuse, share, squashfs, erofs"),
        ("data", "./data"),
        ("", "no file system ''"),
        ("=ext4", "label before '=' is empty"),
        ("ext4:", "no option '': ext4 takes size=, mkfs=, mount=, age=, full=, delay=, bandwidth=, iops= and set="),
        ("ext4:colour=red", "no option 'colour'"),
        ("ext4:size=big", "'big' is not a size"),
        ("ext4:size=1G,size=2G", "twice"),
        ("ext4:size=1G,colour=red", "is not a size"),
        ("ext4:mkfs=", "mkfs= is empty"),
        ("ext4:mkfs=-L 'x", "open quote"),
        ("btrfs:mkfs=-m raid1 /dev/vdb", "mkfs=/dev/vdb names a device"),
        ("xfs:size=1G,mkfs=-l 'logdev=/dev/vdb'", "names a device"),
        ("tmpfs:mkfs=-q", "no option 'mkfs': tmpfs takes size=, mount= and set="),
        ("squashfs:size=1G", "no option 'size'"),
        ("ext4:delay=2", "'2' is not a delay"),
        ("ext4:delay=1ms,delay=2ms", "twice"),
        ("ext4:bandwidth=1K", "less than 4K a second"),
        ("ext4:bandwidth=fast", "is not a size"),
        ("ext4:iops=0", "not a number of requests"),
        ("ext4:age=0", "not a number of rounds"),
        ("ext4:full=80", "is not a share"),
        ("ext4:full=99%", "from 1% to 95%"),
        ("tmpfs:full=80%", "no option 'full'"),
        ("tmpfs:delay=2ms", "no option 'delay'"),
        ("fuse:", "fuse: is empty"),
        ("fuse:data", "no file system 'data'"),
        ("fuse:ext4,mount=entry_timeout=x", "entry_timeout=x: it is a number of seconds"),
        ("share:", "share: is empty"),
        ("share:ext4,withhold-types,withhold-types", "twice"),
        (
            "share:ext4,withhold-types,colour=red",
            "no option 'colour=red': share takes withhold-types, delay=, mount= and set=",
        ),
        ("fuse:ext4,withhold-types", "no file system 'ext4,withhold-types'"),
        ("overlay:upper=fuse", "cannot be written to"),
        ("bind", "write bind:DIR"),
        ("bind:", "bind: is empty"),
        ("bind:/x,mount=ro,mount=ro", "twice"),
        ("bind:data", "no file system 'data'"),
        ("overlay:lower=a=/x", "'a=' labels an inner place"),
        ("overlay:lower=/x,lower=/y", "twice"),
        ("overlay:lower=", "lower= is empty"),
        ("overlay:lower=[ext4", "lower=[ext4 has an open bracket"),
        ("overlay:lower=[\",size=\"size=/", "has an open bracket"),
        ("overlay:lower=/x]", "has a closing bracket without its opening one"),
        ("ext4:mount=[", "has an open bracket"),
        ("overlay:lower=[ext4]x", "no file system '[ext4]x'"),
        ("overlay:layers=0", "not a number from 1 to 500"),
        ("overlay:lower=/x,layers=2", "cannot be split into layers"),
        ("overlay:upper=/x", "upper=/x cannot be written to"),
        ("overlay:upper=squashfs", "cannot be written to"),
        ("overlay:lower=overlay:lower=overlay:lower=/x", "at most two high"),
        ("bind:bind:bind:bind:bind:bind:/x", "at most 4 deep"),
        ("ext4:set=/etc/passwd=x", "only files under /sys and /proc/sys"),
        ("ext4:set=/sys/../etc/passwd=x", "only files under /sys and /proc/sys"),
        ("ext4:set=/proc/sys/vm/dirty_ratio", "write set=FILE=VALUE"),
        ("ext4:set=/proc/sys/vm/dirty_ratio=", "is empty"),
        ("ext4:set=/proc/sys/vm/a=1,set=/proc/sys/vm/a=2", "twice"),
        ("tmpfs:set=/sys/block/LOOP/queue/x=1", "no device of its own"),
        ("bind:/x,set=/sys/block/sda/queue/scheduler=none", "resets other settings of the queue"),
        ("bind:/x,set=/sys/block/sda/queue/nr_requests=64", "resets other settings of the queue"),
        ("ext4:set=/sys/class/block/sda//queue/./nr_requests=64", "resets other settings of the queue"),
        ("ext4:set=/sys/block/sda/queue/wbt_lat_usec=0", "turns writeback throttling from automatic to manual"),
        ("ext4:set=/sys/class/bdi/8:0/max_bytes=4194304", "would not be restored exactly"),
        ("btrfs:mkfs=/home/me/vm.img", "is not an option"),
        ("ext4:mkfs=-I 128 x", "is not an option"),
        ("overlay:mount=metacopy=on,upperdir=/home/me", "its layers are lower= and upper="),
        ("overlay:mount=metacopy=on, upperdir=/home/me", "mount=upperdir= leads elsewhere"),
        ("a=b=ext4", "no file system 'b=ext4'"),
    ] {
        let error = text.parse::<PlaceSpec>().unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
        assert_eq!(error.lines().count(), 1);
    }
}

#[test]
fn places_stand_in_places() {
    let over = made_of("overlay:lower=ext4:size=1G,mkfs=-O a,b,layers=3,set=/proc/sys/vm/x=1");
    assert_eq!(over.lower().unwrap().to_string(), "ext4:size=1G,mkfs=-O a,b");
    assert_eq!((over.layers(), over.upper(), over.settings().len()), (3, None, 1));
    let over = made_of("overlay:lower=[ext4:mount=a,set=/sys/x=1],mount=c,upper=[tmpfs:size=1M,mount=d]");
    assert_eq!(over.lower().unwrap().to_string(), "ext4:mount=a,set=/sys/x=1");
    assert_eq!((over.mount_options(), over.upper().unwrap().to_string().as_str()), ("c", "tmpfs:size=1M,mount=d"));
    let bound = made_of("bind:/a,b=c,mount=ro");
    assert_eq!((bound.lower().unwrap().to_string().as_str(), bound.mount_options()), ("/a,b=c", "ro"));
    let bound = made_of("bind:[overlay:lower=[ext4:size=1M,mount=a],mount=b],mount=ro");
    assert_eq!(bound.lower().unwrap().to_string(), "overlay:lower=[ext4:size=1M,mount=a],mount=b");
    assert_eq!((made_of("fuse").lower(), parse("fuse").to_string().as_str()), (None, "fuse"));
    let served = made_of("fuse:xfs:size=1G,delay=2ms,mount=max_read=4096");
    assert_eq!(served.lower().unwrap().to_string(), "xfs:size=1G,delay=2ms");
    assert_eq!(served.mount_options(), "max_read=4096");
    assert_eq!(parse("x=bind:[/a,mount=b]").to_string(), "x=bind:[/a,mount=b]");
    let shared = made_of("share:ext4:size=1G,withhold-types,delay=2ms");
    assert_eq!(shared.lower().unwrap().to_string(), "ext4:size=1G");
    assert_eq!((shared.withholds_types(), shared.limits().delay.unwrap().to_string().as_str()), (true, "2ms"));
    let shared = made_of("share:[ext4:delay=1ms],delay=2ms");
    assert_eq!(shared.lower().unwrap().to_string(), "ext4:delay=1ms");
    assert!(!shared.withholds_types() && !made_of("share:/a,withhold-types-not").withholds_types());
    let bound = made_of("bind:[a]/x,mount=ro");
    assert_eq!((bound.lower().unwrap().to_string().as_str(), bound.mount_options()), ("[a]/x", "ro"));
    let over = made_of("overlay:lower=bind:[ext4:size=1M,mount=a],mount=b");
    assert_eq!(
        (over.lower().unwrap().to_string().as_str(), over.mount_options()),
        ("bind:[ext4:size=1M,mount=a]", "b")
    );
}

#[test]
fn what_is_only_shown_is_not_made() {
    for (text, is_made, is_all_made) in [
        ("ext4", true, true),
        ("/x", false, false),
        ("bind:/x", false, false),
        ("bind:bind:/x", false, false),
        ("fuse:[bind:/x],mount=ro", false, false),
        ("fuse", true, true),
        ("bind:ext4", true, true),
        ("overlay:lower=/x", true, false),
        ("overlay:lower=[bind:/x]", true, false),
        ("bind:overlay:lower=/x", true, false),
        ("overlay:lower=xfs,upper=tmpfs", true, true),
    ] {
        let place = parse(text);
        assert_eq!((place.is_made(), place.is_all_made()), (is_made, is_all_made), "{text}");
    }
}

fn value() -> impl Strategy<Value = String> {
    let is_one = |text: &String| !Key::ALL.iter().any(|key| text.contains(&format!(",{}=", key.name())));
    "[-a-z0-9^=,. ]{0,12}[a-z0-9]('[a-z, =]{0,6}')?".prop_filter("would be read as options", is_one)
}

fn setting() -> impl Strategy<Value = SettingSpec> {
    let value = value().prop_filter("empty", |value| !value.trim().is_empty());
    ("/(proc/)?sys/[a-z/]{0,9}", value).prop_map(|(file, value)| SettingSpec { file, value })
}

fn existing() -> impl Strategy<Value = Where> {
    let directory = prop_oneof!["/[a-z=:, ]{0,12}", r"\./[a-z=:, ]{0,12}", Just(".".into())];
    directory.prop_map(|text: String| Where::Existing(text.into()))
}

fn made() -> impl Strategy<Value = Where> {
    let kinds: Vec<_> = Kind::ALL.into_iter().filter(|kind| kind.keys().contains(&Key::Mkfs)).collect();
    let size = proptest::option::of((1..u64::MAX / 4).prop_map(Size::from_bytes));
    let option = || proptest::option::of(value());
    // Options, each with at most one value.
    let mkfs = proptest::option::of(value().prop_map(|text| format!("-{}", text.replace(' ', " -"))));
    let settings = proptest::collection::vec(setting(), 0..2);
    let limits = (proptest::option::of(1..10_000_000_u64), proptest::option::of(4096..u64::MAX / 4), any::<u32>());
    let limits = limits.prop_map(|(delay, bandwidth, iops)| Limits {
        delay: delay.map(|micros| format!("{micros}us").parse().unwrap()),
        bandwidth: bandwidth.map(Size::from_bytes),
        iops: Some(iops).filter(|iops| *iops > 0),
    });
    let wear = (proptest::option::of(1..100_u32), proptest::option::of(1..95_u8));
    let made = (proptest::sample::select(kinds), size, mkfs, option(), limits, wear, settings);
    made.prop_map(|(kind, size, mkfs, mount, limits, (age, full), settings)| {
        let wear = if kind.keys().contains(&Key::Age) { Wear { age, full } } else { Wear::default() };
        let size = size.filter(|_| kind.keys().contains(&Key::Size));
        Where::Made(MadePlace { size, mkfs, mount, wear, limits, settings, ..MadePlace::plain(kind) })
    })
}

fn inner() -> impl Strategy<Value = Where> {
    prop_oneof![existing(), made()].prop_recursive(2, 4, 2, |inner| {
        let lower = inner.prop_map(|place| Some(Box::new(PlaceSpec { label: None, place })));
        let kind = proptest::sample::select(vec![Kind::Overlay, Kind::Bind, Kind::Fuse, Kind::Share]);
        (kind, lower, proptest::option::of(value()), any::<bool>()).prop_map(|(kind, lower, mount, withholds_types)| {
            let withholds_types = withholds_types && kind == Kind::Share;
            Where::Made(MadePlace { lower, mount, withholds_types, ..MadePlace::plain(kind) })
        })
    })
}

fn spec() -> impl Strategy<Value = PlaceSpec> {
    (proptest::option::of("[a-zé0-9 ]{0,6}[a-z]"), inner()).prop_map(|(label, place)| PlaceSpec { label, place })
}

proptest! {
    #[test]
    fn written_and_read_again_it_is_the_same(spec in spec()) {
        let text = spec.to_string();
        let again: PlaceSpec = text.parse().unwrap();
        prop_assert_eq!(&again, &spec);
        prop_assert_eq!(again.to_string(), text);
    }

    #[test]
    fn nothing_makes_it_panic(text in ".{0,40}") {
        if let Ok(spec) = text.parse::<PlaceSpec>() {
            prop_assert_eq!(spec.to_string().parse::<PlaceSpec>().unwrap(), spec);
        }
    }

    #[test]
    fn no_option_makes_it_panic(text in "(ext4|overlay|tmpfs|bind|share):((withhold-types|size|mkfs|mount|lower|delay|iops|set)=?(\\[?(ext4|bind|overlay):((mkfs|mount|lower)=)?)?[-a-z0-9 ,'\"\\\\=\\[\\]/]{0,9},?){0,4}") {
        if let Ok(spec) = text.parse::<PlaceSpec>() {
            prop_assert_eq!(spec.to_string().parse::<PlaceSpec>().unwrap(), spec);
        }
    }
}
