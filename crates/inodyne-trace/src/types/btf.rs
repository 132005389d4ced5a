//! Type information (BTF) as it lies in a file: where each type begins, and what it refers to. Documentation/bpf/btf.rst of the kernel
//! describes the format.
//!
//! An unknown kind of type or header makes the whole file unreadable: nothing is guessed. Builds also read programs with it
//! (`build.rs`).

use std::ffi::CStr;

/// The kinds that programs' types can be of.
pub mod kind {
    /// A number.
    pub const INT: u32 = 1;
    /// A pointer.
    pub const PTR: u32 = 2;
    /// An array.
    pub const ARRAY: u32 = 3;
    /// A structure.
    pub const STRUCT: u32 = 4;
    /// A union.
    pub const UNION: u32 = 5;
    /// An enum of up to 32 bits.
    pub const ENUM: u32 = 6;
    /// A structure or union of which only the name is known.
    pub const FWD: u32 = 7;
    /// Another name.
    pub const TYPEDEF: u32 = 8;
    /// A qualifier.
    pub const VOLATILE: u32 = 9;
    /// A qualifier.
    pub const CONST: u32 = 10;
    /// A qualifier.
    pub const RESTRICT: u32 = 11;
    /// A function.
    pub const FUNC: u32 = 12;
    /// The type of a function.
    pub const FUNC_PROTO: u32 = 13;
    /// A variable.
    pub const VAR: u32 = 14;
    /// A section of variables.
    pub const DATASEC: u32 = 15;
    /// A floating-point number.
    pub const FLOAT: u32 = 16;
    /// A tag on a declaration.
    pub const DECL_TAG: u32 = 17;
    /// A tag on a type.
    pub const TYPE_TAG: u32 = 18;
    /// An enum of 64 bits.
    pub const ENUM64: u32 = 19;
}

const MAGIC: u32 = 0xeb9f;
/// Bytes of what all types have in common: name, what it is, size or another type.
pub const HEADER: usize = 12;
/// Bits of the second word of a type that have a meaning. The others have none (yet).
const KNOWN_BITS: u32 = 0x9f00_ffff;

/// Enums of any size are the same kind to libbpf.
pub fn common_kind(of: u32) -> u32 {
    if of == kind::ENUM64 { kind::ENUM } else { of }
}

/// A four-byte number; none beyond the end.
pub fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// All names in a file, each ended by a zero.
pub fn names(file: &[u8]) -> Option<&[u8]> {
    part(file, 16)
}

/// The part of a file whose offset and length stand here in its header.
fn part(file: &[u8], at: usize) -> Option<&[u8]> {
    let [magic, length_of_header, offset, length] = [0, 4, at, at + 4].map(|place| word(file, place));
    if magic? & 0xffff != MAGIC {
        return None;
    }
    file.get(length_of_header? as usize..)?.get(offset? as usize..)?.get(..length? as usize)
}

/// A type.
#[derive(Debug, Clone, Copy)]
pub struct Type<'a> {
    /// All of it.
    pub bytes: &'a [u8],
    /// Where its name begins.
    pub name: u32,
    /// Of which [`kind`] it is.
    pub kind: u32,
    /// The type that it refers to, if it refers to one; else its size in bytes.
    pub of: u32,
}

/// The types of a file: all of a kernel's, or those that a module adds to these.
pub struct Types<'a> {
    types: &'a [u8],
    strings: &'a [u8],
    offsets: Vec<u32>,
    /// The number of the first type. Lower ones are the kernel's.
    first: u32,
    /// Where the first string begins. Those before are the kernel's.
    first_string: u32,
}

