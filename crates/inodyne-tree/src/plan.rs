//! A specification unrolled: which directories exist, what each holds, without ever holding the tree in memory.
//!
//! A directory is a level and an index in that level; its children, files, names and contents are computed from these
//! two. So makers and checkers can start anywhere, in any order, on any thread. Nothing here touches a file system.

use std::{io::Write, ops::Range};

use inodyne_model::random::mix;

use crate::{Shape, TreeError, TreeSpec};

/// Where a directory stands in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub level: usize,
    pub index: u64,
}

impl Place {
    /// The directory in which everything is made.
    pub const ROOT: Self = Self { level: 0, index: 0 };
}

/// All places of a specification.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    spec: &'a TreeSpec,
    /// Directories on each level; the last level has the files.
    counts: Vec<u64>,
    fan: u64,
}

impl<'a> Plan<'a> {
    /// Lays out `spec`; fails when it has more directories than can be counted.
    pub fn new(spec: &'a TreeSpec) -> Result<Self, TreeError> {
        let too_large = || TreeError::Spec(format!("{spec} has too many directories"));
        let (counts, fan) = match spec.shape {
            Shape::Levels { depth, width } => {
                let count = |level: u32| width.checked_pow(level).ok_or_else(too_large);
                ((0..depth).map(count).collect::<Result<_, _>>()?, width)
            }
            Shape::Leaves { dirs: 0, fan } => (vec![1], fan),
            Shape::Leaves { dirs, fan } => {
                let mut counts = vec![dirs];
                while fan > 1 && counts[counts.len() - 1] > fan {
                    counts.push(counts[counts.len() - 1].div_ceil(fan));
                }
                counts.push(1);
                counts.reverse();
                (counts, if fan == 1 { dirs } else { fan })
            }
        };
        Ok(Self { spec, counts, fan })
    }

    /// The directories in the one at `place`, as indices on the next level.
    pub fn children(&self, place: Place) -> Range<u64> {
        let count = self.counts.get(place.level + 1).copied().unwrap_or(0);
        let first = place.index.saturating_mul(self.fan).min(count);
        first..first.saturating_add(self.fan).min(count)
    }

    /// How many files the directory at `place` holds.
    pub fn files(&self, place: Place) -> u64 {
        if place.level + 1 == self.counts.len() { self.spec.files.draw(mix(self.directory_key(place))) } else { 0 }
    }

    /// What decides the bytes of a file: the key for [`crate::content::fill`].
    pub fn file_key(&self, place: Place, file: u64) -> u64 {
        mix(self.directory_key(place) ^ mix(file))
    }

    /// How long the file with this key is.
    pub fn file_bytes(&self, key: u64) -> u64 {
        self.spec.bytes.draw(mix(!key))
    }

    /// The name of a directory in the one above it.
    pub fn directory_name(&self, place: Place) -> Name {
        self.lengthened(Name::directory(place.index), || !self.directory_key(place))
    }

    /// The name of a file in its directory.
    pub fn file_name(&self, place: Place, file: u64) -> Name {
        self.lengthened(Name::file(file), || !self.file_key(place, file))
    }

    fn lengthened(&self, name: Name, key: impl FnOnce() -> u64) -> Name {
        let Some(lengths) = self.spec.names else { return name };
        let key = mix(key());
        name.lengthened(lengths.draw(key), key)
    }

    fn directory_key(&self, place: Place) -> u64 {
        mix(self.spec.seed) ^ mix(place.index) ^ ((place.level as u64) << 56)
    }
}

/// What file systems take as a name, in bytes (NAME_MAX).
const LONGEST: usize = 255;

/// A file name of this tree, without an allocation: a letter and a number, and where it is to be longer, letters after
/// `_` that follow from the name's key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    text: [u8; LONGEST],
    length: usize,
}

impl Name {
    /// The name of the directory with this index on its level.
    pub fn directory(index: u64) -> Self {
        Self::new('d', index)
    }

    /// The name of a file in its directory.
    pub fn file(index: u64) -> Self {
        Self::new('f', index)
    }

