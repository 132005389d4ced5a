//! Real settings of this machine, ones that nobody notices.

use std::fs;

use super::*;

/// Held by those that change the same one, and by those that ask what was not restored.
static ALONE: Mutex<()> = Mutex::new(());

fn value(path: &str) -> String {
    fs::read_to_string(path).unwrap().trim().to_owned()
}

#[test]
fn a_setting_is_changed_and_restored() {
    let path = "/proc/sys/kernel/msgmnb";
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = value(path);
    let wanted = (before.parse::<u64>().unwrap() - 1).to_string();
    let setting = Setting::change(path.as_ref(), &wanted).unwrap();
    assert_eq!(value(path), wanted);
    let again = Setting::change(path.as_ref(), &wanted).unwrap();
    assert!(Arc::ptr_eq(&setting.files, &again.files));
    let error = Setting::change(path.as_ref(), "7").unwrap_err().to_string();
    assert!(error.contains("another place has set /proc/sys/kernel/msgmnb to"), "{error}");
    drop(setting);
    assert_eq!(value(path), wanted);
    fs::write(path, "9").unwrap();
    let again = again.again().unwrap();
    assert_eq!(value(path), wanted);
    drop(again);
    assert_eq!(value(path), before);
}

#[test]
fn while_it_is_lifted_another_value_may_be_in_force() {
    let path = "/proc/sys/kernel/msgmnb";
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = value(path);
    let one = Setting::change(path.as_ref(), "16001").unwrap();
    one.lift();
    assert_eq!(value(path), before);
    let other = Setting::change(path.as_ref(), "16002").unwrap();
    assert_eq!(value(path), "16002");
    assert!(one.impose().unwrap_err().to_string().contains("another place has set"));
    other.lift();
    other.lift();
    for _ in 0..2 {
        one.impose().unwrap();
        assert_eq!(value(path), "16001");
    }
    one.lift();
    assert_eq!(value(path), before);
    other.impose().unwrap();
    drop(one);
    assert_eq!(value(path), "16002");
    drop(other);
    assert_eq!(value(path), before);
}

#[test]
fn a_setting_whose_guard_was_killed_is_restored_too() {
    let path = "/proc/sys/kernel/keys/gc_delay";
    let before = value(path);
    let setting = Setting::change(path.as_ref(), "301").unwrap();
    assert_eq!(value(path), "301");
    // SAFETY: it is a child of ours that nobody has waited for.
    assert_eq!(unsafe { libc::kill(setting.files._guard.pid, libc::SIGKILL) }, 0);
    drop(setting);
    assert_eq!(value(path), before);
}

#[test]
fn what_cannot_be_restored_is_told_once() {
    let (ports, privileged) =
        ("/proc/sys/net/ipv4/ip_local_port_range", "/proc/sys/net/ipv4/ip_unprivileged_port_start");
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let [before, privileged_before] = [value(ports), value(privileged)];
    let setting = Setting::change(ports.as_ref(), "40000 50000").unwrap();
    // The kernel refuses a range with privileged ports in it (net/ipv4/sysctl_net_ipv4.c: ipv4_local_port_range).
    fs::write(privileged, "40000").unwrap();
    drop(setting);
    let told: Vec<_> = take_not_restored().iter().map(ToString::to_string).collect();
    fs::write(privileged, &privileged_before).unwrap();
    fs::write(ports, &before).unwrap();
    let [told] = &told[..] else { panic!("{told:?}") };
    assert!(told.starts_with(&format!("cannot restore {ports} to {before}: Invalid argument")), "{told}");
    assert!(take_not_restored().is_empty());
}

#[test]
fn where_one_is_refused_the_others_are_restored_the_last_one_first() {
    let [queue, ports, privileged] = [
        "/proc/sys/kernel/msgmnb",
        "/proc/sys/net/ipv4/ip_local_port_range",
        "/proc/sys/net/ipv4/ip_unprivileged_port_start",
    ];
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = [queue, ports, privileged].map(value);
    // The kernel refuses the old range as long as it would begin among privileged ports.
    let wanted = [(queue, "16003"), (ports, "40000 50000"), (privileged, "40000")];
    let settings: Vec<_> = wanted.iter().map(|(path, value)| Setting::change(path.as_ref(), value).unwrap()).collect();
    settings[0].lift();
    let other = Setting::change(queue.as_ref(), "16004").unwrap();
    let refused = Setting::all_again(settings, &wanted.map(|(path, value)| (path.into(), value))).unwrap_err();
    assert!(refused.to_string().contains("another place has set"), "{refused}");
    drop(other);
    let (told, after) = (take_not_restored(), [queue, ports, privileged].map(value));
    for (path, before) in [queue, privileged, ports].into_iter().zip([&before[0], &before[2], &before[1]]) {
        fs::write(path, before).unwrap();
    }
    assert!(told.is_empty(), "{told:?}");
    assert_eq!(after, before);
}

