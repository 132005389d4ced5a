//! Whether one place is another one with a cure applied, judging by what a recording keeps of both: if so, runs in the two say whether
//! the cure gains what was predicted. How a place is made differently is not known here.

use std::collections::{BTreeMap, BTreeSet};

use crate::cure::{Change, PlaceChange};
use crate::place::{Limits, Place};

impl Change {
    /// Whether this change, and nothing else, lies between two places. Only places that were made here are known well enough, and only in
    /// how their file systems are made, mounted and set: for an overlay added or removed, the caches, and the command, it is always false.
    pub fn lies_between(&self, before: &Place, after: &Place) -> bool {
        if !before.made_here || !after.made_here {
            return false;
        }
        let (mut before, mut after) = (all(before), all(after));
        let [was, is] = [&mut before, &mut after].map(|places| self.taken_from(places));
        was != is && self.allows(&is) && before == after
    }

    /// Takes out what it is about: no such change affects what is left.
    fn taken_from(&self, places: &mut [Made]) -> BTreeSet<String> {
        let each = places.iter_mut();
        match self {
            Change::Place(PlaceChange::Feature(name)) => {
                let is_meant = |entry: &str| entry.trim_start_matches('^') == name;
                each.flat_map(|made| made.take_mkfs("-O", &is_meant)).collect()
            }
            Change::Place(PlaceChange::Mkfs { option, parameter, .. }) => {
                let is_meant = |entry: &str| name_of(entry) == parameter;
                each.flat_map(|made| made.take_mkfs(option, &is_meant)).collect()
            }
            // The mount options of the outermost place are meant.
            Change::Place(PlaceChange::Mount(options)) => {
                let is_meant = |entry: &str| options.split(',').any(|option| name_of(option) == name_of(entry));
                each.take(1).flat_map(|made| made.take_mount(&is_meant)).collect()
            }
            Change::Place(PlaceChange::WithoutSettings(names)) => {
                let is_meant = |file: &str| names.iter().any(|name| file.rsplit('/').next() == Some(name));
                each.flat_map(|made| made.take_settings(&is_meant)).collect()
            }
            Change::Setting { file, .. } => each.flat_map(|made| made.take_settings(&|other| other == file)).collect(),
            Change::Place(PlaceChange::Over(_) | PlaceChange::Below)
            | Change::Cache(_)
            | Change::Command(_)
            | Change::Advice { .. } => BTreeSet::new(),
        }
    }

    /// Whether `left` is what the change may leave of what it is about.
    fn allows(&self, left: &BTreeSet<String>) -> bool {
        let is = |entries: &str| *left == entries.split(',').map(str::to_owned).collect::<BTreeSet<_>>();
        match self {
            // A feature that is not left out need not be named.
            Change::Place(PlaceChange::Feature(name)) => left.iter().all(|entry| entry == name),
            Change::Place(PlaceChange::Mkfs { parameter, value, .. }) => is(&format!("{parameter}={value}")),
            Change::Place(PlaceChange::Mount(options)) => is(options),
            Change::Place(PlaceChange::WithoutSettings(_)) => left.is_empty(),
            Change::Setting { file, value } => left.iter().eq([&format!("{file}={value}")]),
            Change::Place(PlaceChange::Over(_) | PlaceChange::Below)
            | Change::Cache(_)
            | Change::Command(_)
            | Change::Advice { .. } => false,
        }
    }
}

/// What a place was made as, without what differs each time it is made.
#[derive(PartialEq)]
struct Made {
    fs: String,
    size_bytes: Option<u64>,
    limits: Option<Limits>,
    data: Option<String>,
    digest: Option<String>,
    /// Rounds and seed.
    wear: Option<(u32, u64)>,
    mkfs: Vec<String>,
    mount: BTreeSet<String>,
    /// `LOOP` stands for a place's device in their files.
    settings: BTreeMap<String, String>,
}

/// A place, and those that it stands on.
fn all(place: &Place) -> Vec<Made> {
    let made = Made {
        fs: place.fs.clone(),
        size_bytes: place.size_bytes,
        limits: place.limits,
        data: place.data.clone(),
        digest: place.data_digest.clone(),
        wear: place.wear.map(|wear| (wear.rounds, wear.seed)),
        mkfs: place.mkfs.clone(),
        mount: place.mount_options.split(',').map(str::to_owned).collect(),
        settings: place.settings.iter().map(|(file, value)| (without_device(file), value.clone())).collect(),
    };
    std::iter::once(made).chain(place.below.iter().flat_map(all)).collect()
}

impl Made {
    /// Takes entries out of an option of mkfs, and removes the option where it has no others.
    fn take_mkfs(&mut self, option: &str, is_meant: &dyn Fn(&str) -> bool) -> Vec<String> {
        let mut taken = Vec::new();
        let mut left: Vec<String> = Vec::new();
        for word in std::mem::take(&mut self.mkfs) {
            if left.last().is_none_or(|before| before != option) {
                left.push(word);
                continue;
            }
            let (meant, others): (Vec<&str>, Vec<&str>) = word.split(',').partition(|entry| is_meant(entry));
            taken.extend(meant.into_iter().map(str::to_owned));
            if others.is_empty() {
                left.pop();
            } else {
                left.push(others.join(","));
            }
        }
        self.mkfs = left;
        taken
    }

