//! What a guest has kept from a lost connection, so that a host that knows nothing of it, or no longer does, lets it carry on.
//!
//! ```text
//!   a node:       1, node: u64, directory: u64, how often it was told of it: u64, length: u16, name
//!   an open file: 2, handle: u64, node: u64, how it is open: u8
//! ```
//!
//! Directories come before what is in them, nodes before the files that are open. The host answers each message with a list of places
//! in it, each a u32: those of what is no longer there.

use std::ffi::CString;

/// Something that a guest has kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// A node, under the name by which it was last seen.
    Node { node: u64, directory: u64, lookups: u64, name: CString },
    /// A file that is open; `access` is `O_RDONLY`, `O_WRONLY` or `O_RDWR`.
    File { handle: u64, node: u64, access: u8 },
}

impl Kept {
    /// Appends it to what is there.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Node { node, directory, lookups, name } => {
                bytes.push(1);
                [node, directory, lookups].into_iter().for_each(|number| bytes.extend(number.to_le_bytes()));
                bytes.extend((name.count_bytes() as u16).to_le_bytes());
                bytes.extend(name.to_bytes());
            }
            Self::File { handle, node, access } => {
                bytes.push(2);
                [handle, node].into_iter().for_each(|number| bytes.extend(number.to_le_bytes()));
                bytes.push(*access);
            }
        }
    }
}

/// From such bytes; `None` where they are something else.
pub(crate) fn decode(bytes: &[u8]) -> Option<Vec<Kept>> {
    fn number<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
        let (number, after) = rest.split_first_chunk()?;
        *rest = after;
        Some(*number)
    }
    let mut rest = bytes;
    let mut list = Vec::new();
    while !rest.is_empty() {
        list.push(match number(&mut rest)? {
            [1] => {
                let [node, directory, lookups] = [number(&mut rest)?, number(&mut rest)?, number(&mut rest)?];
                let length = u16::from_le_bytes(number(&mut rest)?);
                let (name, after) = rest.split_at_checked(length.into())?;
                rest = after;
                let [node, directory, lookups] = [node, directory, lookups].map(u64::from_le_bytes);
                Kept::Node { node, directory, lookups, name: CString::new(name).ok()? }
            }
            [2] => {
                let [handle, node] = [number(&mut rest)?, number(&mut rest)?].map(u64::from_le_bytes);
                let [access] = number(&mut rest)?;
                Kept::File { handle, node, access }
            }
            _ => return None,
        });
    }
    Some(list)
}

/// The answer.
pub(crate) fn encode_missing(places: impl Iterator<Item = usize>) -> Vec<u8> {
    places.flat_map(|place| (place as u32).to_le_bytes()).collect()
}

/// The places it names.
pub(crate) fn decode_missing(bytes: &[u8]) -> impl Iterator<Item = usize> {
    bytes.as_chunks().0.iter().map(|place| u32::from_le_bytes(*place) as usize)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kept() -> impl Strategy<Value = Kept> {
        prop_oneof![
            (any::<[u64; 3]>(), "[^\0]{0,60}").prop_map(|([node, directory, lookups], name)| Kept::Node {
                node,
                directory,
                lookups,
                name: CString::new(name).unwrap()
            }),
            any::<(u64, u64, u8)>().prop_map(|(handle, node, access)| Kept::File { handle, node, access }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(list in prop::collection::vec(kept(), 0..20)) {
            let mut bytes = Vec::new();
            list.iter().for_each(|one| one.encode(&mut bytes));
            prop_assert_eq!(decode(&bytes), Some(list));
        }

        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
        }

        #[test]
        fn nor_do_damaged_ones(list in prop::collection::vec(kept(), 1..9), at: prop::sample::Index, byte: u8) {
            let mut bytes = Vec::new();
            list.iter().for_each(|one| one.encode(&mut bytes));
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = decode(&bytes);
            let _ = decode(&bytes[..at]);
        }

        #[test]
        fn places_are_read_as_they_are_written(places in prop::collection::vec(0usize..1 << 20, 0..20)) {
            prop_assert_eq!(decode_missing(&encode_missing(places.iter().copied())).collect::<Vec<_>>(), places);
        }
    }
}
