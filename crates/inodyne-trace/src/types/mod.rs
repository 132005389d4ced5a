//! The kernel's types as libbpf gets them: not all of them, but those that the programs ask about.
//!
//! libbpf searches all types of a kernel for each one that programs ask about, which was a sixth of the time that a trace takes to begin.
//! Here they are searched once, for all at the same time, and what was found is given to libbpf as a separate file
//! (`btf_custom_path`). It answers every question as the whole does. If any of this cannot be done, the
//! kernel's own file is used: that only takes longer.
//!
//! In such a file types have other numbers than in the kernel. So no program may ask for a number
//! (`bpf_core_type_id_kernel`): the one that is needed is passed to them as a constant.
//!
//! Which types these are is read from the compiled programs (`build/relocations.rs`).
//!
//! ```text
//! btf      types as they lie in a file
//! content  such a file of the kernel's
//! part     a file of only these
//! ```

mod btf;
mod content;
mod part;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{MemfdFlags, memfd_create};

use btf::Types;
use content::Content;
use part::{Found, Root, Whole};

/// What the programs of each section of the object ask about.
const ASKED: &[(&str, &[Root])] = include!(concat!(env!("OUT_DIR"), "/types.rs"));

/// Where a kernel shows its types and those of its modules.
const SHOWN: &str = "/sys/kernel/btf";
const KERNEL: &str = "vmlinux";

/// The types that programs ask about, in an anonymous file, which is empty at first.
pub struct PartOfTypes {
    file: File,
}

impl PartOfTypes {
    /// An empty one. None if it cannot be created.
    pub fn empty() -> Option<PartOfTypes> {
        Some(PartOfTypes { file: memfd_create("types", MemfdFlags::CLOEXEC).ok()?.into() })
    }

    /// Where this process finds it.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }

    /// Writes into it what the programs ask about, except for those of the `idle` sections, which are not loaded. Returns the kernel's numbers of
    /// other types: the structure of that name, and the tracepoint that each section with this prefix names. None if any of it
    /// is not possible.
    pub fn fill(&mut self, idle: &BTreeSet<&OsStr>, structure: &str, prefix: &str) -> Option<Known> {
        let loaded = || ASKED.iter().filter(|(section, _)| !idle.contains(OsStr::new(section)));
        let roots: BTreeSet<Root> = loaded().flat_map(|(_, roots)| *roots).copied().collect();
        let kernel = Types::read(of_kernel()?)?;
        let found = Found::look(&kernel, &roots)?;
        let modules = if found.missing.is_empty() { Vec::new() } else { of_modules()? };
        let modules: Vec<Types<'_>> = modules.iter().map(|bytes| kernel.read_more(bytes)).collect::<Option<_>>()?;
        let part = found.part(&Whole { kernel: &kernel, modules: &modules })?;
        self.file.write_all(&part).ok()?;
        let wanted = loaded().filter_map(|(section, _)| section.strip_prefix(prefix)).map(str::as_bytes).collect();
        Some(Known { structure: found.number_of(structure), tracepoints: tracepoints(&kernel, &wanted) })
    }
}

/// Numbers by which a kernel knows some of its types.
#[derive(Debug, PartialEq, Eq)]
pub struct Known {
    /// Of a structure; none where it has none, or several of that name.
    pub structure: Option<u32>,
    /// Of tracepoints by name.
    pub tracepoints: BTreeMap<Vec<u8>, u32>,
}

/// The numbers of the types by which a kernel's tracepoints call their programs.
fn tracepoints(kernel: &Types<'_>, wanted: &BTreeSet<&[u8]>) -> BTreeMap<Vec<u8>, u32> {
    let mut found = BTreeMap::new();
    for (number, of) in kernel.all().filter(|(_, of)| of.kind == btf::kind::TYPEDEF) {
        let name = kernel.name(of.name).and_then(|name| name.strip_prefix(b"btf_trace_"));
        if let Some(name) = name.filter(|name| wanted.contains(name)) {
            found.entry(name.to_vec()).or_insert(number);
        }
    }
    found
}

/// All types of this kernel as it shows them. None where it does not.
pub fn of_kernel() -> Option<&'static [u8]> {
    static KNOWN: OnceLock<Option<Content>> = OnceLock::new();
    KNOWN.get_or_init(|| Content::of(&Path::new(SHOWN).join(KERNEL)).ok()).as_deref()
}

/// All names that occur in them, each ended by a zero.
pub fn names_of_kernel() -> Option<&'static [u8]> {
    btf::names(of_kernel()?)
}

/// The types of all modules that are loaded.
fn of_modules() -> Option<Vec<Content>> {
    let names = fs::read_dir(SHOWN).ok()?.map(|entry| entry.ok().map(|entry| entry.file_name()));
    let modules = names.filter(|name| name.as_ref().is_none_or(|name| name != KERNEL));
    modules.map(|name| Content::of(&Path::new(SHOWN).join(name?)).ok()).collect()
}

