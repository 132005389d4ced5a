//! `inodyne rm` where other deleters fail: depth, few descriptors, mounts, faults, signals, crashes.
//!
//! These are whole-program tests; what the library guarantees under races and random faults is tested there.

mod support;

use std::{
    fs,
    io::Read,
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        process::ExitStatusExt,
    },
    path::Path,
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use inodyne_tree::make;

use support::programs::copy_for_everybody;

const INODYNE: &str = env!("CARGO_BIN_EXE_inodyne");

/// Runs a shell script in `place`; `$rm` is `inodyne rm`.
fn shell(place: &Path, script: &str) -> Output {
    Command::new("sh")
        .args(["-ec", script])
        .current_dir(place)
        .env("rm", format!("{INODYNE} rm"))
        .env("LC_ALL", "C")
        .output()
        .expect("sh runs")
}

/// As [`shell`], in a mount namespace of its own, which takes its mounts along when it ends.
fn shell_with_mounts(place: &Path, script: &str) -> Output {
    assert!(rustix::process::geteuid().is_root(), "this test mounts file systems: run it as root");
    let quoted = script.replace('\'', "'\\''");
    shell(place, &format!("unshare --mount --propagation private sh -ec '{quoted}'"))
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn place(parent: &str) -> tempfile::TempDir {
    tempfile::tempdir_in(parent).expect("a temporary directory")
}

#[test]
fn a_million_levels_with_64_descriptors_and_a_small_stack() {
    let place = place("/dev/shm");
    make(&"depth=1000000,width=1".parse().expect("a specification"), &place.path().join("deep")).expect("made");
    let output = shell(place.path(), "ulimit -n 64; ulimit -s 256; exec $rm -rf deep");
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    assert!(!place.path().join("deep").exists());
}

#[test]
fn every_strategy_works_with_few_descriptors_on_a_wide_and_deep_tree() {
    let place = place("/dev/shm");
    let root = place.path().join("tree");
    for strategy in ["auto", "groups", "single", "steal", "wide"] {
        for limit in [16, 64] {
            make(&"depth=9,width=3".parse().expect("a specification"), &root).expect("made");
            let script = format!("ulimit -n {limit}; exec $rm -r --strategy={strategy} tree");
            let output = shell(place.path(), &script);
            assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{script}");
            assert!(!root.exists());
        }
    }
}

#[test]
fn mounts_below_an_operand_are_left_alone_unless_told_so() {
    let place = place("/var/tmp");
    let script = "mkdir -p tree/dir/mnt tree/dir/bound outside tree/other
        touch outside/canary tree/file tree/other/file
        mount -t tmpfs test tree/dir/mnt; mkdir tree/dir/mnt/sub; touch tree/dir/mnt/sub/canary
        mount --bind outside tree/dir/bound
        if $rm -rf $OPTIONS tree 2>messages; then exit 9; fi
        find tree | sort; sort messages";
    // A bind mount is on the same device, where GNU rm --one-file-system would go on.
    let output = shell_with_mounts(place.path(), &format!("OPTIONS=; {script}"));
    assert_eq!(
        stdout(&output),
        "tree\ntree/dir\ntree/dir/bound\ntree/dir/bound/canary\ntree/dir/mnt\ntree/dir/mnt/sub\ntree/dir/mnt/sub/canary\n\
         rm: skipping 'tree/dir/bound', since it's on a different device\n\
         rm: skipping 'tree/dir/mnt', since it's on a different device\n",
        "{}",
        stderr(&output)
    );
    assert!(place.path().join("outside/canary").exists());
    let output = shell_with_mounts(place.path(), &format!("OPTIONS=--cross-mounts; {script}"));
    assert_eq!(
        stdout(&output),
        "tree\ntree/dir\ntree/dir/bound\ntree/dir/mnt\n\
         rm: cannot remove 'tree/dir/bound': Device or resource busy\n\
         rm: cannot remove 'tree/dir/mnt': Device or resource busy\n",
        "{}",
        stderr(&output)
    );
    assert!(!place.path().join("outside/canary").exists());
}

#[test]
fn an_operand_that_is_a_mount_point_is_emptied_as_by_gnu_rm() {
    let place = place("/var/tmp");
    let script = "mkdir mnt; mount -t tmpfs test mnt; mkdir mnt/d; touch mnt/d/f mnt/e; if $rm -rf mnt; then exit 9; fi; find mnt";
    let output = shell_with_mounts(place.path(), script);
    assert_eq!(stdout(&output), "mnt\n");
    assert_eq!(stderr(&output), "rm: cannot remove 'mnt': Device or resource busy\n");
}

#[test]
fn siblings_of_what_is_immutable_or_forbidden_go() {
    let place = place("/var/tmp");
    let output = shell(
        place.path(),
        "mkdir -p t/a t/b t/c/d; touch t/a/keep t/a/x t/b/y t/c/d/z; chattr +i t/a/keep t/c/d
         code=0; $rm -rf t 2>messages || code=$?; chattr -i t/a/keep t/c/d; echo $code; find t | sort; sort messages",
    );
    assert_eq!(
        stdout(&output),
        "1\nt\nt/a\nt/a/keep\nt/c\nt/c/d\nt/c/d/z\n\
         rm: cannot remove 't/a/keep': Operation not permitted\n\
         rm: cannot remove 't/c/d/z': Operation not permitted\n",
        "{}",
        stderr(&output)
    );
}

/// Somebody without privileges, against GNU rm: the same messages, the same left.
#[test]
fn permissions_stop_it_where_they_stop_gnu_rm() {
    let place = place("/var/tmp");
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).expect("opened up");
    copy_for_everybody(place.path());
    let script = "mkdir -p t/closed/in t/locked t/blind t/ok t/empty; touch t/closed/f t/locked/f t/ok/f t/blind/f t/closed/in/f
        chmod a-w t/closed; chmod 0 t/locked t/empty; chmod 0333 t/blind; ulimit -c 0
        code=0; $RM -r t </dev/null 2>messages || code=$?; chmod -R u+rwx t; echo $code; find t | sort; sort messages
        mkdir -p u/x; touch u/x/f; chmod a-w u/x u/x/f; printf 'y\\ny\\nn\\nn\\n' | $RM -ri u 2>&1 || echo $?; echo; find u | sort";
    let run = |rm: &str| {
        let quoted = script.replace('\'', "'\\''");
        let output = shell(
            place.path(),
            &format!(
                "mkdir work; chmod 777 work; cd work; export RM='{rm}'
                 setpriv --reuid=65534 --regid=65534 --clear-groups sh -c '{quoted}'; cd ..; /bin/rm -rf work"
            ),
        );
        (stdout(&output), stderr(&output))
    };
    assert!(rustix::process::geteuid().is_root(), "this test becomes another user: run it as root");
    let gnu = run("rm");
    assert!(gnu.0.contains("cannot remove 't/closed/f': Permission denied"), "{gnu:?}");
    assert_eq!(run("../inodyne rm"), gnu);
}