#[test]
fn what_the_kernel_made_something_else_of_is_not_restored() {
    let path = "/proc/sys/kernel/msgmni";
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = value(path);
    let mut files = Files::take(vec![Locked::open(path.as_ref()).unwrap()]).unwrap();
    // The kernel takes this as well, and has 16 then.
    files.before = vec![(0, "0x10".to_owned())];
    files.restore();
    fs::write(path, &before).unwrap();
    let told: Vec<_> = take_not_restored().iter().map(ToString::to_string).collect();
    let [told] = &told[..] else { panic!("{told:?}") };
    assert!(told.starts_with(&format!("cannot restore {path} to 0x10: the kernel made it 16;")), "{told}");
}

#[test]
fn of_a_pair_the_one_in_force_is_restored() {
    for ([one, other], wanted) in [(PAIRS[1], "2147483648"), (PAIRS[2], "1073741824")] {
        let before = [value(one), value(other)];
        let setting = Setting::change(one.as_ref(), wanted).unwrap();
        assert_eq!([value(one), value(other)], [wanted, "0"]);
        let error = Setting::change(other.as_ref(), "7").unwrap_err().to_string();
        assert!(error.contains("another place has set"), "{error}");
        drop(setting);
        assert_eq!([value(one), value(other)], before);
    }
}

#[test]
fn what_cannot_be_set_is_said_and_left_alone() {
    let reserved = "/proc/sys/net/ipv4/ip_local_reserved_ports";
    let is_empty = std::fs::read_to_string(reserved).is_ok_and(|ports| ports.trim().is_empty());
    let of_empty = is_empty.then_some((reserved, "8080", "it is empty now"));
    for (path, wanted, says) in [
        ("/etc/hostname", "x", "only files under /sys and /proc/sys"),
        ("/proc/sys/../cmdline", "x", "leads out of /proc/sys/"),
        ("/sys/../etc/hostname", "x", "leads out of /sys/"),
        ("/proc/sys/kernel/no-such", "1", "there is no such file"),
        ("/proc/sys/kernel", "1", "is a directory"),
        ("/proc/sys/vm/drop_caches", "1", "not be restored"),
        ("/proc/sys/fs/lease-break-time", "soon", "Invalid argument"),
    ]
    .into_iter()
    .chain(of_empty)
    {
        let error = Setting::change(path.as_ref(), wanted).unwrap_err().to_string();
        assert!(error.contains(says) && error.starts_with(&format!("cannot set {path} to {wanted}: ")), "{error}");
    }
}

#[test]
fn a_value_that_may_go_on_is_not_taken_for_the_whole() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let locked = Locked { path: file.path().into(), fd: file.reopen().unwrap(), identity: (0, 0) };
    for (length, is_whole) in [(LONGEST - 1, true), (LONGEST, false), (2 * LONGEST, false)] {
        fs::write(file.path(), "1".repeat(length)).unwrap();
        let read = locked.read();
        assert_eq!(read.as_ref().is_ok_and(|value| value.len() == length), is_whole, "{read:?}");
        assert_eq!(read.is_err_and(|told| told.contains("could not be restored")), !is_whole);
    }
}

#[test]
fn a_link_is_followed_while_others_rename() {
    let device = fs::read_dir("/sys/block").unwrap().next().expect("a block device").unwrap();
    let path = device.path().join("queue/read_ahead_kb");
    assert!(fs::read_link(device.path()).unwrap().starts_with(".."), "a link through its parent");
    let directory = tempfile::tempdir().unwrap();
    let names = ["one", "other"].map(|name| directory.path().join(name));
    fs::write(&names[0], "").unwrap();
    thread::scope(|scope| {
        let renaming = scope.spawn(|| {
            for at in (0..2).cycle().take(100_000) {
                fs::rename(&names[at], &names[1 - at]).unwrap();
            }
        });
        while !renaming.is_finished() {
            assert_eq!(Locked::open(&path).err(), None);
        }
    });
}
