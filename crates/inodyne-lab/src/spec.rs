//! What a place is, as the user writes it: `[label=]DIR` or `[label=]KIND[:option,option…]`.
//!
//! ```
//! # use inodyne_lab::PlaceSpec;
//! # fn main() -> Result<(), inodyne_lab::LabError> {
//! for text in ["ext4", "/srv/data", "slow=ext4:mkfs=-O ^filetype", "xfs:size=4G,mount=noatime,logbsize=256k"] {
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
//!    one of our own keys (`size=`, `mkfs=`, `mount=`) follows. Inside quotes it never does:
//!    `xfs:mkfs=-d 'agcount=4,size=1g'`.
//!
//! Nothing is looked up here: whether the directory exists or mkfs knows its options shows when the place is made.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use crate::{Kind, LabError, Size};

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

/// A file system to make.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MadePlace {
    /// Which.
    pub kind: Kind,
    /// How large; a default otherwise.
    pub size: Option<Size>,
    /// Arguments for mkfs, as written; see [`MadePlace::mkfs_words`].
    mkfs: Option<String>,
    /// Mount options, as written.
    mount: Option<String>,
}

impl PlaceSpec {
    /// The user's label.
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// What to call the place in a report: the label, otherwise the description itself.
    pub fn name(&self) -> String {
        self.label.clone().unwrap_or_else(|| self.to_string())
    }

    /// Where it is.
    pub fn place(&self) -> &Where {
        &self.place
    }
}

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
            Where::Made(made) => {
                f.write_str(made.kind.name())?;
                let size = made.size.map(|size| size.to_string());
                let given = KEYS.into_iter().zip([size.as_ref(), made.mkfs.as_ref(), made.mount.as_ref()]);
                let options: Vec<_> = given.filter_map(|(key, value)| value.map(|value| (key, value))).collect();
                for (index, (key, value)) in options.into_iter().enumerate() {
                    write!(f, "{}{key}={value}", if index == 0 { ':' } else { ',' })?;
                }
                Ok(())
            }
        }
    }
}

/// The options of a made place, in the order in which they are written out.
const KEYS: [&str; 3] = ["size", "mkfs", "mount"];

impl FromStr for PlaceSpec {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let wrong = |problem: String| LabError::PlaceSyntax { text: text.into(), problem };
        let (label, rest) = match text.split_once('=') {
            Some((label, rest)) if !label.contains(['/', ':', ',']) => (Some(label), rest),
            _ => (None, text),
        };
        if label.is_some_and(|label| label.trim().is_empty()) {
            return Err(wrong("the label before '=' is empty".into()));
        }
        if text.contains('\0') {
            return Err(wrong("a name cannot hold a zero byte".into()));
        }
        let (name, options) = rest.split_once(':').map_or((rest, None), |(name, options)| (name, Some(options)));
        let place = match Kind::from_name(name) {
            Some(kind) => Where::Made(made(kind, options).map_err(wrong)?),
            None if rest.contains('/') || rest == "." || rest == ".." => Where::Existing(rest.into()),
            None => {
                let kinds = Kind::names();
                return Err(wrong(format!(
                    "no file system '{name}' to make: there are {kinds}; a directory is written with a slash, ./{rest}"
                )));
            }
        };
        Ok(Self { label: label.map(Into::into), place })
    }
}

fn made(kind: Kind, options: Option<&str>) -> Result<MadePlace, String> {
    let mut made = MadePlace { kind, size: None, mkfs: None, mount: None };
    let Some(options) = options else { return Ok(made) };
    for option in split_options(options) {
        let known = option.split_once('=').filter(|(key, _)| KEYS.contains(key));
        let Some((key, value)) = known else {
            let key = option.split('=').next().unwrap_or(option);
            return Err(format!("no option '{key}': there are size=, mkfs= and mount="));
        };
        if !is_closed(value) {
            return Err(format!("{key}={value} has an open quote"));
        }
        let is_new = match key {
            "size" => made.size.replace(value.parse().map_err(|error: LabError| error.to_string())?).is_none(),
            "mkfs" => {
                if kind.mkfs().is_none() {
                    return Err(format!("{kind} is not made by mkfs: it takes size= and mount="));
                }
                shell_words::split(value).map_err(|_| format!("mkfs={value} cannot be split into words"))?;
                made.mkfs.replace(value.into()).is_none()
            }
            _ => made.mount.replace(value.into()).is_none(),
        };
        if !is_new {
            return Err(format!("{key}= is given twice"));
        }
        if value.trim().is_empty() {
            return Err(format!("{key}= is empty"));
        }
    }
    Ok(made)
}

/// Cuts at each comma outside quotes that one of our own keys follows.
fn split_options(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut start, mut quoting) = (0, Quoting::default());
    for (at, character) in text.char_indices() {
        if quoting.is_plain(character) && character == ',' {
            let next = &text[at + 1..];
            if KEYS.iter().any(|key| next.strip_prefix(key).is_some_and(|rest| rest.starts_with('='))) {
                pieces.push(&text[start..at]);
                start = at + 1;
            }
        }
    }
    pieces.push(&text[start..]);
    pieces
}

/// Whether no quote and no backslash reaches beyond the end.
fn is_closed(text: &str) -> bool {
    let mut quoting = Quoting::default();
    text.chars().for_each(|character| {
        quoting.is_plain(character);
    });
    quoting.quote.is_none() && !quoting.escaped
}

/// Where a scan stands between a shell's quotes.
#[derive(Default)]
struct Quoting {
    quote: Option<char>,
    escaped: bool,
}

impl Quoting {
    /// Takes the next character, and says whether it stands for itself outside quotes.
    fn is_plain(&mut self, character: char) -> bool {
        match (self.quote, character) {
            _ if self.escaped => self.escaped = false,
            (None | Some('"'), '\\') => self.escaped = true,
            (None, '"' | '\'') => self.quote = Some(character),
            (Some(open), _) if open == character => self.quote = None,
            (Some(_), _) => {}
            (None, _) => return true,
        }
        false
    }
}

#[cfg(test)]
mod tests;
