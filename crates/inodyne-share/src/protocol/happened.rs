//! What programs on the host have done, for guests in which programs watch files: the kernel's notifications wake none of these.
//!
//! ```text
//! | what: u8 | type: u32 | directory: u64 | length: u16, name | where it was moved: directory: u64 | length: u16, name |
//! ```
//!
//! The last two are there where [`MOVED`] is. Nothing is acknowledged, and all that a lost message means is that somebody is not woken.

use std::ffi::{CStr, CString};

/// The name is new.
pub(crate) const MADE: u8 = 1 << 0;
/// Data has changed.
pub(crate) const CHANGED: u8 = 1 << 1;
/// Attributes have.
pub(crate) const ATTRIBUTES: u8 = 1 << 2;
/// It was closed after being open for writing.
pub(crate) const CLOSED: u8 = 1 << 3;
/// The name is gone.
pub(crate) const GONE: u8 = 1 << 4;
/// The file has another name now.
pub(crate) const MOVED: u8 = 1 << 5;

/// Something that has happened to a name in a directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Happened {
    /// Several things may have happened: those above, in this order.
    pub what: u8,
    /// The type of the file, as the upper bits of a mode have it.
    pub kind: u32,
    pub directory: u64,
    pub name: CString,
    /// Where the file is now.
    pub to: Option<(u64, CString)>,
}

/// As bytes of a frame.
pub(crate) fn encode(list: &[&Happened]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for one in list {
        bytes.push(one.what);
        bytes.extend(one.kind.to_le_bytes());
        put(&mut bytes, one.directory, &one.name);
        if let Some((directory, name)) = &one.to {
            put(&mut bytes, *directory, name);
        }
    }
    bytes
}

fn put(bytes: &mut Vec<u8>, directory: u64, name: &CStr) {
    bytes.extend(directory.to_le_bytes());
    bytes.extend((name.count_bytes() as u16).to_le_bytes());
    bytes.extend(name.to_bytes());
}

/// From such bytes; `None` where they are something else.
pub(crate) fn decode(mut bytes: &[u8]) -> Option<Vec<Happened>> {
    let mut list = Vec::new();
    while let Some((what, rest)) = bytes.split_first() {
        let (kind, rest) = rest.split_first_chunk()?;
        let ((directory, name), rest) = take(rest)?;
        let (to, rest) =
            if what & MOVED == 0 { (None, rest) } else { take(rest).map(|(to, rest)| (Some(to), rest))? };
        list.push(Happened { what: *what, kind: u32::from_le_bytes(*kind), directory, name, to });
        bytes = rest;
    }
    Some(list)
}

fn take(bytes: &[u8]) -> Option<((u64, CString), &[u8])> {
    let (directory, rest) = bytes.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (name, rest) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
    // A single component, in case somebody takes it for a path.
    let name = (!name.is_empty() && !name.contains(&b'/')).then(|| CString::new(name).ok()).flatten()?;
    Some(((u64::from_le_bytes(*directory), name), rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place() -> impl Strategy<Value = (u64, CString)> {
        (any::<u64>(), "[^\0/]{1,60}").prop_map(|(directory, name)| (directory, CString::new(name).unwrap()))
    }

    fn happened() -> impl Strategy<Value = Happened> {
        (any::<u8>(), any::<u32>(), place(), place()).prop_map(|(what, kind, (directory, name), to)| Happened {
            what,
            kind,
            directory,
            name,
            to: (what & MOVED != 0).then_some(to),
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(list in prop::collection::vec(happened(), 0..20)) {
            prop_assert_eq!(decode(&encode(&list.iter().collect::<Vec<_>>())), Some(list));
        }

        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
        }
    }
}
