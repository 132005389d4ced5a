//! A file system to make, with its options.

use std::{
    ffi::OsStr,
    fmt,
    path::{Component, Path, PathBuf},
};

use inodyne_fuse::Caching;

use super::{PlaceSpec, Where, options};
use crate::{Kind, Limits, ParseDelayError, ParseSizeError, Size, key::Key, wear::Wear};

/// A file under /sys or /proc/sys, and what to write into it for what runs in the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingSpec {
    /// As written: `LOOP` stands for the name of the place's own device.
    pub file: String,
    /// What it is to be.
    pub value: String,
}

impl SettingSpec {
    /// Where settings may be.
    pub const ROOTS: [&str; 2] = ["/sys/", "/proc/sys/"];

    /// Whether it differs from place to place.
    pub fn names_device(&self) -> bool {
        self.file.split('/').any(|part| part == "LOOP")
    }

    /// The file for a place on this device.
    pub fn path(&self, device: &OsStr) -> PathBuf {
        let is_loop = |part: &Component| part.as_os_str() == "LOOP";
        Path::new(&self.file).components().map(|part| if is_loop(&part) { device } else { part.as_os_str() }).collect()
    }

    /// Whether it is the scheduler of a queue.
    pub fn is_scheduler(&self) -> bool {
        self.of_queue() == Some("scheduler")
    }

    /// The name, if it is a setting of a queue.
    fn of_queue(&self) -> Option<&str> {
        let file = Path::new(&self.file);
        file.file_name()?.to_str().filter(|_| file.parent().is_some_and(|directory| directory.ends_with("queue")))
    }

    pub fn parse(text: &str) -> Result<Self, String> {
        let (file, value) =
            text.split_once('=').ok_or_else(|| format!("set={text} has no value: write set=FILE=VALUE"))?;
        if !Self::ROOTS.iter().any(|root| file.starts_with(root)) || file.split('/').any(|part| part == "..") {
            return Err(format!("set={file} is not a setting: only files under /sys and /proc/sys are"));
        }
        if value.trim().is_empty() {
            return Err(format!("set={file}= is empty"));
        }
        let setting = Self { file: file.into(), value: value.into() };
        if let Some(why) = setting.of_queue().and_then(not_undone).filter(|_| !setting.names_device()) {
            return Err(format!("set={file} {why}: only with LOOP"));
        }
        // They are kept as a ratio of what may be dirty now, which changes with free memory (mm/page-writeback.c: bdi_set_max_bytes).
        let name = Path::new(file).file_name();
        if file.split('/').any(|part| part == "bdi")
            && ["max_bytes", "min_bytes"].iter().any(|bytes| name == Some(OsStr::new(bytes)))
        {
            return Err(format!("set={file} would not be restored exactly: use max_ratio or min_ratio"));
        }
        Ok(setting)
    }
}

/// Why a setting of a queue, once changed, is not undone by its old value; none where it is.
pub(crate) fn not_undone(name: &str) -> Option<&'static str> {
    match name {
        // Another scheduler gives a queue new values of nr_requests and of everything in iosched (block/elevator.c), and another
        // nr_requests gives mq-deadline a new async_depth (block/mq-deadline.c).
        "scheduler" | "nr_requests" => Some("resets other settings of the queue, which would not be restored"),
        // Whatever is written, the kernel no longer switches throttling by itself (block/blk-wbt.c: WBT_STATE_ON_MANUAL).
        "wbt_lat_usec" => Some("turns writeback throttling from automatic to manual, which would not be restored"),
        _ => None,
    }
}

impl fmt::Display for SettingSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.file, self.value)
    }
}

