//! Programs that are loaded beside libbpf, which loads one after the other. The time to load them is the verifier's, and the kernel verifies
//! two programs at a time if it has two CPUs.
//!
//! These are the programs at BTF tracepoints, about half of all that there is to verify: everything that the kernel needs to be told about
//! them is known. If it refuses one, it does not say why here: then all programs are loaded by libbpf, which asks for the reason.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;

use libbpf_rs::skel::OpenSkel;
use libbpf_rs::{AsRawLibbpf, libbpf_sys};

use crate::skeleton::OpenInodyneSkel;

/// What the sections of these programs begin with; the tracepoint follows.
pub const SECTION: &str = "tp_btf/";

const LICENSE: &CStr = c"Dual BSD/GPL"; // as in bpf/inodyne.bpf.c

/// Loaded programs by name.
pub type LoadedBeside = BTreeMap<OsString, OwnedFd>;

/// A program as it is handed to the kernel.
pub struct Beside {
    name: CString,
    instructions: Vec<libbpf_sys::bpf_insn>,
    functions: Vec<libbpf_sys::bpf_func_info>,
    flags: u32,
    /// The types of the object.
    types: RawFd,
    /// The kernel's number of the tracepoint's type.
    tracepoint: u32,
}

impl Beside {
    /// From an object whose programs libbpf has prepared, takes those whose tracepoint's number is known, so that libbpf does not load
    /// them.
    pub fn take(open: &mut OpenInodyneSkel<'_>, tracepoints: &BTreeMap<Vec<u8>, u32>) -> Vec<Beside> {
        // SAFETY: the object is open.
        let types = unsafe { libbpf_sys::bpf_object__btf_fd(open.open_object().as_libbpf_object().as_ptr()) };
        let mut taken = Vec::new();
        for mut program in open.open_object_mut().progs_mut().filter(|program| types >= 0 && program.autoload()) {
            let section = program.section().as_bytes();
            let tracepoint = section.strip_prefix(SECTION.as_bytes()).and_then(|name| tracepoints.get(name));
            let (Some(tracepoint), Ok(name)) = (tracepoint, CString::new(program.name().as_bytes())) else { continue };
            let raw = program.as_libbpf_object().as_ptr();
            // SAFETY: the program is of an open object.
            let (functions, count, flags) = unsafe {
                let functions = libbpf_sys::bpf_program__func_info(raw);
                (functions, libbpf_sys::bpf_program__func_info_cnt(raw), libbpf_sys::bpf_program__flags(raw))
            };
            if functions.is_null() {
                continue;
            }
            // SAFETY: there are that many, and libbpf does not change them before the object is loaded.
            let functions = unsafe { std::slice::from_raw_parts(functions, count as usize) }.to_vec();
            let instructions = program.insns().to_vec();
            program.set_autoload(false);
            taken.push(Beside { name, instructions, functions, flags, types, tracepoint: *tracepoint });
        }
        taken
    }

    /// Loads them, one after the other.
    ///
    /// # Errors
    /// The kernel refuses one.
    pub fn load_all(programs: &[Beside]) -> io::Result<LoadedBeside> {
        let name = |program: &Beside| OsStr::from_bytes(program.name.as_bytes()).to_owned();
        programs.iter().map(|program| Ok((name(program), program.load()?))).collect()
    }

    fn load(&self) -> io::Result<OwnedFd> {
        let mut options = libbpf_sys::bpf_prog_load_opts {
            sz: size_of::<libbpf_sys::bpf_prog_load_opts>() as _,
            expected_attach_type: libbpf_sys::BPF_TRACE_RAW_TP,
            attach_btf_id: self.tracepoint,
            prog_btf_fd: self.types as u32,
            prog_flags: self.flags,
            func_info: self.functions.as_ptr().cast(),
            func_info_cnt: self.functions.len() as u32,
            func_info_rec_size: size_of::<libbpf_sys::bpf_func_info>() as u32,
            ..Default::default()
        };
        let (name, license) = (self.name.as_ptr(), LICENSE.as_ptr());
        let (instructions, count) = (self.instructions.as_ptr(), self.instructions.len());
        let kind = libbpf_sys::BPF_PROG_TYPE_TRACING;
        // SAFETY: all of it outlives the call, and is as long as stated.
        let loaded = unsafe { libbpf_sys::bpf_prog_load(kind, name, license, instructions, count as _, &mut options) };
        if loaded < 0 {
            return Err(io::Error::from_raw_os_error(-loaded));
        }
        // SAFETY: a new descriptor that nobody else owns.
        Ok(unsafe { OwnedFd::from_raw_fd(loaded) })
    }
}
