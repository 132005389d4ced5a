//! What making places needs of a machine: each need with what is lost without it and how to get it.

use std::{collections::BTreeSet, path::Path};

use crate::{Kind, mkfs};

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

/// Everything that is looked at.
pub fn needs() -> Vec<Need> {
    let mut needs = vec![
        device("/dev/loop-control", "no file system is made but tmpfs", "loop"),
        device("/dev/fuse", "no place fuse or share, no delay=, bandwidth= and iops=", "fuse"),
    ];
    let mut seen = BTreeSet::new();
    for (kind, mkfs) in Kind::ALL.iter().filter_map(|kind| Some((kind, kind.mkfs()?))) {
        if seen.insert(mkfs.program) {
            needs.push(Need {
                what: mkfs.program.into(),
                problem: mkfs::find(mkfs.program).is_none().then(|| "it is not installed".into()),
                loss: format!("no place {kind}"),
                remedy: format!("apt-get install {}", mkfs.package),
            });
        }
    }
    needs
}

fn device(path: &str, loss: &str, module: &str) -> Need {
    Need {
        what: path.into(),
        problem: (!Path::new(path).exists()).then(|| "it does not exist".into()),
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
        assert_eq!(device("/dev/none-such", "x", "y").problem.as_deref(), Some("it does not exist"));
    }
}
