//! Which tree: the few numbers from which every name, size and byte follows.
//!
//! A specification is written as `key=value,key=value` (in study files and places) or given as options. It says
//! nothing about how the tree is made: the same specification gives the same tree on every file system.

use std::{fmt, str::FromStr};

use crate::{Amount, TreeError};

/// A tree: levels of directories, with files in the lowest.
///
/// Either `depth` and `width` (the tree of the rm study: `depth=4,width=32` has 32³ lowest directories with 32 files
/// each), or `dirs` (that many lowest directories, grouped by up to `fan` under parents; `dirs=0` puts the files into
/// the root itself).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeSpec {
    /// How the directories are arranged.
    pub shape: Shape,
    /// Files in each of the lowest directories.
    pub files: Amount,
    /// Bytes in each file.
    pub bytes: Amount,
    /// How long names are, in bytes; if not given, as long as their numbers need.
    pub names: Option<Amount>,
    /// Another seed gives other contents and other draws from distributions.
    pub seed: u64,
}

/// How directories are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `width` directories in each directory on `depth - 1` levels below the root.
    Levels {
        /// Levels, counting the files' own.
        depth: u32,
        /// Entries per directory.
        width: u64,
    },
    /// `dirs` lowest directories under as few parents as `fan` allows.
    Leaves {
        /// Lowest directories.
        dirs: u64,
        /// At most this many directories in one.
        fan: u64,
    },
}

/// How many directories a parent gets when `dirs` is given without `fan`.
const DEFAULT_FAN: u64 = 100;

/// Levels that can be laid out: each costs eight bytes of memory.
const DEEPEST: u32 = 10_000_000;

impl FromStr for TreeSpec {
    type Err = TreeError;

    fn from_str(text: &str) -> Result<Self, TreeError> {
        let (mut depth, mut width, mut dirs, mut fan) = (None, None, None, None);
        let (mut files, mut bytes, mut names, mut seed) = (None, Amount::Fixed(0), None, 0);
        for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| TreeError::Spec(format!("'{pair}' should be key=value, such as depth=4")))?;
            let value = value.trim();
            let number = || match value.parse::<Amount>()? {
                Amount::Fixed(number) => Ok(number),
                _ => Err(TreeError::Spec(format!("'{key}' takes one number, not '{value}'"))),
            };
            match key.trim() {
                "depth" => depth = Some(number()?),
                "width" => width = Some(number()?),
                "dirs" => dirs = Some(number()?),
                "fan" => fan = Some(number()?),
                "files" => files = Some(value.parse()?),
                "bytes" => bytes = value.parse()?,
                "names" => names = Some(value.parse()?),
                "seed" => seed = number()?,
                other => {
                    let known = "depth, width, dirs, fan, files, bytes, names, seed";
                    return Err(TreeError::Spec(format!("no key '{other}': there are {known}")));
                }
            }
        }
        let shape = match (depth, width, dirs, fan) {
            (Some(depth), Some(width), None, None) if depth > 0 && width > 0 => match u32::try_from(depth) {
                Ok(depth @ ..=DEEPEST) => Shape::Levels { depth, width },
                _ => return Err(TreeError::Spec(format!("depth={depth} is too deep: at most {DEEPEST}"))),
            },
            (None, None, Some(dirs), fan) if fan != Some(0) => Shape::Leaves { dirs, fan: fan.unwrap_or(DEFAULT_FAN) },
            _ => return Err(TreeError::Spec("give either depth and width, or dirs (and fan), each above 0".into())),
        };
        let files = files.unwrap_or(match shape {
            Shape::Levels { width, .. } => Amount::Fixed(width),
            Shape::Leaves { .. } => Amount::Fixed(1),
        });
        Ok(Self { shape, files, bytes, names, seed })
    }
}

impl fmt::Display for TreeSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shape {
            Shape::Levels { depth, width } => write!(f, "depth={depth},width={width}")?,
            Shape::Leaves { dirs, fan } => write!(f, "dirs={dirs},fan={fan}")?,
        }
        write!(f, ",files={},bytes={}", self.files, self.bytes)?;
        if let Some(names) = self.names {
            write!(f, ",names={names}")?;
        }
        write!(f, ",seed={}", self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let spec: TreeSpec = "depth=4,width=32,bytes=1".parse().unwrap();
        assert_eq!(spec.to_string(), "depth=4,width=32,files=32,bytes=1,seed=0");
        let spec: TreeSpec = "dirs=1000, files=30, bytes=~512, seed=7".parse().unwrap();
        assert_eq!(spec.to_string(), "dirs=1000,fan=100,files=30,bytes=~512,seed=7");
        assert_eq!(spec.to_string().parse::<TreeSpec>().unwrap(), spec);
        let spec: TreeSpec = "dirs=2,names=8..40".parse().unwrap();
        assert_eq!(spec.to_string(), "dirs=2,fan=100,files=1,bytes=0,names=8..40,seed=0");
    }

    #[test]
    fn mistakes_are_named() {
        for (text, says) in [
            ("depth=4", "either depth and width"),
            ("depth=4,width=2,dirs=3", "either depth and width"),
            ("dirs=3,fan=0", "above 0"),
            ("dirs", "key=value"),
            ("dirs=3,colour=red", "no key 'colour'"),
            ("dirs=1..3", "one number"),
            ("depth=4000000000,width=1", "too deep: at most 10000000"),
            ("", "either depth and width"),
        ] {
            let error = text.parse::<TreeSpec>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
