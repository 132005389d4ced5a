//! Real settings of this machine, ones that nobody notices.

use std::fs;

use super::*;

fn value(path: &str) -> String {
    fs::read_to_string(path).unwrap().trim().to_owned()
}

#[test]
fn a_setting_is_changed_and_restored() {
    let path = "/proc/sys/kernel/msgmnb";
    let before = value(path);
    let wanted = (before.parse::<u64>().unwrap() - 1).to_string();
    let setting = Setting::change(path.as_ref(), &wanted).unwrap();
    assert_eq!(value(path), wanted);
    let again = Setting::change(path.as_ref(), &wanted).unwrap();
    assert!(Arc::ptr_eq(&setting, &again));
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
fn of_a_pair_the_one_in_force_is_restored() {
    let [bytes, ratio] = PAIRS[1];
    let before = [value(bytes), value(ratio)];
    let setting = Setting::change(bytes.as_ref(), "2147483648").unwrap();
    assert_eq!([value(bytes), value(ratio)], ["2147483648", "0"]);
    let error = Setting::change(ratio.as_ref(), "7").unwrap_err().to_string();
    assert!(error.contains("another place has set"), "{error}");
    drop(setting);
    assert_eq!([value(bytes), value(ratio)], before);
}

#[test]
fn what_cannot_be_set_is_said_and_left_alone() {
    for (path, wanted, says) in [
        ("/etc/hostname", "x", "only files under /sys and /proc/sys"),
        ("/proc/sys/../cmdline", "x", "leads out of /proc/sys/"),
        ("/sys/../etc/hostname", "x", "leads out of /sys/"),
        ("/proc/sys/kernel/no-such", "1", "there is no such file"),
        ("/proc/sys/kernel", "1", "is a directory"),
        ("/proc/sys/vm/drop_caches", "1", "not be restored"),
        ("/proc/sys/fs/lease-break-time", "soon", "Invalid argument"),
    ] {
        let error = Setting::change(path.as_ref(), wanted).unwrap_err().to_string();
        assert!(error.contains(says) && error.starts_with(&format!("cannot set {path} to {wanted}: ")), "{error}");
    }
}
