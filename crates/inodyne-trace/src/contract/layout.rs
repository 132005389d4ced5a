//! Every structure of the contract as the compiler laid it out, compared with a file: a change to one is a change to that file.
//!
//! Structures are found from what holds them: the maps and the global variables of the object. `INODYNE_UPDATE=1 cargo test -p
//! inodyne-trace layout` rewrites the file. `scripts/swap-fields` hands other objects to this test through `INODYNE_OBJECT`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write;
use std::path::PathBuf;

use inodyne_model::loss::Loss;
use libbpf_rs::btf::types::{Array, DataSec, Enum, Int, IntEncoding, MemberAttr, Ptr, Struct, Var};
use libbpf_rs::btf::{Btf, BtfType};
use libbpf_rs::{HasSize, ReferencesType};

const SNAPSHOT: &str = include_str!("../contract.snapshot");

/// A field of a structure.
#[derive(Debug, Clone)]
pub struct Field {
    pub name: String,
    pub offset: usize,
    pub size: usize,
    /// `u64`, `u8[16]`, `work_part[129]`.
    pub kind: String,
}

/// The contract: structures with their fields, and enums with their values, by name.
#[derive(Default)]
pub struct Contract {
    pub structures: BTreeMap<String, (usize, Vec<Field>)>,
    pub enums: BTreeMap<String, Vec<(String, i64)>>,
}

impl Contract {
    /// From the object that this build made, or the one that is handed in.
    pub fn read() -> Contract {
        let built = concat!(env!("OUT_DIR"), "/inodyne.bpf.o");
        let object = std::env::var_os("INODYNE_OBJECT").map_or_else(|| PathBuf::from(built), PathBuf::from);
        let btf = Btf::from_path(&object).expect("the object has BTF");
        let mut contract = Contract::default();
        for section in [".maps", ".bss", ".rodata"] {
            let section: DataSec<'_> = btf.type_by_name(section).expect("a section of variables");
            for variable in section.iter() {
                let variable: Var<'_> = btf.type_by_id(variable.ty).expect("a section holds variables");
                contract.take(&btf, variable.referenced_type());
            }
        }
        contract
    }

    fn take(&mut self, btf: &Btf<'_>, kind: BtfType<'_>) {
        let kind = kind.skip_mods_and_typedefs();
        let name = text(kind.name());
        if let Ok(pointer) = Ptr::try_from(kind) {
            self.take(btf, pointer.referenced_type());
        } else if let Ok(array) = Array::try_from(kind) {
            self.take(btf, array.contained_type());
        } else if let Ok(values) = Enum::try_from(kind) {
            let values = values.iter().map(|value| (text(value.name), value.value)).collect();
            self.enums.insert(name, values);
        } else if let Ok(structure) = Struct::try_from(kind) {
            let mut fields = Vec::new();
            for member in structure.iter() {
                let of: BtfType<'_> = btf.type_by_id(member.ty).expect("a member has a type");
                self.take(btf, of);
                let MemberAttr::Normal { offset } = member.attr else { panic!("{name} has a bit field") };
                let (kind, size) = described(of);
                fields.push(Field { name: text(member.name), offset: offset as usize / 8, size, kind });
            }
            // The definition of a map is a structure without a name.
            if !name.is_empty() {
                self.structures.insert(name, (structure.size(), fields));
            }
        }
    }

    /// In the format of the file.
    fn written(&self) -> String {
        let mut text = String::new();
        for (name, (size, fields)) in &self.structures {
            writeln!(text, "struct {name} {size}").expect("a string takes everything");
            for Field { name, offset, kind, .. } in fields {
                writeln!(text, "  {offset:5} {kind} {name}").expect("a string takes everything");
            }
        }
        for (name, values) in &self.enums {
            writeln!(text, "enum {name}").expect("a string takes everything");
            for (name, value) in values {
                writeln!(text, "  {name} = {value}").expect("a string takes everything");
            }
        }
        text
    }
}

fn text(name: Option<&OsStr>) -> String {
    name.unwrap_or_default().to_string_lossy().into_owned()
}

/// A type in words, and its size.
fn described(kind: BtfType<'_>) -> (String, usize) {
    let kind = kind.skip_mods_and_typedefs();
    if let Ok(int) = Int::try_from(kind) {
        let sign = if matches!(int.encoding, IntEncoding::Signed | IntEncoding::Char) { 'i' } else { 'u' };
        (format!("{sign}{}", int.bits), usize::from(int.bits) / 8)
    } else if let Ok(array) = Array::try_from(kind) {
        let (of, size) = described(array.contained_type());
        (format!("{of}[{}]", array.capacity()), size * array.capacity())
    } else if let Ok(structure) = Struct::try_from(kind) {
        (text(kind.name()), structure.size())
    } else {
        ("other".to_owned(), 0)
    }
}

#[test]
fn every_structure_lies_as_it_was_agreed() {
    let written = Contract::read().written();
    if std::env::var_os("INODYNE_UPDATE").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/contract.snapshot");
        return std::fs::write(path, written).expect("the snapshot can be written");
    }
    let changed: Vec<String> = difference(SNAPSHOT, &written);
    assert!(
        changed.is_empty(),
        "the structures are not those of src/contract.snapshot; look at what changed, and write it anew if it is meant:\n{}",
        changed.join("\n")
    );
}

/// Where `scripts/swap-fields` looks for them.
#[test]
fn every_structure_is_written_in_a_header_of_the_contract() {
    let sources = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"));
    let probes = crate::probes::NAMES.iter().map(|name| sources.join("probes").join(name).join("intf.h"));
    let headers = probes.filter_map(|header| std::fs::read_to_string(header).ok());
    let shared = std::fs::read_to_string(sources.join("bpf/intf.h")).expect("the header of all probes");
    let text: String = headers.chain([shared]).collect();
    let contract = Contract::read();
    let elsewhere = contract.structures.keys().filter(|name| !text.contains(&format!("struct {name} {{")));
    assert_eq!(elsewhere.collect::<Vec<_>>(), Vec::<&String>::new());
}

fn difference(before: &str, now: &str) -> Vec<String> {
    let (before, now): (Vec<&str>, Vec<&str>) = (before.lines().collect(), now.lines().collect());
    let longest = before.len().max(now.len());
    let line = |of: &[&str], at: usize| of.get(at).copied().unwrap_or_default().to_owned();
    let both = (0..longest).map(|at| (line(&before, at), line(&now, at)));
    both.filter(|(a, b)| a != b).map(|(a, b)| format!("- {a}\n+ {b}")).collect()
}

/// What `structures!` promises of all of them.
#[test]
fn only_integers() {
    let contract = Contract::read();
    let is_integer = |kind: &str| kind.starts_with(['u', 'i']) && kind[1..].parse::<u32>().is_ok();
    for (structure, (_, fields)) in &contract.structures {
        for Field { name, kind, .. } in fields {
            let element = kind.split('[').next().expect("the first part is there");
            assert!(is_integer(element) || contract.structures.contains_key(element), "{structure}.{name} is {kind}");
        }
    }
}

#[test]
fn losses_are_those_of_the_model() {
    let contract = Contract::read();
    let here = contract.enums["loss"].iter().map(|(name, _)| name.clone());
    let named = Loss::ALL.iter().map(|loss| format!("LOST_{}", loss.key().to_uppercase()));
    assert!(here.eq(named.chain(["LOSSES".to_owned()])), "{:?}", contract.enums["loss"]);
}