/// A file system to make.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MadePlace {
    /// Which.
    pub kind: Kind,
    /// How large; a default otherwise.
    pub size: Option<Size>,
    /// Arguments for mkfs, as written; see [`MadePlace::mkfs_words`].
    pub(super) mkfs: Option<String>,
    /// Mount options, as written.
    pub(super) mount: Option<String>,
    /// What an overlay lies over, and what a bind mount shows.
    pub(super) lower: Option<Box<PlaceSpec>>,
    /// Where an overlay keeps what is written.
    pub(super) upper: Option<Box<PlaceSpec>>,
    /// How many directories an overlay's lower part consists of.
    pub(super) layers: Option<u32>,
    /// How used it looks.
    pub(super) wear: Wear,
    /// Whether a share reads directories without the types of their entries.
    pub(super) withholds_types: bool,
    /// What its device, or the host of a share, is held to.
    pub(super) limits: Limits,
    /// In the order in which they are made.
    pub(super) settings: Vec<SettingSpec>,
}

/// More rounds would change nothing.
const MOST_ROUNDS: u32 = 100;

/// In percent. Beyond that, file systems refuse by rules of their own.
const FULLEST: u8 = 95;

/// How many lower layers the kernel takes for one overlay.
const MOST_LAYERS: u32 = 500;

impl MadePlace {
    /// The arguments for mkfs, split as a shell would.
    pub fn mkfs_words(&self) -> Vec<String> {
        // Unbalanced quotes were refused when this was parsed.
        self.mkfs.as_deref().map_or_else(Vec::new, |text| shell_words::split(text).unwrap_or_default())
    }

    /// The mount options, separated by commas; empty where none were given.
    pub fn mount_options(&self) -> &str {
        self.mount.as_deref().unwrap_or("")
    }

    /// What an overlay lies over, and what a bind mount shows.
    pub fn lower(&self) -> Option<&PlaceSpec> {
        self.lower.as_deref()
    }

    /// Where an overlay keeps what is written, if not beside its lower layers.
    pub fn upper(&self) -> Option<&PlaceSpec> {
        self.upper.as_deref()
    }

    /// How many lower layers an overlay has.
    pub fn layers(&self) -> u32 {
        self.layers.unwrap_or(1)
    }

    /// How used it looks.
    pub(crate) fn wear(&self) -> Wear {
        self.wear
    }

    /// Whether a share reads directories without the types of their entries.
    pub fn withholds_types(&self) -> bool {
        self.withholds_types
    }

