//! What a place is, as the user writes it: `[label=]DIR` or `[label=]KIND[:option,option…]`.
//!
//! ```
//! # use inodyne_lab::PlaceSpec;
//! # fn main() -> Result<(), inodyne_lab::LabError> {
//! for text in [
//!     "ext4",
//!     "/srv/data",
//!     "slow=ext4:mkfs=-O ^filetype",
//!     "xfs:size=4G,mount=noatime,logbsize=256k",
//!     "overlay:lower=xfs:size=1G,layers=5",
//!     "overlay:lower=[ext4:size=1G,mount=noatime],upper=tmpfs,mount=metacopy=on",
//!     "bind:/srv/data,mount=ro",
//!     "fuse:ext4:size=1G",
//!     "share:/srv/data,withhold-types,delay=100us",
//!     "ext4:age=3,full=80%,delay=2ms,bandwidth=50M,iops=200",
//!     "ext4:set=/sys/block/LOOP/queue/read_ahead_kb=0,set=/proc/sys/vm/dirty_ratio=5",
//! ] {
//!     let place: PlaceSpec = text.parse()?;
//!     assert_eq!(place.to_string(), text);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The rules, in order:
//! 1. What stands before the first `=` is a label, if it holds none of `/ : ,`. So `./a=b` is a directory, `a=./b` too.
//! 2. What is a known kind up to the first `:` is a file system to make. A directory called `ext4` is written `./ext4`.
//! 3. What holds a `/`, or is `.` or `..`, is an existing directory.
//! 4. Options are separated by commas, but mkfs and mount options hold commas themselves: a comma separates only where
//!    one of our own keys (`size=`, `mkfs=`, `mount=` …) follows. Inside quotes it never does:
//!    `xfs:mkfs=-d 'agcount=4,size=1g'`.
//! 5. A place inside a place (after `lower=`, `upper=`, `bind:`, `fuse:` and `share:`) reaches to the next key of the outer one, so that
//!    `overlay:lower=ext4:size=1G,layers=2` needs no more. Where both have the key, brackets say whose it is:
//!    `overlay:lower=[ext4:size=1G,mount=noatime],mount=metacopy=on`. It has no label.
//!    No comma inside brackets separates, and every value closes the brackets and quotes that it opens.
//! 6. `set=FILE=VALUE` changes a file under /sys or /proc/sys for what runs in the place; `LOOP` in it stands for the
//!    name of the place's own device. It may be given several times.
//!
//! Nothing is looked up here: whether the directory exists or mkfs knows its options shows when the place is made.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use crate::{Kind, LabError, Size};

mod change;
mod made;
mod options;

pub use change::ChangeError;
pub use made::MadePlace;
pub(crate) use made::{SettingSpec, not_undone};

/// A place as described by the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceSpec {
    label: Option<String>,
    place: Where,
}

/// Where a run happens.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Where {
    /// A directory that was there before.
    Existing(PathBuf),
    /// A file system to make.
    Made(MadePlace),
}

/// How deep places may stand on places. Nobody needs more, and a text cannot exhaust the stack.
const DEEPEST: usize = 4;

impl PlaceSpec {
    /// The user's label.
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// What to call the place in a report: the label, otherwise the description itself.
    pub fn name(&self) -> String {
        self.label.clone().unwrap_or_else(|| self.to_string())
    }

    /// The same under another name.
    pub fn called(&self, label: &str) -> Self {
        Self { label: Some(label.to_owned()), ..self.clone() }
    }

    /// Where it is.
    pub fn place(&self) -> &Where {
        &self.place
    }

    /// Whether what a command writes there goes into something made here: not so where an existing directory is only shown.
    pub fn is_made(&self) -> bool {
        match &self.place {
            Where::Existing(_) => false,
            Where::Made(made) => !made.kind.shows() || made.below().all(Self::is_made),
        }
    }

    /// Whether nothing of it was there before.
    pub fn is_all_made(&self) -> bool {
        matches!(&self.place, Where::Made(made) if made.below().all(Self::is_all_made))
    }

