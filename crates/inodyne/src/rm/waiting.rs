//! Directories that wait to be removed together, and which operands must not wait with them.
//!
//! GNU rm removes one operand after another. If one lies in another, what is in both is removed, and named, with the first; if they were
//! removed together, it could be with either.

use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    path::{Component, Path, PathBuf},
};

/// Directories in the order of their operands.
#[derive(Debug, Default)]
pub struct Waiting {
    trees: Vec<OsString>,
    places: HashSet<PathBuf>,
    /// What these lie in.
    above: HashSet<PathBuf>,
}

impl Waiting {
    pub fn add(&mut self, operand: &OsStr) {
        let place = place(operand);
        for above in place.ancestors().skip(1) {
            if !self.above.insert(above.to_owned()) {
                break;
            }
        }
        self.places.insert(place);
        self.trees.push(operand.to_owned());
    }

    /// Whether an operand is, lies in, or contains one that waits; also true if that cannot be told from the names. The operands have no
    /// `..` in them, and do not lead through different links.
    pub fn has_to_do_with(&self, operand: &OsStr) -> bool {
        let Some(first) = self.trees.first() else { return false };
        let place = place(operand);
        let is_absolute = |operand: &OsStr| Path::new(operand).is_absolute();
        is_absolute(first) != is_absolute(operand)
            || self.above.contains(&place)
            || place.ancestors().any(|above| self.places.contains(above))
    }

    /// All of them; none waits any more.
    pub fn take(&mut self) -> Vec<OsString> {
        std::mem::take(self).trees
    }
}

/// A path without what changes nothing: `.` and repeated slashes.
fn place(operand: &OsStr) -> PathBuf {
    Path::new(operand).components().filter(|component| *component != Component::CurDir).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_in_one_another_do_not_wait_together() {
        for (waits, operand, expected) in [
            ("d", "d", true),
            ("d", "./d/", true),
            ("d", ".//d/e", true),
            ("d/e/f", "d", true),
            ("./d/e", "d//e/f/g", true),
            ("d", "/tmp/d", true),
            ("/tmp/d", "//tmp/./d/e", true),
            ("d", "de", false),
            ("d/e", "d/f", false),
            ("d/e/f", "d/f", false),
            ("d/e", "e", false),
            ("/tmp/d", "/tmp/e", false),
        ] {
            let mut waiting = Waiting::default();
            assert!(!waiting.has_to_do_with(OsStr::new(operand)), "nothing waits");
            waiting.add(OsStr::new("other"));
            waiting.take();
            waiting.add(OsStr::new(waits));
            assert_eq!(waiting.has_to_do_with(OsStr::new(operand)), expected, "{waits} and {operand}");
            assert_eq!(waiting.take(), [waits]);
            assert!(!waiting.has_to_do_with(OsStr::new(operand)));
        }
    }
}