    /// What its device, or the host of a share, is held to.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    pub(crate) fn settings(&self) -> &[SettingSpec] {
        &self.settings
    }

    /// The files of the settings that it changes, as written; not those of places that it stands on.
    pub fn setting_files(&self) -> impl Iterator<Item = &str> {
        self.settings.iter().map(|setting| setting.file.as_str())
    }

    /// The places that it stands on, as far as they are written.
    pub fn below(&self) -> impl Iterator<Item = &PlaceSpec> {
        [&self.lower, &self.upper].into_iter().flatten().map(AsRef::as_ref)
    }

    /// Whether it lies over an ext4 that is not written out.
    pub(super) fn is_over_ext4(&self) -> bool {
        self.lower.is_none() && matches!(self.kind, Kind::Overlay | Kind::Fuse | Kind::Share)
    }

    /// With that ext4 written out.
    pub(super) fn spelled_out(mut self) -> Self {
        if self.is_over_ext4() {
            self.lower = Some(Box::new(PlaceSpec::plain(Kind::Ext4)));
        }
        self
    }

    pub(super) fn plain(kind: Kind) -> Self {
        Self {
            kind,
            size: None,
            mkfs: None,
            mount: None,
            lower: None,
            upper: None,
            layers: None,
            wear: Wear::default(),
            withholds_types: false,
            limits: Limits::default(),
            settings: vec![],
        }
    }

    pub(super) fn parse(kind: Kind, options: Option<&str>, depth: usize) -> Result<Self, String> {
        let mut made = Self::plain(kind);
        let is_bare = kind.shows();
        let Some(text) = options else {
            return if kind == Kind::Bind { Err("bind shows another place: write bind:DIR".into()) } else { Ok(made) };
        };
        let takes = || format!("{kind} takes {}", keys(kind.keys()));
        let options =
            options::split(text, kind.keys(), is_bare).map_err(|name| format!("no option '{name}': {}", takes()))?;
        for (key, value) in options {
            let name = key.map_or(format!("{kind}:"), Key::begins);
            let is_word = key.is_some_and(Key::is_word);
            if let Err(open) = options::closed(&value) {
                return Err(format!("{name}{value} has {open}"));
            }
            if value.trim().is_empty() && !is_word {
                return Err(format!("{name} is empty"));
            }
            if is_word && !value.is_empty() {
                return Err(format!("no option '{}': {}", value.trim_start_matches(','), takes()));
            }
            if !made.take(key, value, depth)? {
                return Err(format!("{name} is given twice"));
            }
        }
        made.check().map(|()| made)
    }

    /// Takes an option; says whether it is the first of its kind.
    fn take(&mut self, key: Option<Key>, value: String, depth: usize) -> Result<bool, String> {
        let place = |value: &str| PlaceSpec::parse(value, depth + 1).map(Box::new);
        Ok(match key {
            None | Some(Key::Lower) => self.lower.replace(place(&value)?).is_none(),
            Some(Key::Upper) => self.upper.replace(place(&value)?).is_none(),
            Some(Key::Size) => {
                self.size.replace(value.parse().map_err(|error: ParseSizeError| error.to_string())?).is_none()
            }
            Some(Key::Mkfs) => {
                let words = shell_words::split(&value);
                let words = words.map_err(|_| format!("mkfs={value} cannot be split into words"))?;
                // mkfs.btrfs takes several devices, others take one for their journal, and all of them overwrite it.
                if let Some(word) = words.iter().find(|word| word.contains("/dev/")) {
                    return Err(format!("mkfs={word} names a device: nothing is formatted that was there before"));
                }
                // Of mksquashfs, some options take several words; it makes a file of ours, whatever these are.
                let is_option = |word: &String| word.starts_with('-') || self.kind == Kind::Squashfs;
                let is_alone = |at: &usize| !is_option(&words[*at]) && (*at == 0 || !is_option(&words[*at - 1]));
                if let Some(at) = (0..words.len()).find(is_alone) {
                    let word = &words[at];
                    return Err(format!("mkfs={word} is not an option: nothing is formatted that was there before"));
                }
                self.mkfs.replace(value).is_none()
            }
            Some(Key::Mount) => self.mount.replace(value).is_none(),
            Some(Key::Layers) => {
                let layers = value.parse().ok().filter(|layers| (1..=MOST_LAYERS).contains(layers));
                let problem = || format!("layers={value} is not a number from 1 to {MOST_LAYERS}");
                self.layers.replace(layers.ok_or_else(problem)?).is_none()
            }
            Some(Key::Age) => {
                let rounds = value.parse().ok().filter(|rounds| (1..=MOST_ROUNDS).contains(rounds));
                let problem = || format!("age={value} is not a number of rounds from 1 to {MOST_ROUNDS}");
                self.wear.age.replace(rounds.ok_or_else(problem)?).is_none()
            }
            Some(Key::Full) => {
                let percent = value.strip_suffix('%').and_then(|digits| digits.parse().ok());
                let percent = percent.filter(|percent| (1..=FULLEST).contains(percent));
                let problem = || format!("full={value} is not a share from 1% to {FULLEST}%, such as 80%");
                self.wear.full.replace(percent.ok_or_else(problem)?).is_none()
            }
            Some(Key::Delay) => {
                self.limits.delay.replace(value.parse().map_err(|error: ParseDelayError| error.to_string())?).is_none()
            }
            Some(Key::Bandwidth) => {
                let bandwidth: Size = value.parse().map_err(|error: ParseSizeError| error.to_string())?;
                if bandwidth < Limits::LEAST_BANDWIDTH {
                    return Err(format!("bandwidth={value} is less than {} a second", Limits::LEAST_BANDWIDTH));
                }
                self.limits.bandwidth.replace(bandwidth).is_none()
            }
            Some(Key::Iops) => {
                let iops = value.parse().ok().filter(|iops| *iops > 0);
                let problem = || format!("iops={value} is not a number of requests a second, such as 200");
                self.limits.iops.replace(iops.ok_or_else(problem)?).is_none()
            }
            Some(Key::WithholdTypes) => !std::mem::replace(&mut self.withholds_types, true),
            Some(Key::Set) => {
                let setting = SettingSpec::parse(&value)?;
                if setting.names_device() && !self.kind.has_device() {
                    return Err(format!("set={setting}: {} has no device of its own that LOOP could be", self.kind));
                }
                let is_new = self.settings.iter().all(|other| other.file != setting.file);
                self.settings.push(setting);
                is_new
            }
        })
    }

    /// What only shows when all options are there.
    pub(super) fn check(&self) -> Result<(), String> {
        if let Some(upper) = &self.upper {
            let is_fit = matches!(&upper.place, Where::Made(made) if made.kind.is_writable());
            if !is_fit {
                return Err(format!(
                    "upper={upper} cannot be written to: give a kind of file system to make, such as ext4 or tmpfs"
                ));
            }
        }
        // Spaces around an option are ignored when it is mounted.
        let mut options = self.mount_options().split(',').filter_map(|option| option.split('=').next()).map(str::trim);
        if self.kind == Kind::Overlay
            && let Some(name) = options.find(|name| {
                name.starts_with("upperdir") || name.starts_with("workdir") || name.starts_with("lowerdir")
            })
        {
            return Err(format!("mount={name}= leads elsewhere: its layers are lower= and upper="));
        }
        if self.kind == Kind::Fuse {
            Caching::of_options(self.mount_options()).map_err(|problem| format!("mount={problem}"))?;
        }
        let is_split = self.layers.is_some_and(|layers| layers > 1);
        match &self.lower {
            Some(lower) if is_split && !matches!(&lower.place, Where::Made(made) if made.kind.is_writable()) => {
                Err(format!("lower={lower} cannot be split into layers: that takes a kind to make, such as ext4"))
            }
            _ => Ok(()),
        }
    }
}