    /// A kind with nothing said about it.
    pub(crate) fn plain(kind: Kind) -> Self {
        Self { label: None, place: Where::Made(MadePlace::plain(kind)) }
    }

    /// An existing directory, shown by a bind mount: a place that settings can belong to.
    ///
    /// The path is no description. Whoever owns a directory above it can give it any name, also one that reads like options.
    pub fn showing(directory: &Path) -> Self {
        let lower = Some(Box::new(Self::from(directory)));
        Self { label: None, place: Where::Made(MadePlace { lower, ..MadePlace::plain(Kind::Bind) }) }
    }

    /// What kinds it is made of, from the outermost one inwards.
    pub fn kinds(&self) -> Vec<Kind> {
        let Where::Made(made) = &self.place else { return Vec::new() };
        let unsaid = made.is_over_ext4().then_some(Kind::Ext4);
        std::iter::once(made.kind).chain(unsaid).chain(made.below().flat_map(Self::kinds)).collect()
    }

    /// The smallest size that is given for a file system of these kinds in it; none where none is given.
    pub(crate) fn size_of(&self, kinds: &[Kind]) -> Option<Size> {
        let Where::Made(made) = &self.place else { return None };
        let own = made.size.filter(|_| kinds.contains(&made.kind));
        own.into_iter().chain(made.below().filter_map(|place| place.size_of(kinds))).min()
    }

    /// How many overlays are stacked on each other.
    fn overlays(&self) -> usize {
        let Where::Made(made) = &self.place else { return 0 };
        let below = made.below().map(Self::overlays).max().unwrap_or(0);
        below + usize::from(made.kind == Kind::Overlay)
    }

    /// Reads what stands at `depth` inside other places.
    fn parse(text: &str, depth: usize) -> Result<Self, String> {
        if depth > DEEPEST {
            return Err(format!("places stand on places at most {DEEPEST} deep"));
        }
        let (label, rest) = match text.split_once('=') {
            Some((label, rest)) if !label.contains(['/', ':', ',']) => (Some(label), rest),
            _ => (None, text),
        };
        if label.is_some_and(|label| label.trim().is_empty()) {
            return Err("the label before '=' is empty".into());
        }
        if let Some(label) = label.filter(|_| depth > 0) {
            return Err(format!(
                "'{label}=' labels an inner place: a label stands before the whole, a directory is ./{label}=…"
            ));
        }
        let (name, options) = rest.split_once(':').map_or((rest, None), |(name, options)| (name, Some(options)));
        let place = match Kind::from_name(name) {
            Some(kind) => Where::Made(MadePlace::parse(kind, options, depth)?),
            None if rest.contains('/') || rest == "." || rest == ".." => Where::Existing(rest.into()),
            None => {
                let kinds = Kind::names();
                return Err(format!(
                    "no file system '{name}' to make: there are {kinds}; a directory is written with a slash, ./{rest}"
                ));
            }
        };
        let spec = Self { label: label.map(Into::into), place };
        match spec.overlays() {
            ..=2 => Ok(spec),
            _ => Err("overlays lie on each other at most two high".into()),
        }
    }
}

impl From<&Path> for PlaceSpec {
    /// An existing directory, without a label.
    fn from(directory: &Path) -> Self {
        let plain = directory.to_string_lossy();
        let is_written_so = plain.parse::<Self>().is_ok_and(|spec| spec.place == Where::Existing(directory.into()));
        let directory = if is_written_so { directory.into() } else { Path::new(".").join(directory) };
        Self { label: None, place: Where::Existing(directory) }
    }
}

impl fmt::Display for PlaceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(label) = &self.label {
            write!(f, "{label}=")?;
        }
        match &self.place {
            Where::Existing(directory) => write!(f, "{}", directory.display()),
            Where::Made(made) => made.fmt(f),
        }
    }
}

impl FromStr for PlaceSpec {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let parsed = match text.contains('\0') {
            true => Err("a name cannot hold a zero byte".into()),
            false => Self::parse(text, 0),
        };
        parsed.map_err(|problem| LabError::PlaceSyntax { text: text.into(), problem })
    }
}

#[cfg(test)]
mod tests;
