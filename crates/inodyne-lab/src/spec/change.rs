//! A place made differently: the operations by which cures and settings change a description.
//!
//! Each takes a place and gives another one, or says in one line why there is nothing to change in this place. Mkfs options and
//! settings are looked for in the place itself and in those that it stands on; a mount option and an overlay are the
//! outermost place's.

use inodyne_model::cure::PlaceChange;

use super::made::SettingSpec;
use super::{DEEPEST, MadePlace, PlaceSpec, Where};
use crate::{Kind, key::Key};

/// Why a place cannot be changed like that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place} {problem}")]
pub struct ChangeError {
    place: String,
    problem: String,
}

impl PlaceSpec {
    /// The place after a change. It keeps its label.
    ///
    /// # Errors
    /// It has nothing that the change is about.
    pub fn changed(&self, change: &PlaceChange) -> Result<Self, ChangeError> {
        match change {
            PlaceChange::Feature(name) => self.with_feature(name),
            PlaceChange::Mkfs { option, parameter, value } => self.with_mkfs(option, parameter, value),
            PlaceChange::Mount(option) => self.with_mount(option),
            PlaceChange::WithoutSettings(names) => self.without_settings(names),
            PlaceChange::Over(options) => self.under_overlay(options),
            PlaceChange::Below => self.below_overlay(),
        }
    }

    /// Made with a feature that its `-O` leaves out (`^filetype`).
    ///
    /// # Errors
    /// No `-O` leaves it out.
    pub fn with_feature(&self, name: &str) -> Result<Self, ChangeError> {
        let without = format!("^{name}");
        let with = |entry: &str| (entry == without).then(|| name.to_owned());
        self.with_mkfs_entry("-O", &with).ok_or_else(|| self.refuse(format!("is not made with -O ^{name}")))
    }

    /// Made with another value for a parameter of mkfs: with `-J`, `size` and `256`, `-J size=4` becomes `-J size=256`.
    ///
    /// # Errors
    /// It is made without that parameter.
    pub fn with_mkfs(&self, option: &str, parameter: &str, value: &str) -> Result<Self, ChangeError> {
        let is_meant = |entry: &str| entry.split_once('=').is_some_and(|(name, _)| name == parameter);
        let with = |entry: &str| is_meant(entry).then(|| format!("{parameter}={value}"));
        let problem = || self.refuse(format!("is made without {option} {parameter}=, and keeps its default"));
        self.with_mkfs_entry(option, &with).ok_or_else(problem)
    }

    /// Made with an entry of an option of mkfs, which replaces one of the same name: with `-J` and `size=256`, `-J size=4` becomes
    /// `-J size=256`; with `-O` and `^dir_index`, `-O filetype` becomes `-O filetype,^dir_index`. An entry that is neither a
    /// parameter nor a feature is all that the option has: `-I 128`.
    ///
    /// # Errors
    /// It is not made by a program that takes options.
    pub fn made_with(&self, option: &str, entry: &str) -> Result<Self, ChangeError> {
        let has_options = matches!(&self.place, Where::Made(made) if made.kind.mkfs().is_some());
        if !has_options || entry.contains("/dev/") {
            return Err(self.refuse(format!("cannot be made with {option} {entry}")));
        }
        let name = |entry: &str| match entry.split_once('=') {
            Some((name, _)) => name.to_owned(),
            None if option == "-O" => entry.trim_start_matches('^').to_owned(),
            None => String::new(),
        };
        self.with(|made| {
            let mut words = made.mkfs_words();
            match words.iter().position(|word| word == option).filter(|at| at + 1 < words.len()) {
                Some(at) => {
                    let is_other = |other: &&str| name(other) != name(entry);
                    let others: Vec<&str> = words[at + 1].split(',').filter(is_other).collect();
                    words[at + 1] = others.into_iter().chain([entry]).collect::<Vec<_>>().join(",");
                }
                None => words.extend([option.to_owned(), entry.to_owned()]),
            }
            MadePlace { mkfs: Some(joined(&words)), ..made.clone() }
        })
    }

    /// With a change to each file system of these kinds in it: the outermost one, or else those that it is made of, side by side.
    ///
    /// # Errors
    /// It has none of them, or one cannot be changed like that.
    pub fn within(
        &self,
        kinds: &[Kind],
        change: &dyn Fn(&Self) -> Result<Self, ChangeError>,
    ) -> Result<Self, ChangeError> {
        match &self.place {
            Where::Made(made) if kinds.contains(&made.kind) => change(self),
            Where::Made(made) if self.kinds().iter().any(|kind| kinds.contains(kind)) => {
                let mut made = made.clone().spelled_out();
                for inner in [&mut made.lower, &mut made.upper].into_iter().flatten() {
                    if inner.kinds().iter().any(|kind| kinds.contains(kind)) {
                        **inner = inner.within(kinds, change)?;
                    }
                }
                Ok(Self { label: self.label.clone(), place: Where::Made(made) })
            }
            _ => {
                let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
                Err(self.refuse(format!("has no {}", names.join(" or "))))
            }
        }
    }