/// `size=, mkfs= and mount=`.
fn keys(keys: &[Key]) -> String {
    let names: Vec<_> = keys.iter().map(|key| key.begins()).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.join(""),
    }
}

impl fmt::Display for MadePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = self.kind.keys();
        let inner =
            |place: &Option<Box<PlaceSpec>>| place.as_ref().map(|place| options::bracketed(place.to_string(), own));
        f.write_str(self.kind.name())?;
        let mut options: Vec<_> = if self.kind.shows() { inner(&self.lower).into_iter().collect() } else { vec![] };
        for key in own {
            let values = match key {
                Key::Size => self.size.map(|size| size.to_string()),
                Key::Mkfs => self.mkfs.clone(),
                Key::Mount => self.mount.clone(),
                Key::Lower => inner(&self.lower),
                Key::Upper => inner(&self.upper),
                Key::Layers => self.layers.map(|layers| layers.to_string()),
                Key::Age => self.wear.age.map(|rounds| rounds.to_string()),
                Key::Full => self.wear.full.map(|percent| format!("{percent}%")),
                Key::Delay => self.limits.delay.map(|delay| delay.to_string()),
                Key::Bandwidth => self.limits.bandwidth.map(|bandwidth| bandwidth.to_string()),
                Key::Iops => self.limits.iops.map(|iops| iops.to_string()),
                Key::WithholdTypes => self.withholds_types.then(String::new),
                Key::Set => {
                    options.extend(self.settings.iter().map(|setting| format!("set={setting}")));
                    None
                }
            };
            options.extend(values.map(|value| format!("{}{value}", key.begins())));
        }
        options.iter().enumerate().try_for_each(|(at, option)| write!(f, "{}{option}", if at == 0 { ':' } else { ',' }))
    }
}
