//! Known settings: what each does, for which file systems, which values are worth trying, what they risk, and what to write where to
//! keep one. One file per setting. `inodyne tune` tries them, docs/tune.md lists them.
//!
//! A setting is applied by the operations that change a description of a place ([`PlaceSpec`]): nothing here touches the machine.

mod batch_time;
mod btrfs_compress;
mod btrfs_discard;
mod cache_pressure;
mod commit;
mod data_mode;
mod dir_index;
mod dirty_background_bytes;
mod dirty_bytes;
mod filetype;
mod fuse_timeouts;
mod inode_readahead;
mod inode_size;
mod journal_size;
mod kernel_cache;
mod lazytime;
mod metacopy;
mod negative_timeout;
mod noatime;
mod nr_requests;
mod orphan_file;
mod read_ahead;
mod redirect_dir;
mod scheduler;
mod write_back_throttling;
mod xfs_allocsize;
mod xfs_groups;
mod xfs_log_buffers;
mod xfs_log_size;

use inodyne_model::tuning::Risk;

use crate::{ChangeError, Kind, PlaceSpec, Size, spec::not_undone};

/// All of them: those for how a file system is made, for how it is mounted, for its device, for the machine.
pub static CATALOGUE: [&Tunable; 29] = [
    &journal_size::TUNABLE,
    &inode_size::TUNABLE,
    &dir_index::TUNABLE,
    &filetype::TUNABLE,
    &orphan_file::TUNABLE,
    &xfs_log_size::TUNABLE,
    &xfs_groups::TUNABLE,
    &inode_readahead::TUNABLE,
    &data_mode::TUNABLE,
    &commit::TUNABLE,
    &batch_time::TUNABLE,
    &noatime::TUNABLE,
    &lazytime::TUNABLE,
    &xfs_log_buffers::TUNABLE,
    &xfs_allocsize::TUNABLE,
    &btrfs_compress::TUNABLE,
    &btrfs_discard::TUNABLE,
    &metacopy::TUNABLE,
    &redirect_dir::TUNABLE,
    &fuse_timeouts::TUNABLE,
    &negative_timeout::TUNABLE,
    &kernel_cache::TUNABLE,
    &nr_requests::TUNABLE,
    &scheduler::TUNABLE,
    &read_ahead::TUNABLE,
    &write_back_throttling::TUNABLE,
    &dirty_bytes::TUNABLE,
    &dirty_background_bytes::TUNABLE,
    &cache_pressure::TUNABLE,
];

/// Mount options that are heeded only when a file system is mounted first, as the root file system is before /etc/fstab can be read. When
/// mounted again, ext4 refuses another one and so stays read-only (fs/ext4/super.c: "Cannot change data mode on remount"); XFS ignores it.
const ONLY_FIRST: [&str; 3] = ["data", "logbsize", "allocsize"];

/// A setting that may make something faster.
#[derive(Debug)]
pub struct Tunable {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it is, as the end of a sentence.
    pub what: &'static str,
    /// When it can matter.
    pub matters: &'static str,
    /// The file systems that it is for, even where they are below others; none where it is the machine's.
    pub kinds: &'static [Kind],
    /// How it is set.
    pub means: Means,
    /// The values that are worth trying.
    pub values: &'static [Value],
}

