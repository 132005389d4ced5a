//! What a kernel's verifier says about each BPF program of a built inodyne, one after the other.
//!
//! The object is taken out of the executable file, in which the skeleton embeds it whole: so any build can be tried, and
//! nothing here depends on how the tracer is organised.

use std::ffi::{OsStr, c_char};
use std::fmt::Display;
use std::sync::{Mutex, PoisonError};

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{DataSec, Struct, Typedef, Var};
use libbpf_rs::{AsRawLibbpf, ObjectBuilder, OpenObject, PrintLevel, libbpf_sys, set_print};
use serde::{Deserialize, Serialize};

/// include/linux/bpf_verifier.h: only what was counted, and what was wrong.
const LOG_STATS: u32 = 4;
/// The same, and every instruction of the path that led there.
const LOG_ALL: u32 = LOG_STATS | 1;
/// The verifier of kernels before 6.4 gives up where its log does not fit.
const LOG_BYTES: usize = 64 << 20;
const TOO_LARGE: &str = "BPF program is too large";
const EM_BPF: u16 = 247;
const ELF_HEADER: usize = 64;
/// Sizes of maps that are meant to be set before loading. Small: only the verifier is asked.
const ENTRIES: u32 = 4096;

/// A constant that holds the number by which each kernel knows a structure, and that structure.
const NUMBER_OF: (&str, &str) = ("number_of_word", "timespec64");

/// What came of one program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Its name.
    pub program: String,
    /// Its section, which says what it attaches to.
    pub section: String,
    /// How long it is, in instructions.
    pub instructions: usize,
    /// How many instructions the verifier looked at; `None` where the kernel did not come that far.
    pub verified: Option<u64>,
    /// Why it was refused.
    pub refused: Option<Refusal>,
}

/// Why a program was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// In one line.
    pub reason: String,
    /// What libbpf said.
    pub said: String,
    /// The verifier's log: of the path that led to the refusal.
    pub log: String,
}

/// The BPF objects in an executable file.
#[must_use]
pub fn objects(file: &[u8]) -> Vec<&[u8]> {
    let magic = b"\x7fELF\x02\x01\x01";
    let starts = (0..file.len().saturating_sub(ELF_HEADER)).filter(|at| file[*at..].starts_with(magic));
    starts.filter_map(|at| object(&file[at..])).collect()
}

/// The object that begins here, if one does: it reaches to the end of its table of sections.
fn object(bytes: &[u8]) -> Option<&[u8]> {
    let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    if half(18) != EM_BPF {
        return None;
    }
    let table = u64::from_le_bytes(bytes[40..48].try_into().ok()?);
    let (size, count) = (u64::from(half(58)), u64::from(half(60)));
    bytes.get(..usize::try_from(table + size * count).ok()?)
}

static HEARD: Mutex<String> = Mutex::new(String::new());

fn keep(_: PrintLevel, message: String) {
    HEARD.lock().unwrap_or_else(PoisonError::into_inner).push_str(&message);
}