#[test]
fn an_unreadable_directory_does_not_stop_the_rest() {
    let place = place("/var/tmp");
    // The block of one directory is overwritten: reading it is an error of the file system's.
    let output = shell_with_mounts(
        place.path(),
        "truncate -s 32M image; mkfs.ext4 -q -F -O ^metadata_csum image; mkdir mnt; mount -o loop image mnt
         mkdir -p mnt/t/bad mnt/t/good; touch mnt/t/bad/f mnt/t/good/f mnt/t/g; umount mnt
         block=$(debugfs -R 'blocks /t/bad' image 2>/dev/null); block=${block%% *}
         dd if=/dev/urandom of=image bs=$(dumpe2fs -h image 2>/dev/null | sed -n 's/^Block size: *//p') seek=$block count=1 conv=notrunc 2>/dev/null
         mount -o loop,errors=continue image mnt
         code=0; $rm -rf mnt/t 2>messages || code=$?; echo $code; ls -A mnt/t; cat messages",
    );
    let text = stdout(&output);
    assert!(text.starts_with("1\nbad\nrm: cannot remove 'mnt/t/bad': "), "{text}{}", stderr(&output));
    assert_eq!(text.lines().count(), 3, "{text}");
}

#[test]
fn an_interrupt_stops_cleanly_says_what_is_left_and_the_rest_can_be_removed() {
    let place = place("/dev/shm");
    let root = place.path().join("tree");
    make(&"dirs=8000,files=100".parse().expect("a specification"), &root).expect("made");
    fs::create_dir(place.path().join("second")).expect("made");
    let mut child = Command::new(INODYNE)
        .args(["rm", "-rf", "--threads=32", "tree", "second"])
        .current_dir(place.path())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let before = fs::metadata(&root).expect("is there").nlink();
    // It has begun when the first of the uppermost directories is gone.
    let started = Instant::now();
    while fs::metadata(&root).is_ok_and(|root| root.nlink() == before) && started.elapsed() < Duration::from_secs(20) {
        thread::sleep(Duration::from_millis(1));
    }
    // SIGTERM and not SIGINT: whoever runs the tests in the background ignores the latter, and programs inherit that.
    let pid = rustix::process::Pid::from_child(&child);
    // And many of them, as `timeout` sends two: those that come at once belong together.
    for _ in 0..50 {
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("signalled");
        thread::sleep(Duration::from_micros(20));
    }
    let status = child.wait().expect("ended");
    let mut text = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut text).expect("text");
    assert_eq!(status.signal(), Some(15), "{text}");
    assert!(text.starts_with("rm: interrupted: ") && text.contains("; left: 'tree'"), "{text}");
    assert!(root.exists());
    let output = shell(place.path(), "exec $rm -rf tree second");
    assert_eq!((output.status.code(), root.exists()), (Some(0), false), "{}", stderr(&output));
}