/// How a setting is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// A mount option with the value: `commit=60`.
    Mount(&'static str),
    /// The value is a mount option, or several separated by commas.
    MountWord,
    /// A parameter of an option of mkfs: `-J size=64`.
    Mkfs {
        /// The option.
        option: &'static str,
        /// The parameter in it.
        parameter: &'static str,
    },
    /// An option of mkfs: `-I 128`.
    MkfsValue(&'static str),
    /// The value is a feature for `-O` that is there by default, left out where it begins with `^`.
    MkfsFeature,
    /// A file of the device's queue: `/sys/block/LOOP/queue/…`.
    Queue(&'static str),
    /// A file of memory management: `/proc/sys/vm/…`.
    Vm(&'static str),
}

/// A value that is worth trying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// As it is written.
    pub text: &'static str,
    /// What it risks.
    pub risk: Risk,
    /// The smallest file system, in MiB, that has room for it.
    least_mib: u64,
}

impl Value {
    const fn safe(text: &'static str) -> Value {
        Value::risky(text, Risk::None)
    }

    const fn risky(text: &'static str, risk: Risk) -> Value {
        Value { text, risk, least_mib: 0 }
    }

    const fn needing(self, least_mib: u64) -> Value {
        Value { least_mib, ..self }
    }
}

impl Tunable {
    /// The setting with this name.
    pub fn named(name: &str) -> Option<&'static Tunable> {
        CATALOGUE.into_iter().find(|tunable| tunable.name == name)
    }

    /// What it risks at a value. A value that nobody has thought of is taken to risk as much as the riskiest of the setting's.
    pub fn risk(&self, value: &str) -> Risk {
        let known = self.values.iter().find(|known| known.text == value);
        known.or(self.values.iter().max_by_key(|known| known.risk)).map_or(Risk::None, |known| known.risk)
    }

    /// The values that are worth trying in this place as it is: those that change something and have room.
    pub fn values_for(&self, place: &PlaceSpec) -> impl Iterator<Item = &'static Value> {
        let size = place.size_of(self.kinds);
        let has_room = move |value: &&Value| size.is_none_or(|size| size >= Size::from_mib(value.least_mib));
        let changes = move |value: &&Value| self.apply(place, value.text).is_ok_and(|changed| changed != *place);
        self.values.iter().filter(has_room).filter(changes)
    }

    /// The place with this value.
    ///
    /// # Errors
    /// The place has nothing that the setting is about.
    pub fn apply(&self, place: &PlaceSpec, value: &str) -> Result<PlaceSpec, ChangeError> {
        match self.means {
            Means::Vm(file) => place.with_setting(&format!("/proc/sys/vm/{file}"), value),
            means => place.within(self.kinds, &|place| means.apply(place, value)),
        }
    }

    /// The setting with a value, as somebody would write it: `commit=60`, `-J size=64`.
    pub fn written(&self, value: &str) -> String {
        match self.means {
            Means::Mount(name) | Means::Queue(name) | Means::Vm(name) => format!("{name}={value}"),
            Means::MountWord => value.to_owned(),
            Means::Mkfs { option, parameter } => format!("{option} {parameter}={value}"),
            Means::MkfsValue(option) => format!("{option} {value}"),
            Means::MkfsFeature => format!("-O {value}"),
        }
    }

    /// What to write where, so that it stays at this value.
    pub fn permanent(&self, place: &PlaceSpec, value: &str) -> String {
        let written = self.written(value);
        match self.means {
            Means::Mount(_) | Means::MountWord if self.kinds == [Kind::Overlay] => {
                format!("mount the overlay with -o {written} (containers: in the storage options of the engine)")
            }
            Means::Mount(_) | Means::MountWord if self.kinds == [Kind::Fuse] => {
                format!(
                    "start the server with -o {written} (sshfs and all that use libfuse's high-level interface take it)"
                )
            }
            Means::Mount(name) if ONLY_FIRST.contains(&name) => format!(
                "/etc/fstab: add {written} to the mount options; for / itself, instead, rootflags={written} on the kernel's command line"
            ),
            Means::Mount(_) | Means::MountWord => format!("/etc/fstab: add {written} to the mount options"),
            Means::Mkfs { .. } | Means::MkfsValue(_) | Means::MkfsFeature => {
                let kind = place.kinds().into_iter().find(|kind| self.kinds.contains(kind));
                format!("make it anew: mkfs.{} {written}", kind.map_or("ext4", Kind::name))
            }
            Means::Queue(file) => format!(
                "/etc/udev/rules.d/60-inodyne.rules: ACTION==\"add|change\", KERNEL==\"DEVICE\", ATTR{{queue/{file}}}=\"{value}\""
            ),
            Means::Vm(file) => format!("/etc/sysctl.d/60-inodyne.conf: vm.{file} = {value}"),
        }
    }
}

impl Means {
    fn apply(self, place: &PlaceSpec, value: &str) -> Result<PlaceSpec, ChangeError> {
        match self {
            Means::Mount(name) => place.with_mount(&format!("{name}={value}")),
            Means::MountWord => place.with_mount(value),
            Means::Mkfs { option, parameter } => place.made_with(option, &format!("{parameter}={value}")),
            Means::MkfsValue(option) => place.made_with(option, value),
            // What is not left out is there by default.
            Means::MkfsFeature if !value.starts_with('^') => place.with_feature(value),
            Means::MkfsFeature => place.made_with("-O", value),
            Means::Queue(file) => place.with_setting(&format!("/sys/block/LOOP/queue/{file}"), value),
            Means::Vm(file) => place.with_setting(&format!("/proc/sys/vm/{file}"), value),
        }
    }

    /// Why its old value does not undo it, as the end of a sentence; none where it does. What is made for a run and gone with it may have it.
    pub fn not_undone(self) -> Option<&'static str> {
        if let Means::Queue(name) = self { not_undone(name) } else { None }
    }

    /// Whether it can be changed, and changed back, while the file system is mounted.
    pub fn is_live(self) -> bool {
        matches!(self, Means::Queue(_) | Means::Vm(_))
    }
}

#[cfg(test)]
mod tests;
