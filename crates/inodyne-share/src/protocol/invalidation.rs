//! What is no longer valid: what the host tells a guest, and how it is written on the stream.
//!
//! ```text
//! | number of the message: u64 | entry | entry | ...
//!   node:       1, node: u64, whether its data too: u8
//!   name:       2, directory: u64, length: u16, name
//!   everything: 3
//! ```
//!
//! The guest acknowledges the message by its number.

use std::ffi::{CStr, CString};

/// Something that a guest may hold and that has changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Invalidation {
    /// The attributes of a node and, where `data`, its pages or its list of names.
    Node { node: u64, data: bool },
    /// What a name in a directory refers to, if anything.
    Name { directory: u64, name: CString },
    /// Every name. What else is held is named one by one.
    AllNames,
}

/// As bytes of a frame.
pub(crate) fn encode(number: u64, list: &[Invalidation]) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    for one in list {
        match one {
            Invalidation::Node { node, data } => {
                bytes.push(1);
                bytes.extend(node.to_le_bytes());
                bytes.push(u8::from(*data));
            }
            Invalidation::Name { directory, name } => {
                bytes.push(2);
                bytes.extend(directory.to_le_bytes());
                bytes.extend((name.count_bytes() as u16).to_le_bytes());
                bytes.extend(name.to_bytes());
            }
            Invalidation::AllNames => bytes.push(3),
        }
    }
    bytes
}

/// From such bytes; `None` where they are something else.
pub(crate) fn decode(bytes: &[u8]) -> Option<(u64, Vec<Invalidation>)> {
    let (number, mut rest) = bytes.split_first_chunk()?;
    let mut list = Vec::new();
    while let Some((tag, after)) = rest.split_first() {
        rest = after;
        list.push(match tag {
            1 => {
                let (node, after) = rest.split_first_chunk()?;
                let (data, after) = after.split_first()?;
                rest = after;
                Invalidation::Node { node: u64::from_le_bytes(*node), data: *data != 0 }
            }
            2 => {
                let (directory, after) = rest.split_first_chunk()?;
                let (length, after) = after.split_first_chunk()?;
                let (name, after) = after.split_at_checked(u16::from_le_bytes(*length).into())?;
                rest = after;
                Invalidation::Name { directory: u64::from_le_bytes(*directory), name: text(name)? }
            }
            3 => Invalidation::AllNames,
            _ => return None,
        });
    }
    Some((u64::from_le_bytes(*number), list))
}

fn text(bytes: &[u8]) -> Option<CString> {
    CString::new(bytes).ok()
}

impl Invalidation {
    /// Attributes only.
    pub fn attributes(node: u64) -> Self {
        Self::Node { node, data: false }
    }

    /// Attributes and data.
    pub fn data(node: u64) -> Self {
        Self::Node { node, data: true }
    }

    /// A name.
    pub fn name(directory: u64, name: &CStr) -> Self {
        Self::Name { directory, name: name.into() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn invalidation() -> impl Strategy<Value = Invalidation> {
        prop_oneof![
            (any::<u64>(), any::<bool>()).prop_map(|(node, data)| Invalidation::Node { node, data }),
            (any::<u64>(), "[^\0]{1,60}")
                .prop_map(|(directory, name)| Invalidation::Name { directory, name: CString::new(name).unwrap() }),
            Just(Invalidation::AllNames),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(number: u64, list in prop::collection::vec(invalidation(), 0..20)) {
            prop_assert_eq!(decode(&encode(number, &list)), Some((number, list)));
        }

        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
        }

        #[test]
        fn nor_do_damaged_ones(list in prop::collection::vec(invalidation(), 1..9), at: prop::sample::Index, byte: u8) {
            let mut bytes = encode(1, &list);
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = decode(&bytes);
            let _ = decode(&bytes[..at]);
        }
    }
}