/// The number by which the kernel knows a structure, found the slow way. None where it has none of that name.
pub fn number_of(name: &str) -> Option<u32> {
    let all = libbpf_rs::btf::Btf::from_vmlinux().ok()?;
    Some(all.type_by_name::<libbpf_rs::btf::types::Struct<'_>>(name)?.type_id().into())
}

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;

    use libbpf_rs::skel::{OpenSkel, SkelBuilder};
    use libbpf_rs::{AsRawLibbpf, libbpf_sys};

    use super::*;
    use crate::skeleton::InodyneSkelBuilder;

    fn filled() -> PartOfTypes {
        let mut part = PartOfTypes::empty().expect("a file without a name");
        part.fill(&BTreeSet::new(), "timespec64", "tp_btf/").expect("a kernel with type information");
        part
    }

    /// All programs as they are once libbpf has filled in what it was told about the kernel's types: by name, each instruction as bytes.
    fn told(types: Option<&Path>) -> Vec<(String, Vec<[u8; 8]>)> {
        assert!(rustix::process::geteuid().is_root(), "this test prepares programs: run it as root");
        let mut place = MaybeUninit::uninit();
        let mut builder = InodyneSkelBuilder::default();
        if let Some(path) = types {
            builder.object_builder_mut().btf_custom_path(path).expect("a path");
        }
        let mut open = builder.open(&mut place).expect("an object");
        // Maps have other numbers each time.
        open.open_object_mut().maps_mut().for_each(|mut map| map.set_autocreate(false).expect("a map"));
        // SAFETY: the object is open, and is not loaded later.
        let failed = unsafe { libbpf_sys::bpf_object__prepare(open.open_object_mut().as_libbpf_object().as_ptr()) };
        assert_eq!(failed, 0, "the programs cannot be prepared");
        let bytes = |instruction: &libbpf_sys::bpf_insn| {
            // SAFETY: eight bytes without padding.
            unsafe { std::mem::transmute_copy::<libbpf_sys::bpf_insn, [u8; 8]>(instruction) }
        };
        let programs = open.open_object().progs();
        let told = programs.map(|program| {
            (program.name().to_string_lossy().into_owned(), program.insns().iter().map(bytes).collect())
        });
        told.collect()
    }

    /// The programs in which something differs.
    fn differing(one: &[(String, Vec<[u8; 8]>)], other: &[(String, Vec<[u8; 8]>)]) -> Vec<String> {
        let pairs = one.iter().zip(other);
        pairs.filter(|(one, other)| one != other).map(|((name, _), _)| name.clone()).collect()
    }

    #[test]
    fn programs_are_told_the_same_of_a_part_as_of_the_whole() {
        let (whole, part) = (told(None), told(Some(&filled().path())));
        assert!(whole.len() > 40 && whole.len() == part.len());
        assert_eq!(differing(&whole, &part), [""; 0]);
    }

    #[test]
    fn a_part_in_which_one_member_lies_elsewhere_is_noticed() {
        let right = filled();
        let read = fs::read(right.path()).expect("what was written");
        let types = Types::read(&read).expect("what was written");
        let structures = types.all().map(|(_, of)| of).filter(|of| of.kind == btf::kind::STRUCT);
        let mut named = structures.filter(|of| types.name(of.name) == Some(b"qstr".as_slice()));
        let place = named.next().expect("the structure of a name").bytes.as_ptr() as usize - read.as_ptr() as usize;
        // The offset of its last member, in bits.
        let mut bytes = read.clone();
        let members = u32::from_ne_bytes(bytes[place + 4..place + 8].try_into().unwrap()) as usize & 0xffff;
        bytes[place + 12 * members + 8] += 64;
        let wrong = tempfile::NamedTempFile::new().expect("a temporary file");
        fs::write(wrong.path(), bytes).expect("a temporary file");
        assert_ne!(differing(&told(Some(&right.path())), &told(Some(wrong.path()))), [""; 0]);
    }

    #[test]
    fn the_number_of_a_structure_is_the_kernels() {
        let mut part = PartOfTypes::empty().expect("a file without a name");
        let idle = BTreeSet::from([OsStr::new("raw_tp/sys_enter")]);
        let known = part.fill(&idle, "timespec64", "tp_btf/").expect("a kernel with type information");
        assert_eq!(known.structure, number_of("timespec64"));
        assert!(number_of("timespec64").is_some() && number_of("no_such_structure").is_none());
    }

    #[test]
    fn the_numbers_of_tracepoints_are_the_kernels() {
        let mut part = PartOfTypes::empty().expect("a file without a name");
        let known = part.fill(&BTreeSet::new(), "timespec64", "tp_btf/").expect("a kernel with type information");
        assert!(known.tracepoints.len() > 4);
        for (name, number) in known.tracepoints {
            let name = std::ffi::CString::new(name).expect("a name");
            // SAFETY: a string that ends.
            let right = unsafe { libbpf_sys::libbpf_find_vmlinux_btf_id(name.as_ptr(), libbpf_sys::BPF_TRACE_RAW_TP) };
            assert_eq!(i64::from(number), i64::from(right), "{name:?}");
        }
    }

    #[test]
    fn nothing_is_asked_about_programs_that_are_not_loaded() {
        let length = |idle: &[&str]| {
            let mut part = PartOfTypes::empty().expect("a file without a name");
            let idle = idle.iter().map(OsStr::new).collect();
            part.fill(&idle, "timespec64", "tp_btf/").expect("a kernel with type information");
            part.file.metadata().expect("a file").len()
        };
        let of_one: Vec<&str> =
            ASKED.iter().map(|(section, _)| *section).filter(|section| *section != ".text").collect();
        assert!(0 < length(&of_one) && length(&of_one) < length(&[]));
    }
}
