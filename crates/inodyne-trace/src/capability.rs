//! What tracing needs of a machine: each need with what is lost without it and how to get it.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::thread::CapabilitySet;

use crate::options::Options;
use crate::probe::Probe;
use crate::probes;
use crate::session::Tracer;

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
    pub remedy: String,
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
/// What libbpf asks for the number of CPUs.
const CPUS: &str = "/sys/devices/system/cpu/possible";

/// Everything that is checked, needed or not, in the order in which to fix it. If no need is unmet, the programs are loaded and
/// attached as they are for a run: only that tells whether this kernel accepts them.
pub fn all(options: &Options) -> Vec<Check> {
    let mut checks = needs();
    if checks.iter().all(|check| check.problem.is_none()) {
        checks.extend(features(options));
    }
    checks.push(administration());
    checks
}

/// Checks what no trace can do without.
///
/// # Errors
/// The first need that is not met.
pub fn require_for_tracing() -> Result<(), Check> {
    needs().into_iter().find(|check| check.problem.is_some()).map_or(Ok(()), Err)
}

/// What can be told without loading anything. Whatever is in /sys is only looked for if there is a /sys.
fn needs() -> Vec<Check> {
    let mut needs = vec![capabilities(), initial_user_namespace(), sysfs()];
    if needs.iter().all(|check| check.problem.is_none()) {
        needs.push(btf());
    }
    needs
}

/// The programs, by loading them: each feature with why this kernel refuses it.
fn features(options: &Options) -> Vec<Check> {
    let tracer = match Tracer::new(options) {
        Ok(tracer) => tracer,
        Err(error) => {
            return vec![Check {
                what: "the tracing programs".to_owned(),
                remedy: remedy().to_owned(),
                problem: Some(format!("the kernel refused {}", error.reason())),
                loss: "nothing can be traced",
                is_needed: true,
            }];
        }
    };
    let check = |probe: Box<dyn Probe>| {
        let refused = tracer.refused().iter().find(|refused| refused.feature == probe.feature());
        Check {
            what: probe.feature().to_owned(),
            problem: refused.map(|refused| format!("the kernel refused {}", refused.reason)),
            loss: probe.without(),
            remedy: remedy().to_owned(),
            is_needed: false,
        }
    };
    probes::wanted(options).into_iter().map(check).collect()
}

/// What to do where the kernel refuses a program.
fn remedy() -> &'static str {
    let lockdown = std::fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    if lockdown.contains("[confidentiality]") {
        "boot without lockdown=confidentiality (integrity, as with Secure Boot, does no harm)"
    } else {
        "use a kernel on which it was tried: docs/kernels.md lists them"
    }
}

/// What tracing itself needs.
const TO_TRACE: [(CapabilitySet, &str); 2] = [(CapabilitySet::BPF, "CAP_BPF"), (CapabilitySet::PERFMON, "CAP_PERFMON")];

/// Which of these capabilities this process lacks, if any.
fn lacks(needed: &[(CapabilitySet, &str)]) -> Option<String> {
    let effective = rustix::thread::capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    let missing: Vec<&str> =
        needed.iter().filter(|(set, _)| !effective.contains(*set)).map(|(_, name)| *name).collect();
    (!missing.is_empty()).then(|| format!("this process lacks {}", missing.join(", ")))
}

fn capabilities() -> Check {
    let program = std::env::current_exe().map_or_else(|_| "inodyne".to_owned(), |path| path.display().to_string());
    Check {
        what: "CAP_BPF and CAP_PERFMON".to_owned(),
        problem: lacks(&TO_TRACE),
        loss: "nothing can be traced; 'inodyne show' still works",
        remedy: format!(
            "run as root (sudo inodyne ...), or, for runs in existing directories, once sudo setcap \
             cap_bpf,cap_perfmon=ep {program}; a container needs --privileged"
        ),
        is_needed: true,
    }
}

/// Needed only for places and caches: the lab checks for it itself.
fn administration() -> Check {
    Check {
        what: "CAP_SYS_ADMIN".to_owned(),
        problem: lacks(&[(CapabilitySet::SYS_ADMIN, "CAP_SYS_ADMIN")]),
        loss: "no file system is made (--at ext4) and no cache emptied; runs in existing directories work",
        remedy: "run as root (sudo inodyne ...), or in a container with --privileged".to_owned(),
        is_needed: false,
    }
}

/// In any other user namespace, capabilities apply only to what belongs to it, and programs in the kernel do not.
fn initial_user_namespace() -> Check {
    const INITIAL: u64 = 0xEFFF_FFFD; // PROC_USER_INIT_INO, include/linux/proc_ns.h
    let is_other = std::fs::metadata("/proc/self/ns/user").is_ok_and(|namespace| namespace.ino() != INITIAL);
    Check {
        what: "the machine's own user namespace".to_owned(),
        problem: is_other.then(|| "this is another one, whose root may not trace".to_owned()),
        loss: "nothing can be traced; 'inodyne show' still works",
        remedy:
            "run outside of it, as root of the machine; a container must not be rootless, nor have a user namespace"
                .to_owned(),
        is_needed: true,
    }
}

fn sysfs() -> Check {
    Check {
        what: "/sys".to_owned(),
        problem: (!Path::new(CPUS).exists()).then(|| "it is not mounted, or hidden".to_owned()),
        loss: "the kernel's type information cannot be read, so nothing can be traced",
        remedy: "mount -t sysfs sysfs /sys; a container needs --privileged, or --volume /sys:/sys:ro".to_owned(),
        is_needed: true,
    }
}

fn btf() -> Check {
    Check {
        what: "the kernel's type information (BTF)".to_owned(),
        problem: (!Path::new(VMLINUX).exists()).then(|| format!("{VMLINUX} does not exist")),
        loss: "the programs cannot find the kernel's structures, so nothing can be traced",
        remedy: "use a kernel built with CONFIG_DEBUG_INFO_BTF=y, as the distributions' own are".to_owned(),
        is_needed: true,
    }
}
