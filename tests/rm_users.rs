//! `inodyne rm` against GNU rm where permissions and protections matter: the same script as an ordinary user or as root,
//! then the same questions, the same messages and the same files left.

mod support;

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use tempfile::TempDir;

use support::programs::copy_for_everybody;

/// `inodyne` where everybody may run it.
struct Program {
    _place: TempDir,
    path: String,
}

impl Program {
    fn new() -> Self {
        let place = tempfile::tempdir_in("/var/tmp").expect("a temporary directory");
        open_up(place.path(), 0o755);
        let copy = copy_for_everybody(place.path());
        Self { _place: place, path: copy.display().to_string() }
    }

    /// Runs a shell script in a fresh directory, with mounts of its own. In it, `$rm` is the program to compare, `$tree`
    /// is `inodyne tree`, and `$user` makes the command after it that of an ordinary user.
    fn outcome(&self, rm: &str, script: &str) -> [String; 2] {
        assert!(rustix::process::geteuid().is_root(), "this test becomes another user and mounts: run it as root");
        let place = tempfile::tempdir_in("/var/tmp").expect("a temporary directory");
        open_up(place.path(), 0o777);
        let output = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", script])
            .current_dir(place.path())
            .env("rm", rm)
            .env("tree", format!("{} tree", self.path))
            .env("user", "setpriv --reuid=65534 --regid=65534 --clear-groups")
            .env("LC_ALL", "C")
            .output()
            .expect("unshare runs");
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned())
    }
}

fn open_up(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("opened up");
}

/// Runs each script with both.
#[track_caller]
fn all_same(scripts: &[&str]) {
    let program = Program::new();
    let mut differences = String::new();
    for script in scripts {
        let [gnu, ours] = ["rm", &format!("{} rm", program.path)].map(|rm| program.outcome(rm, script));
        assert!(!gnu[0].is_empty(), "{script}\nsays nothing, so it tests nothing: {}", gnu[1]);
        if gnu != ours {
            differences += &format!("{script}\n gnu  {gnu:?}\n ours {ours:?}\n");
        }
    }
    assert!(differences.is_empty(), "{differences}");
}

#[test]
fn directories_that_cannot_be_read() {
    all_same(&[
        "mkdir -m 1777 s; mkdir -m 700 s/full; touch s/full/f; $user $rm -rf s/full 2>&1; echo $?; find s | sort",
        "mkdir -m 1777 s; mkdir -m 700 s/empty; $user $rm -r s/empty 2>&1 </dev/null; echo $?; find s | sort",
        "mkdir -m 1777 s; mkdir -m 755 s/open; touch s/open/f; $user $rm -rf s/open 2>&1 | sort; find s | sort",
        "$user mkdir -m 0 e; $user $rm -rf e 2>&1; echo $?; ls",
        "$user mkdir -m 0 e; $user $rm e 2>&1 </dev/null; echo $?; ls",
        "$user mkdir e; touch e/f; chmod 0 e; $user $rm -rf e 2>&1; echo $?; ls",
        "$user mkdir e; touch e/f; chmod 0 e; $user $rm -df e 2>&1; echo $?; ls",
        "$user mkdir e; touch e/f; chmod 0333 e; $user $rm -rf e 2>&1; echo $?; ls",
        "$user mkdir e; touch e/f; chmod 0555 e; $user $rm -rf e 2>&1; echo $?; ls",
        "$user mkdir -p e/d; touch e/d/f; chown -R 65534 e; chmod 0444 e; $user $rm -rf e 2>&1; echo $?; ls",
        "$user mkdir -m 0 e; $user $rm -rf --preserve-root=all e 2>&1; echo $?; ls",
        "$user mkdir -m 0 e; $user $rm -rf e/f 2>&1; echo $?; $user $rm e/f </dev/null 2>&1; echo $?; ls",
    ]);
}