    /// Mounted with one more option, or with another value for it; or with several, separated by commas.
    ///
    /// # Errors
    /// It is an existing directory, or could not be described with such an option either.
    pub fn with_mount(&self, options: &str) -> Result<Self, ChangeError> {
        let name = |option: &str| option.split_once('=').map_or(option, |(name, _)| name).to_owned();
        let changed = self.with(|made| {
            let before = made.mount_options().split(',').filter(|other| !other.is_empty());
            let others = before.filter(|other| options.split(',').all(|option| name(other) != name(option)));
            let mount = others.chain([options]).collect::<Vec<_>>().join(",");
            MadePlace { mount: Some(mount), ..made.clone() }
        })?;
        if let Where::Made(made) = &changed.place {
            let refused = |problem: String| self.refuse(format!("cannot be mounted with {options}: {problem}"));
            made.check().map_err(refused)?;
        }
        Ok(changed)
    }

    /// With a setting of its own, or with another value for it. `LOOP` in the file stands for the place's device.
    ///
    /// # Errors
    /// It is an existing directory, the file is not a setting, or the place has no device that `LOOP` could be.
    pub fn with_setting(&self, file: &str, value: &str) -> Result<Self, ChangeError> {
        let setting = SettingSpec::parse(&format!("{file}={value}")).map_err(|problem| self.refuse(problem))?;
        let has_device = matches!(&self.place, Where::Made(made) if made.kind.has_device());
        if setting.names_device() && !has_device {
            return Err(self.refuse(format!("has no device of its own for {file}")));
        }
        self.with(|made| {
            let others = made.settings.iter().filter(|other| other.file != setting.file).cloned();
            MadePlace { settings: others.chain([setting.clone()]).collect(), ..made.clone() }
        })
    }

    /// Without its settings whose files have one of these names.
    ///
    /// # Errors
    /// It changes none of them.
    pub fn without_settings(&self, names: &[String]) -> Result<Self, ChangeError> {
        let is_meant = |setting: &SettingSpec| {
            let name = setting.file.rsplit('/').next().unwrap_or_default();
            names.iter().any(|meant| meant == name)
        };
        let without = |made: &MadePlace| {
            let settings: Vec<_> = made.settings.iter().filter(|setting| !is_meant(setting)).cloned().collect();
            (settings.len() < made.settings.len()).then(|| MadePlace { settings, ..made.clone() })
        };
        self.with_each(&without).ok_or_else(|| self.refuse(format!("changes none of {}", names.join(", "))))
    }

    /// Below an overlay that is mounted with these options.
    ///
    /// # Errors
    /// Places would be stacked too deep, or there would be more overlays than the kernel takes.
    pub fn under_overlay(&self, options: &str) -> Result<Self, ChangeError> {
        if self.overlays() > 1 || self.depth() >= DEEPEST {
            return Err(self.refuse("cannot lie below one more overlay".to_owned()));
        }
        let lower = Some(Box::new(Self { label: None, ..self.clone() }));
        let mount = Some(options.to_owned()).filter(|options| !options.is_empty());
        let place = Where::Made(MadePlace { lower, mount, ..MadePlace::plain(Kind::Overlay) });
        Ok(Self { label: self.label.clone(), place })
    }

    /// What the overlay lies over, alone.
    ///
    /// # Errors
    /// It is not an overlay.
    pub fn below_overlay(&self) -> Result<Self, ChangeError> {
        match &self.place {
            Where::Made(made) if made.kind == Kind::Overlay => {
                let lower = made.lower().cloned().unwrap_or_else(|| Self::plain(Kind::Ext4));
                Ok(Self { label: self.label.clone(), ..lower })
            }
            _ => Err(self.refuse("is not an overlay".to_owned())),
        }
    }

    /// Replaces those comma-separated entries of an option of mkfs (`-O`) for which `other` gives another one. None
    /// where it gives none.
    fn with_mkfs_entry(&self, option: &str, other: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        self.with_each(&|made| {
            let mut words = made.mkfs_words();
            let mut is_changed = false;
            for at in 1..words.len() {
                if words[at - 1] != option {
                    continue;
                }
                let entry = |entry: &str| {
                    let other = other(entry);
                    is_changed |= other.is_some();
                    other.unwrap_or_else(|| entry.to_owned())
                };
                words[at] = words[at].split(',').map(entry).collect::<Vec<_>>().join(",");
            }
            is_changed.then(|| MadePlace { mkfs: Some(joined(&words)), ..made.clone() })
        })
    }

