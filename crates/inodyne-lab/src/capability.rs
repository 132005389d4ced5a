//! What making places needs of a machine: each need with what is lost without it and how to get it.

use std::{fs::File, io::ErrorKind};

use crate::{Kind, mkfs, mount};

/// One need. Existing directories need none of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// What is needed.
    pub what: String,
    /// Why it is not there; none where it is.
    pub problem: Option<String>,
    /// What cannot be done without it.
    pub loss: String,
    /// How to get it.
    pub remedy: String,
}

/// Everything that is checked.
pub fn needs() -> Vec<Need> {
    let mut needs = vec![
        device("/dev/loop-control", "no file system is made but tmpfs", "loop"),
        device("/dev/fuse", "no place fuse or share, no delay=, bandwidth= and iops=", "fuse"),
    ];
    let made = Kind::ALL.into_iter().filter(|kind| kind.has_device() || *kind == Kind::Overlay);
    needs.extend(made.map(|kind| of_kind(kind, mount::is_known(kind.name()))));
    needs
}

/// What a kind needs of the kernel, or, where it has that, of what is installed.
fn of_kind(kind: Kind, is_known: bool) -> Need {
    let loss = format!("no place {kind}");
    match kind.mkfs().filter(|_| is_known) {
        Some(mkfs) => Need {
            what: mkfs.program.into(),
            problem: mkfs::find(mkfs.program).is_none().then(|| "it is not installed".into()),
            loss,
            remedy: format!("apt-get install {}", mkfs.package),
        },
        None => Need {
            what: kind.name().into(),
            problem: (!is_known).then(|| "this kernel has none".into()),
            loss,
            remedy: format!("load its module (modprobe {kind}) or use another kernel"),
        },
    }
}

fn device(path: &str, loss: &str, module: &str) -> Need {
    // It may exist without the module that answers. Not being allowed to open it is another matter.
    let problem = match File::options().read(true).write(true).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Some("it does not exist".into()),
        Err(error) if error.raw_os_error() != Some(libc::EACCES) => Some(error.to_string()),
        _ => None,
    };
    Need {
        what: path.into(),
        problem,
        loss: loss.into(),
        remedy: format!("load the kernel module (modprobe {module}); a container needs --device {path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_need_says_what_it_is_for_and_what_is_missing_is_named() {
        let needs = needs();
        assert!(needs.iter().any(|need| need.what == "mkfs.btrfs" && need.loss == "no place btrfs"));
        assert!(needs.iter().filter(|need| need.what == "/dev/fuse").count() == 1);
        assert!(needs.iter().any(|need| need.what == "overlay"));
        assert_eq!(device("/dev/none-such", "x", "y").problem.as_deref(), Some("it does not exist"));
    }
    #[test]
    fn a_program_is_no_use_without_the_kernels_part() {
        let need = of_kind(Kind::Xfs, false);
        assert_eq!((need.what.as_str(), need.problem.as_deref()), ("xfs", Some("this kernel has none")));
        assert_eq!(of_kind(Kind::Xfs, true).what, "mkfs.xfs");
        assert!(!mount::is_known("none-such") && mount::is_known("tmpfs"));
    }
}
