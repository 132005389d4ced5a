//! The grammar of places: examples, mistakes, and text ∘ parse = identity.

use proptest::prelude::*;

use super::*;

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
fn mistakes_are_named_with_what_there_is() {
    for (text, says) in [
        ("ext5", "there are ext2, ext3, ext4, xfs, btrfs, tmpfs"),
        ("data", "./data"),
        ("", "no file system ''"),
        ("=ext4", "label before '=' is empty"),
        ("ext4:", "size=, mkfs= and mount="),
        ("ext4:colour=red", "no option 'colour'"),
        ("ext4:size=big", "'big' is no size"),
        ("ext4:size=1G,size=2G", "twice"),
        ("ext4:size=1G,colour=red", "is no size"),
        ("ext4:mkfs=", "mkfs= is empty"),
        ("ext4:mkfs=-L 'x", "open quote"),
        ("tmpfs:mkfs=-q", "not made by mkfs"),
        ("a=b=ext4", "no file system 'b=ext4'"),
    ] {
        let error = text.parse::<PlaceSpec>().unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
        assert_eq!(error.lines().count(), 1);
    }
}

fn value() -> impl Strategy<Value = String> {
    "[-a-z0-9^=,. ]{0,12}[a-z0-9]('[a-z, =]{0,6}')?".prop_filter("would be read as options", |text| {
        split_options(text).len() == 1 && !KEYS.iter().any(|key| text.contains(&format!(",{key}=")))
    })
}

fn spec() -> impl Strategy<Value = PlaceSpec> {
    let directory = prop_oneof!["/[a-z=:, ]{0,12}", r"\./[a-z=:, ]{0,12}", Just(".".into())];
    let existing = directory.prop_map(|text: String| Where::Existing(text.into()));
    let size = proptest::option::of((1..u64::MAX / 4).prop_map(Size::from_bytes));
    let options = (proptest::sample::select(&Kind::ALL[..]), size, any::<[bool; 2]>(), value(), value());
    let made = options.prop_map(|(kind, size, [with_mkfs, with_mount], mkfs, mount)| {
        let mkfs = (with_mkfs && kind.mkfs().is_some()).then_some(mkfs);
        Where::Made(MadePlace { kind, size, mkfs, mount: with_mount.then_some(mount) })
    });
    (proptest::option::of("[a-zé0-9 ]{0,6}[a-z]"), prop_oneof![existing, made])
        .prop_map(|(label, place)| PlaceSpec { label, place })
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
    fn no_option_makes_it_panic(text in "(ext4|xfs|tmpfs):((size|mkfs|mount)=[-a-z0-9 ,'\"\\\\=]{0,9},?){0,4}") {
        if let Ok(spec) = text.parse::<PlaceSpec>() {
            prop_assert_eq!(spec.to_string().parse::<PlaceSpec>().unwrap(), spec);
        }
    }
}