    /// The place with the outermost file system that is made changed.
    fn with(&self, change: impl Fn(&MadePlace) -> MadePlace) -> Result<Self, ChangeError> {
        match &self.place {
            // Options of a kind that shows another place come after that place.
            Where::Made(made) if made.kind.shows() => {
                Ok(Self { label: self.label.clone(), place: Where::Made(change(&made.clone().spelled_out())) })
            }
            Where::Made(made) => Ok(Self { label: self.label.clone(), place: Where::Made(change(made)) }),
            Where::Existing(_) => Err(self.refuse("was there before and is not changed".to_owned())),
        }
    }

    /// The place with every made place in it that `change` changes replaced; none where it changes none.
    fn with_each(&self, change: &dyn Fn(&MadePlace) -> Option<MadePlace>) -> Option<Self> {
        let Where::Made(made) = &self.place else { return None };
        let inner = |place: &Option<Box<PlaceSpec>>| place.as_ref().and_then(|place| place.with_each(change));
        let (own, lower, upper) = (change(made), inner(&made.lower), inner(&made.upper));
        if own.is_none() && lower.is_none() && upper.is_none() {
            return None;
        }
        let mut place = own.unwrap_or_else(|| made.clone());
        place.lower = lower.map(Box::new).or(place.lower);
        place.upper = upper.map(Box::new).or(place.upper);
        Some(Self { label: self.label.clone(), place: Where::Made(place) })
    }

    /// How many places it stands on, one on top of the other.
    fn depth(&self) -> usize {
        match &self.place {
            Where::Made(made) => made.below().map(|place| place.depth() + 1).max().unwrap_or(0),
            Where::Existing(_) => 0,
        }
    }

    fn refuse(&self, problem: String) -> ChangeError {
        ChangeError { place: self.to_string(), problem }
    }
}

