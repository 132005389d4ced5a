//! What cannot be removed stays, is named once, and keeps nothing else from being removed.
//!
//! Random trees with random immutable files and directories: what must be left follows from a few lines of model.

mod common;

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::Path,
};

use common::{listing, removed};
use inodyne_tree::{RemoveOptions, Strategy as Way};
use proptest::prelude::*;
use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};

/// A directory's entries, or a file; and whether it is immutable.
#[derive(Clone, Debug)]
struct Entry {
    immutable: bool,
    entries: Option<BTreeMap<u8, Entry>>,
}

fn tree() -> impl Strategy<Value = Entry> {
    let rarely = || prop::bool::weighted(0.1);
    let file = rarely().prop_map(|immutable| Entry { immutable, entries: None });
    let directory = move |entry: BoxedStrategy<Entry>| {
        (rarely(), prop::collection::btree_map(any::<u8>(), entry, 0..8))
            .prop_map(|(immutable, entries)| Entry { immutable, entries: Some(entries) })
    };
    let inner = file.prop_recursive(6, 120, 8, move |entry| directory(entry.boxed()).boxed());
    prop::collection::btree_map(any::<u8>(), inner, 1..8)
        .prop_map(|entries| Entry { immutable: false, entries: Some(entries) })
}

impl Entry {
    fn make(&self, path: &Path) {
        match &self.entries {
            None => _ = File::create(path).expect("made"),
            Some(entries) => {
                fs::create_dir(path).expect("made");
                entries.iter().for_each(|(name, entry)| entry.make(&path.join(name.to_string())));
            }
        }
        if self.immutable {
            set_immutable(path, true);
        }
    }

    /// What is left of this entry, and what is named as the reason. `kept`: its parent lets nothing go.
    fn left(&self, path: &str, kept: bool, left: &mut Vec<String>, named: &mut Vec<String>) -> bool {
        let mut stays = false;
        for (name, entry) in self.entries.iter().flatten() {
            let below = if path.is_empty() { name.to_string() } else { format!("{path}/{name}") };
            stays |= entry.left(&below, self.immutable, left, named);
        }
        if !stays && (kept || self.immutable) {
            named.push(format!("{path}: Operation not permitted"));
            stays = true;
        }
        if stays && !path.is_empty() {
            left.push(format!("{path}{}", if self.entries.is_some() { "/" } else { "" }));
        }
        stays
    }
}

fn set_immutable(path: &Path, immutable: bool) {
    let file = File::open(path).expect("opened");
    let mut flags = ioctl_getflags(&file).expect("flags");
    flags.set(IFlags::IMMUTABLE, immutable);
    ioctl_setflags(&file, flags).expect("this test makes files immutable: run it as root, on a file system that can");
}

fn free_all(path: &Path) {
    set_immutable(path, false);
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        let kind = entry.file_type().expect("a type");
        if kind.is_dir() {
            free_all(&entry.path());
        } else {
            set_immutable(&entry.path(), false);
        }
    }
}

fn exactly_the_rest_is_left(tree: &Entry, place: &Path, options: &RemoveOptions) {
    let root = place.join("tree");
    tree.make(&root);
    let (mut left, mut named) = (Vec::new(), Vec::new());
    tree.left("", false, &mut left, &mut named);
    left.sort();
    named.sort();

    let (report, failed) = removed(&root, options);
    let found = listing(&root);
    if root.exists() {
        free_all(&root);
        fs::remove_dir_all(&root).expect("tidied up");
    }
    assert_eq!(found, left, "{options:?}");
    assert_eq!(failed, named, "{options:?}");
    assert!(report.unfinished.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn faults_keep_themselves_and_what_is_above(
        tree in tree(),
        strategy in prop::option::of(prop::sample::select(Way::ALL.to_vec())),
        threads in prop::option::of(1..9usize),
    ) {
        for place in ["/var/tmp", "/dev/shm"] {
            let place = tempfile::tempdir_in(place).expect("a temporary directory");
            exactly_the_rest_is_left(&tree, place.path(), &RemoveOptions { strategy, threads, ..Default::default() });
        }
    }
}