    fn new(letter: char, index: u64) -> Self {
        let mut text = [0; LONGEST];
        let mut rest = &mut text[..];
        write!(rest, "{letter}{index}").expect("a letter and twenty digits fit");
        let length = LONGEST - rest.len();
        Self { text, length }
    }

    /// The same name, lengthened to this many bytes, if that is more; never more than a file system takes.
    fn lengthened(mut self, length: u64, key: u64) -> Self {
        let length = length.min(LONGEST as u64) as usize;
        for at in self.length..length {
            let letter = (mix(key ^ at as u64) % 26) as u8;
            self.text[at] = if at == self.length { b'_' } else { b'a' + letter };
        }
        self.length = self.length.max(length);
        self
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.text[..self.length]).expect("made of ASCII")
    }

    /// The index in `name`, if it may be the name of a directory (`d`) or a file (`f`): what follows `_` is ignored.
    pub fn parse(name: &[u8]) -> Option<(char, u64)> {
        let letter = *name.first().filter(|letter| b"df".contains(letter))? as char;
        let short = name.split(|byte| *byte == b'_').next()?;
        let index = std::str::from_utf8(&short[1..]).ok()?.parse().ok()?;
        (Self::new(letter, index).as_str().as_bytes() == short).then_some((letter, index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(text: &str) -> (u64, u64) {
        let spec: TreeSpec = text.parse().unwrap();
        let plan = Plan::new(&spec).unwrap();
        let (mut directories, mut files) = (0, 0);
        let mut open = vec![Place::ROOT];
        while let Some(place) = open.pop() {
            directories += 1;
            files += plan.files(place);
            open.extend(plan.children(place).map(|index| Place { level: place.level + 1, index }));
        }
        (directories, files)
    }

    #[test]
    fn shapes() {
        assert_eq!(totals("depth=4,width=32"), (33_825, 1_048_576));
        assert_eq!(totals("dirs=1000,files=30"), (1_011, 30_000));
        assert_eq!(totals("dirs=0,files=100000"), (1, 100_000));
        assert_eq!(totals("dirs=1,files=5"), (2, 5));
        assert_eq!(totals("dirs=10,fan=1,files=5"), (11, 50));
        assert_eq!(totals("dirs=101,files=1"), (104, 101));
        assert_eq!(totals("depth=1,width=9"), (1, 9));
        assert_eq!(totals("depth=5000,width=1"), (5_000, 1));
    }

    #[test]
    fn too_many_directories_are_refused() {
        assert!(Plan::new(&"depth=99,width=9".parse().unwrap()).is_err());
    }

    #[test]
    fn names_are_as_long_as_asked_for_and_never_the_same() {
        let spec: TreeSpec = "dirs=3,files=200,names=0..300".parse().unwrap();
        let plan = Plan::new(&spec).unwrap();
        let names: Vec<_> = (0..200).map(|file| plan.file_name(Place { level: 1, index: 2 }, file)).collect();
        let different: std::collections::HashSet<_> = names.iter().map(Name::as_str).collect();
        assert_eq!(different.len(), 200);
        assert!(names.iter().any(|name| name.as_str().len() == 255) && names.iter().all(|name| name.length <= 255));
        assert!(names.iter().any(|name| name.as_str().len() < 10));
        assert_eq!(Name::file(7).lengthened(2, 1).as_str(), "f7");
        assert_eq!(Name::file(7).lengthened(6, 1).as_str().len(), 6);
        assert_ne!(Name::file(7).lengthened(9, 1).as_str(), Name::file(7).lengthened(9, 2).as_str());
    }

    #[test]
    fn names_parse_only_as_written() {
        assert_eq!(Name::parse(Name::file(12).as_str().as_bytes()), Some(('f', 12)));
        assert_eq!(Name::parse(Name::file(12).lengthened(20, 7).as_str().as_bytes()), Some(('f', 12)));
        assert_eq!(Name::parse(Name::directory(u64::MAX).as_str().as_bytes()), Some(('d', u64::MAX)));
        for wrong in ["", "d", "f01", "f+1", "x1", "f1 "] {
            assert_eq!(Name::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