/// Words as a shell splits them, and as they can stand among the options of a place: quoted only where they have to be.
fn joined(words: &[String]) -> String {
    let is_plain = |word: &str| {
        let plain = |c: char| c.is_alphanumeric() || "^_-+=.,:/%@".contains(c);
        let is_option = |key: &Key| word.contains(&format!(",{}=", key.name()));
        !word.is_empty() && word.chars().all(plain) && !Key::ALL.iter().any(is_option)
    };
    let quoted =
        |word: &String| if is_plain(word) { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> PlaceSpec {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    /// The place after the change, as text, which is also read back.
    fn after(before: &str, change: PlaceChange) -> Result<String, String> {
        let changed = place(before).changed(&change).map_err(|error| error.to_string())?;
        assert_eq!(place(&changed.to_string()), changed, "{before}: {change:?}");
        Ok(changed.to_string())
    }

    fn feature(name: &str) -> PlaceChange {
        PlaceChange::Feature(name.to_owned())
    }

    fn mkfs(words: [&str; 3]) -> PlaceChange {
        let [option, parameter, value] = words.map(str::to_owned);
        PlaceChange::Mkfs { option, parameter, value }
    }

    #[test]
    fn a_feature_is_no_longer_left_out() {
        for (before, after_it) in [
            ("ext4:size=1G,mkfs=-O ^filetype", "ext4:size=1G,mkfs=-O filetype"),
            (
                "slow=ext4:mkfs=-N 9 -O ^has_journal,^filetype,mount=noatime",
                "slow=ext4:mkfs=-N 9 -O ^has_journal,filetype,mount=noatime",
            ),
            (
                "overlay:lower=[ext4:mkfs=-O ^filetype,mount=noatime]",
                "overlay:lower=[ext4:mkfs=-O filetype,mount=noatime]",
            ),
            ("overlay:lower=/x,upper=ext4:mkfs=-O ^filetype", "overlay:lower=/x,upper=ext4:mkfs=-O filetype"),
            ("ext4:mkfs=-L 'a b,size=1G' -O ^filetype", "ext4:mkfs=-L 'a b,size=1G' -O filetype"),
            ("ext4:mkfs=-L 'a,size=1G' -O ^filetype", "ext4:mkfs=-L 'a,size=1G' -O filetype"),
            (r#"ext4:mkfs=-L "it's" -O ^filetype"#, r"ext4:mkfs=-L 'it'\''s' -O filetype"),
        ] {
            assert_eq!(after(before, feature("filetype")).as_deref(), Ok(after_it));
        }
        for before in ["ext4", "ext4:mkfs=-O ^has_journal", "ext4:mkfs=-L ^filetype", "/srv/^filetype", "tmpfs"] {
            let refused = after(before, feature("filetype")).unwrap_err();
            assert_eq!(refused, format!("{before} is not made with -O ^filetype"));
        }
    }

    #[test]
    fn a_parameter_of_mkfs_gets_another_value() {
        let journal = || mkfs(["-J", "size", "256"]);
        assert_eq!(
            after("ext4:size=1G,mkfs=-J size=1 -b 1024", journal()).as_deref(),
            Ok("ext4:size=1G,mkfs=-J size=256 -b 1024")
        );
        assert_eq!(
            after("ext4:mkfs=-J 'fast_commit_size=1,size=4'", journal()).as_deref(),
            Ok("ext4:mkfs=-J 'fast_commit_size=1,size=256'")
        );
        let types = mkfs(["-n", "ftype", "1"]);
        assert_eq!(after("xfs:mkfs=-m crc=0 -n ftype=0", types).as_deref(), Ok("xfs:mkfs=-m crc=0 -n ftype=1"));
        assert_eq!(
            after("xfs:mkfs=-l 'su=4k,size=8m'", mkfs(["-l", "size", "256m"])).as_deref(),
            Ok("xfs:mkfs=-l 'su=4k,size=256m'")
        );
        assert_eq!(
            after("ext4:size=1G", journal()).unwrap_err(),
            "ext4:size=1G is made without -J size=, and keeps its default"
        );
    }

    #[test]
    fn a_mount_option_is_added_or_replaced() {
        let commit = || PlaceChange::Mount("commit=120".to_owned());
        assert_eq!(after("btrfs", commit()).as_deref(), Ok("btrfs:mount=commit=120"));
        assert_eq!(after("btrfs:mount=commit=5,noatime", commit()).as_deref(), Ok("btrfs:mount=noatime,commit=120"));
        assert_eq!(after("/srv", commit()).unwrap_err(), "/srv was there before and is not changed");
        for (before, option) in [
            ("overlay", "metacopy=on,upperdir=/home/me"),
            ("overlay:lower=xfs", "metacopy=on, workdir=/home/me"),
            ("fuse", "entry_timeout=x"),
        ] {
            let refused = after(before, PlaceChange::Mount(option.to_owned())).unwrap_err();
            assert!(refused.starts_with(&format!("{before} cannot be mounted with {option}: ")), "{refused}");
        }
    }

    #[test]
    fn a_setting_is_made_and_taken_back() {
        let set = |before: &str, file: &str| place(before).with_setting(file, "1").map(|place| place.to_string());
        let file = "/proc/sys/vm/dirty_bytes";
        assert_eq!(set("ext4", file).as_deref(), Ok("ext4:set=/proc/sys/vm/dirty_bytes=1"));
        assert_eq!(
            set("ext4:set=/proc/sys/vm/dirty_bytes=5", file).as_deref(),
            Ok("ext4:set=/proc/sys/vm/dirty_bytes=1")
        );
        assert!(set("tmpfs", "/sys/block/LOOP/queue/nr_requests").unwrap_err().to_string().contains("no device"));
        assert!(set("ext4", "/etc/passwd").unwrap_err().to_string().contains("not a setting"));
        let without = || PlaceChange::WithoutSettings(vec!["dirty_bytes".to_owned()]);
        assert_eq!(
            after("ext4:size=1G,set=/proc/sys/vm/dirty_bytes=8388608,set=/sys/x=1", without()).as_deref(),
            Ok("ext4:size=1G,set=/sys/x=1")
        );
        let inner = "overlay:lower=[ext4:set=/proc/sys/vm/dirty_bytes=9]";
        assert_eq!(after(inner, without()).as_deref(), Ok("overlay:lower=ext4"));
        assert_eq!(after("ext4", without()).unwrap_err(), "ext4 changes none of dirty_bytes");
    }

    #[test]
    fn overlays_are_put_on_and_taken_off() {
        let over = || PlaceChange::Over("volatile".to_owned());
        assert_eq!(
            after("x=ext4:size=1G,mount=noatime", over()).as_deref(),
            Ok("x=overlay:lower=[ext4:size=1G,mount=noatime],mount=volatile")
        );
        assert!(after("overlay:lower=overlay:lower=/x", over()).unwrap_err().contains("one more overlay"));
        assert!(after("bind:bind:bind:bind:/x", over()).unwrap_err().contains("one more overlay"));
        let below = |before: &str| after(before, PlaceChange::Below);
        assert_eq!(below("overlay:lower=[ext4:size=1G,mount=noatime]").as_deref(), Ok("ext4:size=1G,mount=noatime"));
        assert_eq!(below("overlay").as_deref(), Ok("ext4"));
        assert_eq!(below("ext4").unwrap_err(), "ext4 is not an overlay");
    }
}