impl<'a> Types<'a> {
    /// Reads all types of a kernel or a program.
    pub fn read(bytes: &'a [u8]) -> Option<Types<'a>> {
        Types::read_after(bytes, 1, 0)
    }

    /// Reads those that a module adds.
    pub fn read_more(&self, bytes: &'a [u8]) -> Option<Types<'a>> {
        let strings = u32::try_from(self.strings.len()).ok()?;
        Types::read_after(bytes, self.end(), self.first_string.checked_add(strings)?)
    }

    fn read_after(bytes: &'a [u8], first: u32, first_string: u32) -> Option<Types<'a>> {
        let (types, strings) = (part(bytes, 8)?, names(bytes)?);
        let mut offsets = Vec::with_capacity(types.len() / 20);
        let mut next = 0;
        while next < types.len() {
            offsets.push(u32::try_from(next).ok()?);
            next += length(types, next)?;
        }
        (next == types.len()).then_some(Types { types, strings, offsets, first, first_string })
    }

    /// One more than the number of the last type.
    pub fn end(&self) -> u32 {
        self.first + self.offsets.len() as u32
    }

    /// A type by its number; none where it is not in this file.
    pub fn get(&self, number: u32) -> Option<Type<'a>> {
        let offset = *self.offsets.get(number.checked_sub(self.first)? as usize)?;
        self.at(offset as usize)
    }

    fn at(&self, offset: usize) -> Option<Type<'a>> {
        let bytes = self.types.get(offset..offset + length(self.types, offset)?)?;
        let header = |place| word(bytes, place);
        Some(Type { bytes, name: header(0)?, kind: header(4)? >> 24 & 0x1f, of: header(8)? })
    }

    /// All types with their numbers.
    pub fn all(&self) -> impl Iterator<Item = (u32, Type<'a>)> + '_ {
        let types = self.offsets.iter().map_while(|offset| self.at(*offset as usize));
        (self.first..).zip(types)
    }

    /// A name by where it begins; none where that is in another file.
    pub fn name(&self, begins: u32) -> Option<&'a [u8]> {
        let rest = self.strings.get(begins.checked_sub(self.first_string)? as usize..)?;
        CStr::from_bytes_until_nul(rest).ok().map(CStr::to_bytes)
    }
}

/// How many bytes the type that begins here takes.
fn length(types: &[u8], at: usize) -> Option<usize> {
    let info = word(types, at + 4)?;
    let (what, count) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
    if info & !KNOWN_BITS != 0 {
        return None;
    }
    let more = match what {
        kind::PTR
        | kind::FWD
        | kind::TYPEDEF
        | kind::VOLATILE
        | kind::CONST
        | kind::RESTRICT
        | kind::FUNC
        | kind::FLOAT
        | kind::TYPE_TAG => 0,
        kind::INT | kind::VAR | kind::DECL_TAG => 4,
        kind::ENUM | kind::FUNC_PROTO => 8 * count,
        kind::ARRAY => 12,
        kind::STRUCT | kind::UNION | kind::DATASEC | kind::ENUM64 => 12 * count,
        _ => return None,
    };
    (at + HEADER + more <= types.len()).then_some(HEADER + more)
}

/// A name without the suffix that tells structures of the same name apart: up to a `___` between others (`bpf_core_essential_name_len` in libbpf).
pub fn essential(name: &[u8]) -> &[u8] {
    let is_separator = |at: &usize| {
        let around = &name[*at..at + 5];
        around[0] != b'_' && &around[1..4] == b"___" && around[4] != b'_'
    };
    let last = (0..name.len().saturating_sub(4)).rev().find(is_separator);
    last.map_or(name, |at| &name[..=at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_as_libbpf_does_it() {
        let cut = |name: &'static str| std::str::from_utf8(essential(name.as_bytes())).unwrap();
        assert_eq!(cut("task_struct___old"), "task_struct");
        assert_eq!(cut("a___b___c"), "a___b");
        assert_eq!(cut("a____b"), "a____b");
        assert_eq!(cut("___b"), "___b");
        assert_eq!(cut("a___"), "a___");
        assert_eq!(cut(""), "");
    }

    #[test]
    fn what_is_not_known_is_not_read() {
        let file = |second_word: u32| {
            let words = [MAGIC | 1 << 16, 24, 0, 12, 12, 1, 0, second_word, 4];
            words.into_iter().flat_map(u32::to_ne_bytes).chain([0]).collect::<Vec<u8>>()
        };
        let known = file(kind::STRUCT << 24);
        let types = Types::read(&known).expect("a structure without members");
        assert_eq!((types.end(), types.get(1).unwrap().kind, types.get(1).unwrap().of), (2, kind::STRUCT, 4));
        assert!(types.get(0).is_none() && types.get(2).is_none());
        for unknown in [20 << 24, kind::STRUCT << 24 | 1 << 16, kind::STRUCT << 24 | 1 << 29] {
            assert!(Types::read(&file(unknown)).is_none(), "{unknown:#x}");
        }
        // Truncated, a member too many, and in the other byte order.
        assert!(Types::read(&known[..known.len() - 1]).is_none());
        assert!(Types::read(&file(kind::STRUCT << 24 | 1)).is_none());
        assert!(Types::read(&[&known[1..2], &known[..1], &known[2..]].concat()).is_none());
    }
}