#[test]
fn whoever_may_not_write_is_asked() {
    let ask = |setup: &str, rm: &str, answers: &str| {
        format!("$user sh -c '{setup}'; printf '{answers}' | $user {rm} 2>&1; echo $?; chmod -R u+rwx .; find . | sort")
    };
    let mut scripts = Vec::new();
    // Since 9.2 GNU rm has other words for directories that cannot be read.
    for mode in ["444", "555", "600", "777"] {
        for answers in ["y\\ny\\ny\\ny\\n", "y\\nn\\ny\\ny\\n", "n\\n", "y\\ny\\nn\\n", ""] {
            for options in ["-ri", "-r ---presume-input-tty", "-rI ---presume-input-tty"] {
                let full = format!("mkdir d; touch d/f; ln -s f d/l; chmod 444 d/f; chmod {mode} d");
                scripts.push(ask(&full, &format!("$rm {options} d"), answers));
                scripts.push(ask(&format!("mkdir -m {mode} d"), &format!("$rm {options} d"), answers));
                scripts.push(ask(&format!("mkdir -m {mode} d"), &format!("$rm {options} -d d/"), answers));
            }
        }
    }
    let files = "touch a b; mkfifo p; ln -s a l; echo x >c; chmod 0 a p c; chmod 444 b";
    for options in ["", "---presume-input-tty", "-i", "-f ---presume-input-tty", "--interactive=never ---pre"] {
        scripts.push(ask(files, &format!("$rm {options} a b c p l"), "y\\nn\\nY\\nyes\\nno\\n"));
    }
    all_same(&scripts.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn a_deep_tree_takes_no_longer_where_it_may_have_to_ask() {
    let program = Program::new();
    // Going from the root down to each of its directories would take minutes. In memory, since a disk that seeks for each of
    // them takes minutes, too.
    let script = "mount -t tmpfs x /mnt; chmod 777 /mnt; cd /mnt
        $user $tree make t --depth 30000 --width 1 >/dev/null; ls; ulimit -n 64
        $user timeout 100 $rm -r ---presume-input-tty t </dev/null; echo $?; ls; $rm -rf t";
    assert_eq!(program.outcome(&format!("{} rm", program.path), script), ["t\n0\n", ""]);
}

#[test]
fn root_is_asked_for_what_it_cannot_remove_either() {
    all_same(&[
        "touch f; chattr +i f; printf 'y\\n' | $rm -i f 2>&1; echo $?; chattr -i f; ls",
        "mkdir d; touch d/f; chattr +i d; printf 'y\\ny\\ny\\n' | $rm -ri d 2>&1; echo $?; chattr -i d; find d",
        "mount -t tmpfs x /mnt; mkdir /mnt/d; touch /mnt/d/f; mount -o remount,ro /mnt
         printf 'y\\ny\\ny\\n' | $rm -ri /mnt/d 2>&1; echo $?; find /mnt",
        "mount -t tmpfs x /mnt; mkdir /mnt/d; touch /mnt/d/f; chmod 777 /mnt/d; mount -o remount,ro /mnt
         printf 'y\\ny\\ny\\n' | $user $rm -ri /mnt/d/ 2>&1; echo $?; $user $rm -r ---presume-input-tty /mnt/d 2>&1
         $user $rm -rf /mnt/d 2>&1; $rm -rf /mnt/d /mnt/none 2>&1; $user $rm -i /mnt/d/f 2>&1; find /mnt",
    ]);
}

#[test]
fn all_roots_stay_protected() {
    all_same(&[
        "mkdir m; mount -t tmpfs x m; touch m/f; $rm -rf --preserve-root=all m 2>&1; echo $?; ls m",
        "mkdir m; mount -t tmpfs x m; touch m/f; $rm -rf --preserve-root=all --preserve-root m/ 2>&1; echo $?; ls m",
        "mkdir m; mount -t tmpfs x m; touch m/f; $rm -rf --preserve-root=all --no-preserve-root m 2>&1; echo $?; ls m",
        "mkdir m; mount -t tmpfs x m; touch m/f; $rm -rf --preserve-root m 2>&1; echo $?; ls m",
        "mkdir m; mount -t tmpfs x m; $rm -d --preserve-root=all m 2>&1; echo $?; ls",
        "mkdir m; touch m/f; $rm -rf --preserve-root=all m 2>&1; echo $?; ls",
    ]);
}
