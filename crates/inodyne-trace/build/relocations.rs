//! Which of the kernel's types the programs ask about: the CO-RE records in the compiled object (`.BTF.ext`), by program section.
//!
//! They are read from the object itself, so there is no list that could differ from what is compiled.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::btf::{Types, common_kind, essential, kind, word};

/// What a record asks, from `enum bpf_core_relo_kind` in include/uapi/linux/bpf.h.
mod asks {
    pub const FIELD_FIRST: u32 = 0;
    pub const FIELD_LAST: u32 = 5;
    pub const TYPE_ID_LOCAL: u32 = 6;
    pub const TYPE_EXISTS: u32 = 8;
    pub const TYPE_SIZE: u32 = 9;
    pub const ENUM_FIRST: u32 = 10;
    pub const ENUM_LAST: u32 = 11;
}

/// Name and kind of a type that programs ask about. What the kernel has of the same is what they get.
type Root<'a> = (&'a str, u32);

/// What the programs of each section ask about, as a table in Rust.
pub fn table(object: &[u8]) -> String {
    let mut table = String::from("&[\n");
    for (section, roots) in roots(object).expect("an object with records of CO-RE") {
        writeln!(table, "    ({section:?}, &[").expect("a string");
        for (name, kind) in roots {
            writeln!(table, "        Root {{ name: {name:?}, kind: {kind} }},").expect("a string");
        }
        table.push_str("    ]),\n");
    }
    table + "]\n"
}

/// The types that the programs of each section ask about. None if the object cannot be read.
fn roots(object: &[u8]) -> Option<BTreeMap<&str, BTreeSet<Root<'_>>>> {
    let types = Types::read(section(object, b".BTF")?)?;
    let extra = section(object, b".BTF.ext")?;
    let at = |place| word(extra, place).map(|word| word as usize);
    // The header, whose length this is, has pairs of offset and length: functions, lines, CO-RE records.
    let (header, offset, length) = (at(4)?, at(24)?, at(28)?);
    let mut rest = extra.get(header..)?.get(offset..)?.get(..length)?;
    let record_length = word(rest, 0)? as usize;
    rest = rest.get(4..)?;
    let mut sections: BTreeMap<&str, BTreeSet<Root<'_>>> = BTreeMap::new();
    while !rest.is_empty() {
        let (name, count) = (types.name(word(rest, 0)?)?, word(rest, 4)? as usize);
        let of_section = sections.entry(str::from_utf8(name).ok()?).or_default();
        let records = rest.get(8..)?.get(..count.checked_mul(record_length)?)?;
        for record in records.chunks_exact(record_length) {
            of_section.extend(root(&types, word(record, 4)?, word(record, 12)?)?);
        }
        rest = &rest[8 + records.len()..];
    }
    Some(sections)
}

/// The type that a record asks about, if it does.
fn root<'a>(types: &Types<'a>, number: u32, ask: u32) -> Option<Option<Root<'a>>> {
    let of = types.get(number)?;
    let name = str::from_utf8(essential(types.name(of.name)?)).ok()?;
    let is_plain = matches!(of.kind, kind::INT | kind::STRUCT | kind::UNION | kind::ENUM | kind::ENUM64);
    match ask {
        asks::TYPE_ID_LOCAL => return Some(None),
        asks::FIELD_FIRST..=asks::FIELD_LAST | asks::ENUM_FIRST..=asks::ENUM_LAST => {}
        asks::TYPE_EXISTS | asks::TYPE_SIZE if is_plain => {}
        // The number of a type, or whether all that it points to is as expected.
        _ => panic!("a part of the kernel's types (src/types) cannot answer what is asked about {name:?} ({ask})"),
    }
    (!name.is_empty()).then_some(Some((name, common_kind(of.kind))))
}

/// A section of a 64-bit ELF file.
fn section<'a>(object: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    let half = |at: usize| Some(u16::from_ne_bytes(object.get(at..at + 2)?.try_into().ok()?) as usize);
    let double = |at: usize| {
        let bytes = object.get(at..at.checked_add(8)?)?.try_into().ok()?;
        usize::try_from(u64::from_ne_bytes(bytes)).ok()
    };
    let (headers, length, count, names) = (double(0x28)?, half(0x3a)?, half(0x3c)?, half(0x3e)?);
    let header = |number: usize| headers + number * length;
    let content = |header: usize| object.get(double(header + 0x18)?..)?.get(..double(header + 0x20)?);
    let names = content(header(names))?;
    let is_wanted = |header: &usize| {
        let name = word(object, *header).and_then(|begins| names.get(begins as usize..));
        name.is_some_and(|rest| rest.strip_prefix(wanted).is_some_and(|rest| rest.first() == Some(&0)))
    };
    content((0..count).map(header).find(is_wanted)?)
}