/// Loads each program of the object alone, with these constants set.
///
/// # Errors
/// It is no BPF object.
pub fn verdicts(object: &[u8], constants: &[(String, u64)]) -> Result<Vec<Verdict>, libbpf_rs::Error> {
    set_print(Some((PrintLevel::Warn, keep)));
    let kernel = Btf::from_vmlinux().ok();
    let number = kernel.as_ref().and_then(|all| Some(all.type_by_name::<Struct<'_>>(NUMBER_OF.1)?.type_id()));
    let number = number.map(|number| (NUMBER_OF.0.to_owned(), u32::from(number).into()));
    let constants: &Vec<(String, u64)> = &number.into_iter().chain(constants.iter().cloned()).collect();
    let names: Vec<(String, String, usize)> = open(object, constants)?
        .progs()
        .map(|program| (text(program.name()), text(program.section()), program.insn_cnt()))
        .filter(|(_, section, _)| is_there(section, kernel.as_ref()))
        .collect();
    names
        .into_iter()
        .map(|(program, section, instructions)| {
            let (mut verified, mut refused) = load(object, constants, &program, LOG_STATS)?;
            // The path to a program that is too large is as long as the verifier's patience, and says nothing.
            if refused.as_ref().is_some_and(|refusal| !refusal.log.contains(TOO_LARGE)) {
                (verified, refused) = load(object, constants, &program, LOG_ALL)?;
            }
            Ok(Verdict { program, section, instructions, verified, refused })
        })
        .collect()
}

/// Whether this kernel has the tracepoint of a program with types. inodyne leaves out those of newer kernels.
fn is_there(section: &str, kernel: Option<&Btf<'_>>) -> bool {
    let Some(tracepoint) = section.strip_prefix("tp_btf/") else { return true };
    let kind = format!("btf_trace_{tracepoint}");
    kernel.is_none_or(|all| all.type_by_name::<Typedef<'_>>(&kind).is_some())
}

fn text(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}

fn open(object: &[u8], constants: &[(String, u64)]) -> Result<OpenObject, libbpf_rs::Error> {
    let offsets = offsets(object)?;
    let mut open = ObjectBuilder::default().open_memory(object)?;
    for mut map in open.maps_mut() {
        let is_data = map.name().to_string_lossy().contains('.');
        if !is_data && map.max_entries() <= 1 {
            map.set_max_entries(ENTRIES)?;
        }
        if !map.name().to_string_lossy().ends_with(".rodata") {
            continue;
        }
        let Some(bytes) = map.initial_value_mut() else { continue };
        for (name, value) in constants {
            let Some((_, at, size)) = offsets.iter().find(|(known, ..)| known == name) else { continue };
            bytes[*at..at + size].copy_from_slice(&value.to_le_bytes()[..*size]);
        }
    }
    Ok(open)
}

/// Where the constants are: name, offset, size.
fn offsets(object: &[u8]) -> Result<Vec<(String, usize, usize)>, libbpf_rs::Error> {
    let Some(btf) = Btf::from_raw("inodyne", object)? else { return Ok(Vec::new()) };
    let Some(section) = btf.type_by_name::<DataSec<'_>>(".rodata") else { return Ok(Vec::new()) };
    let of = |var: &libbpf_rs::btf::types::VarSecInfo| {
        let name = btf.type_by_id::<Var<'_>>(var.ty).and_then(|var| var.name().map(text));
        name.map(|name| (name, var.offset as usize, var.size))
    };
    Ok(section.iter().filter_map(|var| of(&var)).collect())
}

fn load(
    object: &[u8],
    constants: &[(String, u64)],
    name: &str,
    level: u32,
) -> Result<(Option<u64>, Option<Refusal>), libbpf_rs::Error> {
    let mut open = open(object, constants)?;
    let mut log = vec![0u8; LOG_BYTES];
    for mut program in open.progs_mut() {
        let wanted = program.name() == name;
        program.set_autoload(wanted);
        if wanted {
            program.set_log_level(level);
            let raw = program.as_libbpf_object().as_ptr();
            // SAFETY: the buffer outlives the load below, after which the object is gone.
            unsafe { libbpf_sys::bpf_program__set_log_buf(raw, log.as_mut_ptr().cast::<c_char>(), log.len() as _) };
        }
    }
    HEARD.lock().unwrap_or_else(PoisonError::into_inner).clear();
    let loaded = open.load();
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    let log = String::from_utf8_lossy(&log[..end]).into_owned();
    let said = HEARD.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let refused = loaded.err().map(|error| Refusal { reason: reason(&error, &log, &said), said, log: log.clone() });
    Ok((verified(&log), refused))
}

/// From `processed 44394 insns (limit 1000000) max_states_per_insn …`.
fn verified(log: &str) -> Option<u64> {
    let line = log.lines().rev().find_map(|line| line.strip_prefix("processed "))?;
    line.split(' ').next()?.parse().ok()
}

/// The last thing that the verifier said before its statistics; else what libbpf said first.
fn reason(error: &dyn Display, log: &str, said: &str) -> String {
    let is_statistic = |line: &&str| {
        ["processed ", "verification time", "stack depth", "max_states", "insns processed"]
            .iter()
            .any(|p| line.starts_with(p))
    };
    let last = log.lines().map(str::trim).rfind(|line| !line.is_empty() && !is_statistic(line));
    let first = said.lines().map(str::trim).find(|line| !line.is_empty());
    let why = last.or(first.map(|line| line.trim_start_matches("libbpf: "))).unwrap_or("no reason given");
    format!("{error}: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_found_whole_inside_of_another_file() {
        let mut object = b"\x7fELF\x02\x01\x01".to_vec();
        object.resize(200, 7);
        object[18..20].copy_from_slice(&EM_BPF.to_le_bytes());
        object[40..48].copy_from_slice(&72u64.to_le_bytes());
        object[58..60].copy_from_slice(&64u16.to_le_bytes());
        object[60..62].copy_from_slice(&2u16.to_le_bytes());
        let file = [
            &b"\x7fELF\x02\x01\x01 another machine's, which is not BPF                              "[..],
            &object,
            b"rest",
        ]
        .concat();
        assert_eq!(objects(&file), [&object[..]]);
    }

    #[test]
    fn the_reason_is_what_the_verifier_said_last() {
        let log = "0: R1=ctx\nmath between map_value pointer and register with unbounded min value is not allowed\n\
            processed 512 insns (limit 1000000) max_states_per_insn 4\n";
        assert_eq!(verified(log), Some(512));
        assert!(reason(&"EINVAL", log, "libbpf: prog").ends_with("unbounded min value is not allowed"));
        assert_eq!(reason(&"EPERM", "", "libbpf: map 'x': failed to create"), "EPERM: map 'x': failed to create");
    }
}
