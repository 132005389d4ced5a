//! What tracing needs of a machine: each need with what is lost without it and how to get it.

use std::fmt;
use std::path::Path;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Typedef;
use rustix::thread::CapabilitySet;

use crate::probe::{Point, Program};
use crate::probes;

/// One need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What is needed.
    pub what: String,
    /// Why it is not there; none where it is.
    pub problem: Option<String>,
    /// What inodyne cannot do without it.
    pub loss: &'static str,
    /// How to get it.
    pub remedy: &'static str,
    /// Whether nothing can be traced without it.
    pub is_needed: bool,
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = self.problem.as_deref().unwrap_or("is there");
        write!(f, "tracing needs {}: {problem}; {}", self.what, self.remedy)
    }
}

const VMLINUX: &str = "/sys/kernel/btf/vmlinux";

/// Everything that is looked at, needed or not, in the order in which to mend it.
pub fn all() -> Vec<Check> {
    let mut checks = vec![capabilities(), btf()];
    checks.extend(tracepoints());
    checks.push(symbols());
    checks
}

/// Checks what no trace can do without.
///
/// # Errors
/// The first need that is not met.
pub fn require_for_tracing() -> Result<(), Check> {
    let needs = [capabilities(), btf()];
    needs.into_iter().find(|check| check.problem.is_some()).map_or(Ok(()), Err)
}

fn capabilities() -> Check {
    let needed = [
        (CapabilitySet::BPF, "CAP_BPF"),
        (CapabilitySet::PERFMON, "CAP_PERFMON"),
        (CapabilitySet::SYS_ADMIN, "CAP_SYS_ADMIN"),
    ];
    let effective = rustix::thread::capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    let missing: Vec<&str> =
        needed.iter().filter(|(set, _)| !effective.contains(*set)).map(|(_, name)| *name).collect();
    Check {
        what: "CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN".to_owned(),
        problem: (!missing.is_empty()).then(|| format!("this process lacks {}", missing.join(", "))),
        loss: "nothing can be traced and no file system made; 'inodyne show' still works",
        remedy: "run as root (sudo inodyne ...), or in a container with --privileged",
        is_needed: true,
    }
}

fn btf() -> Check {
    Check {
        what: "the kernel's type information (BTF)".to_owned(),
        problem: (!Path::new(VMLINUX).exists()).then(|| format!("{VMLINUX} does not exist")),
        loss: "the programs cannot find the kernel's structures, so nothing can be traced",
        remedy: "use a kernel built with CONFIG_DEBUG_INFO_BTF=y, as the distributions' own are",
        is_needed: true,
    }
}

fn tracepoints() -> Vec<Check> {
    let btf = Btf::from_path(VMLINUX).ok();
    // A tracepoint that programs can attach to has a type of this name (kernel/trace/bpf_trace.c).
    let has = |name: &str| {
        btf.as_ref().is_some_and(|b| b.type_by_name::<Typedef<'_>>(&format!("btf_trace_{name}")).is_some())
    };
    let check = |(name, loss): (&str, &'static str)| Check {
        what: format!("the tracepoint {name}"),
        problem: (!has(name)).then(|| "this kernel has none".to_owned()),
        loss,
        remedy: "use a kernel with CONFIG_TRACEPOINTS=y and CONFIG_FTRACE_SYSCALLS=y",
        is_needed: true,
    };
    let tracepoint = |program: &Program| match program.point {
        Point::Tracepoint(name) => Some(check((name, program.without))),
        Point::CpuClock => None,
    };
    probes::all().iter().flat_map(|probe| probe.programs()).filter_map(tracepoint).collect()
}

fn symbols() -> Check {
    let text = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let visible = text.lines().take(64).any(|line| !line.starts_with("0000000000000000"));
    Check {
        what: "the kernel's symbol table".to_owned(),
        problem: (!visible).then(|| "/proc/kallsyms hides its addresses".to_owned()),
        loss: "waits cannot be named: all of them are 'other'",
        remedy: "run as root, with the sysctl kernel.kptr_restrict at 0 or 1",
        is_needed: false,
    }
}