    fn take_mount(&mut self, is_meant: &dyn Fn(&str) -> bool) -> BTreeSet<String> {
        let (taken, left) = std::mem::take(&mut self.mount).into_iter().partition(|entry| is_meant(entry));
        self.mount = left;
        taken
    }

    fn take_settings(&mut self, is_meant: &dyn Fn(&str) -> bool) -> Vec<String> {
        let settings = std::mem::take(&mut self.settings).into_iter();
        let (taken, left): (BTreeMap<_, _>, _) = settings.partition(|(file, _)| is_meant(file));
        self.settings = left;
        taken.into_iter().map(|(file, value)| format!("{file}={value}")).collect()
    }
}

/// `size` of `size=4`.
fn name_of(entry: &str) -> &str {
    entry.split_once('=').map_or(entry, |(name, _)| name)
}

/// `/sys/block/LOOP/queue/nr_requests` of `/sys/block/loop3/queue/nr_requests`.
fn without_device(file: &str) -> String {
    let is_device = |part: &str| part.strip_prefix("loop").is_some_and(|number| number.parse::<u32>().is_ok());
    file.split('/').map(|part| if is_device(part) { "LOOP" } else { part }).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Nanos;
    use crate::cure::CacheChange;

    /// Made with these words of mkfs, mounted with these options, on the loop device with this number.
    fn made(mkfs: &str, mount: &str, device: u32) -> Place {
        Place {
            fs: "ext4".to_owned(),
            source: format!("/dev/loop{device}"),
            mkfs: mkfs.split_whitespace().map(str::to_owned).collect(),
            mount_options: mount.to_owned(),
            made_here: true,
            ..Place::default()
        }
    }

    fn with_setting(value: &str, device: u32) -> Place {
        let file = format!("/sys/block/loop{device}/queue/read_ahead_kb");
        Place { settings: [(file, value.to_owned())].into(), ..made("", "rw", device) }
    }

    fn over(below: Place) -> Place {
        Place { fs: "overlay".to_owned(), below: vec![below], ..made("", "rw", 0) }
    }

    #[test]
    fn a_cure_that_was_applied_is_all_that_differs() {
        let feature = Change::Place(PlaceChange::Feature("filetype".to_owned()));
        let untyped = || made("-N 9 -O ^has_journal,^filetype", "rw", 0);
        assert!(feature.lies_between(&untyped(), &made("-N 9 -O ^has_journal", "rw", 1)));
        assert!(feature.lies_between(&untyped(), &made("-N 9 -O ^has_journal,filetype", "rw", 1)));
        assert!(feature.lies_between(&over(made("-O ^filetype", "rw", 0)), &over(made("", "rw", 1))));
        let [option, parameter, value] = ["-J", "size", "256"].map(str::to_owned);
        let journal = Change::Place(PlaceChange::Mkfs { option, parameter, value });
        assert!(journal.lies_between(&made("-J size=4", "rw", 0), &made("-J size=256", "rw", 1)));
        let mount = Change::Place(PlaceChange::Mount("commit=120".to_owned()));
        assert!(mount.lies_between(&made("", "rw,noatime", 0), &made("", "rw,noatime,commit=120", 1)));
        let (file, value) = ("/sys/block/LOOP/queue/read_ahead_kb".to_owned(), "1024".to_owned());
        let setting = Change::Setting { file, value };
        assert!(setting.lies_between(&made("", "rw", 0), &with_setting("1024", 1)));
        let back = Change::Place(PlaceChange::WithoutSettings(vec!["read_ahead_kb".to_owned()]));
        assert!(back.lies_between(&with_setting("0", 3), &made("", "rw", 1)));

        assert!(!feature.lies_between(&untyped(), &untyped()) && !back.lies_between(&untyped(), &untyped()));
        assert!(!journal.lies_between(&made("-J size=4", "rw", 0), &made("-J size=64", "rw", 1)));
        assert!(!mount.lies_between(&made("", "rw", 0), &made("", "rw,commit=60", 1)));
        assert!(!setting.lies_between(&made("", "rw", 0), &with_setting("512", 1)));
    }

    #[test]
    fn where_anything_else_differs_it_is_no_cure() {
        let change = Change::Place(PlaceChange::Mount("inode_readahead_blks=256".to_owned()));
        let slow = |ms: u64| Some(Limits { delay_ns: Some(Nanos(ms * 1_000_000)), ..Limits::default() });
        let before = Place { limits: slow(5), ..made("", "rw", 0) };
        let after = Place { limits: slow(5), ..made("", "rw,inode_readahead_blks=256", 1) };
        assert!(change.lies_between(&before, &after));
        assert!(!change.lies_between(&before, &Place { limits: slow(1), ..made("", "rw", 1) }), "a faster device");
        for other in [
            Place { limits: slow(1), ..after.clone() },
            Place { fs: "ext2".to_owned(), ..after.clone() },
            Place { size_bytes: Some(1), ..after.clone() },
            Place { data: Some("tree:dirs=1".to_owned()), ..after.clone() },
            Place { mkfs: vec!["-I".to_owned(), "128".to_owned()], ..after.clone() },
            Place { mount_options: format!("{},noatime", after.mount_options), ..after.clone() },
            Place { made_here: false, ..after.clone() },
            over(after.clone()),
        ] {
            assert!(!change.lies_between(&before, &other), "{other:?}");
        }
        for no_place in [Change::advice(), Change::Cache(CacheChange::Warm), Change::Place(PlaceChange::Below)] {
            assert!(!no_place.lies_between(&before, &after));
        }
    }
}