#[test]
fn trash_frees_the_name_at_once_and_a_later_run_finishes_after_a_crash() {
    let place = place("/dev/shm");
    let root = place.path().join("tree");
    let spec = "dirs=3000,files=100".parse().expect("a specification");
    make(&spec, &root).expect("made");
    let mut child = Command::new(INODYNE)
        .args(["rm", "-rf", "--trash", "--threads=1", "tree"])
        .current_dir(place.path())
        .spawn()
        .expect("started");
    let started = Instant::now();
    while root.exists() && started.elapsed() < Duration::from_secs(20) {
        thread::yield_now();
    }
    child.kill().expect("killed");
    let status = child.wait().expect("ended");
    let left = || shell(place.path(), "ls -A").stdout;
    assert_eq!(status.signal(), Some(9), "it was done before it could be killed");
    assert!(String::from_utf8_lossy(&left()).starts_with(".inodyne-trash-"));

    fs::create_dir(&root).expect("the name is free");
    let output = shell(place.path(), "exec $rm -rf --trash tree");
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    assert_eq!(String::from_utf8_lossy(&left()), "");
}

#[test]
fn trash_leaves_alone_what_another_run_still_deletes_or_somebody_else_made() {
    let place = place("/dev/shm");
    let output = shell(
        place.path(),
        "for name in 1-a 2-b 3-c 5-e 6-f; do mkdir -m 700 .inodyne-trash-$name; done; chmod 755 .inodyne-trash-3-c
         mkdir -p .inodyne-trash-1-a/trash/x .inodyne-trash-2-b/trash/x .inodyne-trash-3-c/trash/x; touch .inodyne-trash-5-e/x
         ln -s .inodyne-trash-2-b .inodyne-trash-4-d; mkdir tree
         flock .inodyne-trash-1-a $rm -rf --trash tree; ls -A",
    );
    // The second was left by a crash, the sixth before anything was in it. The fifth is somebody's private directory,
    // which whoever may write here could have given that name.
    let left = ["1-a", "3-c", "4-d", "5-e"].map(|name| format!(".inodyne-trash-{name}\n"));
    assert_eq!(stdout(&output), left.concat(), "{}", stderr(&output));
}

#[test]
fn trash_finishes_what_was_left_beside_a_file_too() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let output = shell(
        place.path(),
        "mkdir sub; for at in . sub; do mkdir -m 700 $at/.inodyne-trash-1-a; mkdir -p $at/.inodyne-trash-1-a/trash/x; done
         touch file sub/file; $rm --trash --dry-run file; ls -A .; $rm --trash file; ls -A . sub; $rm --trash sub/file; ls -A sub",
    );
    let whole = ".inodyne-trash-1-a\nfile\nsub\n";
    let sub = ".inodyne-trash-1-a\nfile\n";
    assert!(stdout(&output).ends_with(&format!("{whole}.:\nsub\n\nsub:\n{sub}")), "{}", stdout(&output));
}

#[test]
fn trash_in_many_places_needs_few_descriptors() {
    let place = place("/dev/shm");
    let output = shell(
        place.path(),
        "for n in $(seq 300); do mkdir -p $n/tree/d; touch $n/tree/d/f; done
         ulimit -n 64; $rm -rf --trash */tree; ls -A . */",
    );
    assert!(!stdout(&output).contains("tree") && !stdout(&output).contains("trash"), "{}", stdout(&output));
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
}

#[test]
fn what_takes_the_place_of_an_emptied_directory_goes_too() {
    let place = place("/dev/shm");
    // Its rmdir gets the answer of a directory that was exchanged for a link.
    let output = shell(
        place.path(),
        "mkdir -p t/d; touch t/d/f
         strace -f -o /dev/null -e trace=unlinkat -e inject=unlinkat:error=ENOTDIR:when=2 $rm -rf --strategy=steal --threads=1 t; echo $?; ls",
    );
    assert_eq!((stdout(&output).as_str(), stderr(&output).as_str()), ("0\n", ""));
}

#[test]
fn a_dry_run_and_json_say_what_and_how_much() {
    let place = place("/var/tmp");
    make(&"dirs=3,files=5,bytes=5000".parse().expect("a specification"), &place.path().join("t")).expect("made");
    let output = shell(place.path(), "$rm -rf --dry-run t; $rm -rf --dry-run --json t; $rm -rf --json -v t; ls");
    let text = stdout(&output);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}{}", stderr(&output));
    assert!(lines[0].starts_with("would remove 15 files and 4 directories, "), "{text}");
    let [dry, real] = [2, 3].map(|line| serde_json::from_str::<serde_json::Value>(lines[line]).expect("JSON"));
    assert_eq!((&dry["files"], &dry["directories"], &dry["dry_run"]), (&15.into(), &4.into(), &true.into()));
    assert!(dry["allocated_bytes"].as_u64() >= Some(15 * 5000));
    assert_eq!((&real["files"], &real["failures"], &real["dry_run"]), (&15.into(), &0.into(), &false.into()));
}
