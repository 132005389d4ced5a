//! A shared folder of this machine in a virtual machine: over a virtio serial port and by virtiofs from here, and inside over vsock from the guest
//! itself (`make test-share-vm`). `tests/share.rs` asserts what can be asserted without a virtual machine; here it is what only a real port and
//! another kernel can show.

use std::error::Error;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use clap::Parser;
use inodyne_vm::share::{MOUNT, MOUNT_OVER_VSOCK, Share, tell};
use inodyne_vm::vsock::VsockDevice;
use inodyne_vm::{Machine, Payload, Task, Vm};

/// Mounts a shared folder of this machine in a virtual machine.
#[derive(Parser)]
struct Options {
    /// The program.
    #[arg(long, default_value = "target/debug/inodyne")]
    inodyne: PathBuf,
    /// Mount it over vsock from this machine, too. The program that serves the device is built first where it is not in the cache.
    #[arg(long)]
    vsock: bool,
    /// Where the shared directory is made.
    #[arg(long, default_value = "/var/tmp")]
    into: PathBuf,
    /// The guest's kernel, by its name in kernels.toml.
    #[arg(default_value = "6.18")]
    kernel: String,
}

type Failed = Box<dyn Error>;

const DIRECTORIES: u64 = 100;
const FILES: u64 = 3000;

fn main() -> ExitCode {
    match check(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("inodyne-vm-share: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn expect(is_so: bool, what: impl Into<String>) -> Result<(), Failed> {
    if is_so { Ok(()) } else { Err(what.into().into()) }
}

/// The guest serves a folder over vsock to itself. A user who is not root cannot mount it, nor may another machine be taken for this one.
const VSOCK: &str = r#"
modprobe vsock_loopback
mkdir -p /tmp/served /mnt/vsock
echo over vsock >/tmp/served/file
serve() {
    setsid inodyne share serve /tmp/served --listen vsock:any:700 "$@" >/tmp/serve.log 2>&1 </dev/null &
    until grep -q ^sharing /tmp/serve.log; do sleep 0.1; done
}
serve --allow cid:9
if inodyne share status vsock:1:700; then exit 1; fi
kill $!
sleep 1
serve --allow cid:1
setsid inodyne share mount vsock:1:700 /mnt/vsock >/tmp/mount.log 2>&1 </dev/null &
tries=0
until mountpoint -q /mnt/vsock; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || { cat /tmp/serve.log /tmp/mount.log >&2; exit 1; }
    sleep 0.1
done
cat /mnt/vsock/file
seq 100000 >/mnt/vsock/numbers
cmp /mnt/vsock/numbers /tmp/served/numbers
umount /mnt/vsock
"#;

fn check(options: &Options) -> Result<(), Failed> {
    let scratch = tempfile::Builder::new().prefix("inodyne-vm-share-").tempdir_in(&options.into)?;
    let share = Share::of_tree(&options.inodyne, scratch.path(), DIRECTORIES, FILES / DIRECTORIES, 10)?;
    let mut host = share.serve::<&str>(&[])?;

    let mut payload = Payload::default();
    payload.add(&share.inodyne, "/usr/local/bin/inodyne");
    let mut machine = Machine::of(&options.kernel)?.with(payload);
    machine.qemu_arguments = share.qemu_arguments(machine.memory_mib);
    let device = options.vsock.then(|| VsockDevice::fetch(&machine.cache)).transpose()?;
    let _vsock = device.as_ref().map(|device| device.serve(scratch.path())).transpose()?;
    machine.qemu_arguments.extend(device.iter().flat_map(|device| device.qemu_arguments(scratch.path())));
    let mut vm = Vm::boot(&machine)?;
    println!("booted {} in {:.0} s", vm.kernel(), vm.booted_in().as_secs_f64());

    // First, since QEMU does not connect again to a host that was started anew.
    virtiofs(&mut vm, &share)?;
    let mount = format!("options='--reconnect 60s'\n{MOUNT}");
    tell(&mut vm, &mount)?;
    walks(&mut vm, &share)?;
    changes(&mut vm, &share.directory)?;

    tell(&mut vm, "kill -9 $(cat /tmp/mounter); sleep 3; ! mountpoint -q /mnt/share")?;
    tell(&mut vm, &mount)?;
    println!("the next mounter understands what comes after the one that was killed");

    // Somebody has a file open, works in a directory, and asks while there is no host.
    let asking = "cd /mnt/share/tree; exec 3</mnt/share/from-host; ls >/dev/null; \
        (read line; cat <&3; echo; ls | wc -l) </tmp/go >/tmp/asked 2>&1 &";
    tell(&mut vm, &format!("mkfifo /tmp/go; {asking}"))?;
    drop(host);
    tell(&mut vm, "echo go >/tmp/go; sleep 1; ! [ -s /tmp/asked ]")?;
    host = share.serve::<&str>(&[])?;
    let asked = tell(
        &mut vm,
        "tries=0; until grep -qx '[0-9][0-9]*' /tmp/asked; do tries=$((tries + 1)); [ $tries -lt 300 ]; sleep 0.1; done; cat /tmp/asked",
    )?;
    expect(asked.starts_with("longer\n"), asked)?;
    println!("it goes on with a host that was started anew: {}", tell(&mut vm, "tail -1 /tmp/mount.log")?);

    tell(&mut vm, "umount /mnt/share")?;
    println!("unmounted");
    events(&mut vm, &share.directory)?;
    expect(tell(&mut vm, VSOCK)? == "over vsock", "it is not the file")?;
    let refused = vm.run(Task::new(["inodyne", "share", "status", "vsock:1:700"]).user(1000).directory("/"))?;
    expect(refused.errors().contains("must be root"), refused.errors())?;
    println!("mounted over vsock by root, refused to others");
    if device.is_some() {
        from_here_over_vsock(&mut vm, &share)?;
    }
    drop(host);
    Ok(())
}

/// A kernel that has nothing of ours mounts it by virtiofs: it gets types, sees what changes here after a second, and is never asked to forget.
fn virtiofs(vm: &mut Vm, share: &Share) -> Result<(), Failed> {
    tell(vm, "mkdir -p /mnt/virtiofs; mount -t virtiofs share /mnt/virtiofs")?;
    let before = share.round_trips()?;
    let found: u64 = tell(vm, "find /mnt/virtiofs/tree | wc -l")?.parse()?;
    expect(found == FILES + DIRECTORIES + 1, format!("{found} files and directories"))?;
    let cold = share.round_trips()? - before;
    println!("virtiofs: {found} files and directories, cold {cold} round trips");
    // Each directory is opened, read, read to its end, and closed.
    expect(cold <= DIRECTORIES * (asks(vm.kernel()) + 3) * 11 / 10 + 40, format!("{cold} round trips"))?;
    let guest = share.guest()?;
    expect(guest["told_of_changes"] == false && guest["invalidations_sent"] == 0, guest.to_string())?;

    let at = |name: &str| share.directory.join(name);
    fs::write(at("made-here"), "here")?;
    tell(vm, "[ \"$(cat /mnt/virtiofs/made-here)\" = here ]; ls /mnt/virtiofs | grep -qx made-here")?;
    fs::write(at("made-here"), "changed")?;
    fs::write(at("another"), "")?;
    tell(vm, "sleep 1.1; [ \"$(cat /mnt/virtiofs/made-here)\" = changed ]; ls /mnt/virtiofs | grep -qx another")?;

    let there = "cd /mnt/virtiofs; mkdir there; cd there; head -c 30000000 /dev/urandom >bytes; sync bytes; ln bytes linked; ln -s bytes symbolic
        chmod 640 bytes; touch -d @1000000000 bytes; mv bytes moved; truncate -s 40000000 moved; rm linked
        ! mknod device c 1 3 2>/dev/null; ! chown 12 moved || [ $(stat -c %u moved) = 0 ]
        cp moved copied; cmp moved copied; echo appended >>copied; tail -c 9 copied
        (flock 9; sleep 3) 9>lock & sleep 1; ! flock -n lock true; wait; flock -n lock true
        exec 8>unnamed; rm unnamed; echo gone >&8; exec 8>&-; sha256sum <moved >sum";
    expect(tell(vm, there)? == "appended", "it is not what was appended")?;
    let here = "sha256sum <moved | cmp - sum; [ \"$(stat -c '%a %h' moved)\" = '640 1' ]; [ \"$(readlink symbolic)\" = bytes ]; ls | xargs";
    let here = Command::new("sh").args(["-ec", here]).current_dir(at("there")).output()?;
    let files = String::from_utf8_lossy(&here.stdout);
    expect(here.status.success() && files.trim() == "copied lock moved sum symbolic", format!("{here:?}"))?;

    tell(vm, "rm -rf /mnt/virtiofs/there; umount /mnt/virtiofs")?;
    expect(share.guest().is_err(), "it has unmounted it, and is a guest still")?;
    // What waits behind requests that wait for the disk is not held up, and all of them are answered.
    tell(
        vm,
        "mount -t virtiofs share /mnt/virtiofs; cd /mnt/virtiofs; for n in 1 2 3 4 5 6 7 8; do
         (head -c 3000000 /dev/urandom >many-$n; sync many-$n; cat many-* | wc -c >/dev/null; find tree | wc -l >count-$n) & done; wait
         [ $(cat count-* | sort -u | wc -l) = 1 ]; rm many-* count-*; cd /; umount /mnt/virtiofs",
    )?;
    println!("by virtiofs files are made, changed, read and removed");
    Ok(())
}

/// How often a directory of this tree is asked for: 6.12 takes 4 KiB of entries at once, 6.18 all of its thirty.
fn asks(release: &str) -> u64 {
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    if (numbers.next(), numbers.next()) <= (Some(6), Some(12)) { 2 } else { 1 }
}

/// A walk asks once per directory, or for each page of it, and then not at all.
fn walks(vm: &mut Vm, share: &Share) -> Result<(), Failed> {
    let before = share.round_trips()?;
    let found: u64 = tell(vm, "find /mnt/share/tree | wc -l")?.parse()?;
    expect(found == FILES + DIRECTORIES + 1, format!("{found} files and directories"))?;
    let cold = share.round_trips()? - before;
    println!("find: {found} files and directories, cold {cold} round trips");
    expect(cold <= DIRECTORIES * asks(vm.kernel()) * 11 / 10 + 20, format!("{cold} round trips: {}", share.guest()?))?;
    let mut least = u64::MAX;
    for _ in 0..4 {
        let before = share.round_trips()?;
        tell(vm, "find /mnt/share/tree >/dev/null")?;
        least = least.min(share.round_trips()? - before);
    }
    println!("find, warm: {least} round trips");
    expect(least <= 2, format!("{least} round trips: {}", share.guest()?))
}

/// For the guest's shell: waits until the watcher has heard something.
const HEARD: &str = r#"
heard() {
    tries=0
    until grep -qx "$1" /tmp/events; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || { cat /tmp/events >&2; exit 1; }
        sleep 0.02
    done
}
"#;

/// A process that watches a directory in the guest (inotify) hears what a program of the host does there, and nothing else happens. How soon
/// is reported with how long it takes to ask the guest for anything.
fn events(vm: &mut Vm, shared: &Path) -> Result<(), Failed> {
    let directory = shared.join("watched");
    fs::create_dir(&directory)?;
    fs::write(directory.join("old"), "old")?;
    tell(vm, &format!("options=--events\n{MOUNT}"))?;
    vm.put("/tmp/watch.py", 0o644, include_bytes!("../../../../fixtures/share/watch.py"))?;
    tell(vm, "cd /tmp; ls /mnt/share/watched >/dev/null
        setsid python3 watch.py /mnt/share/watched >>events 2>&1 </dev/null & until grep -q ready /tmp/events; do sleep 0.1; done")?;
    let at = |name: &str| directory.join(name);
    type Change<'a> = (&'a str, &'a dyn Fn() -> std::io::Result<()>, &'a [&'a str]);
    let changes: [Change; 9] = [
        ("create", &|| fs::write(at("new"), "1"), &["CREATE new", "MODIFY new", "CLOSE_WRITE new"]),
        ("modify", &|| fs::write(at("old"), "longer"), &["MODIFY old", "CLOSE_WRITE old"]),
        ("chmod", &|| fs::set_permissions(at("old"), fs::Permissions::from_mode(0o600)), &["ATTRIB old"]),
        ("rename", &|| fs::rename(at("old"), at("moved")), &["MOVED_FROM old", "MOVED_TO moved"]),
        ("replace", &|| fs::rename(at("new"), at("moved")), &["MOVED_FROM new", "MOVED_TO moved"]),
        ("delete", &|| fs::remove_file(at("moved")), &["DELETE moved"]),
        ("mkdir", &|| fs::create_dir(at("directory")), &["CREATE directory"]),
        ("symlink", &|| std::os::unix::fs::symlink("nowhere", at("link")), &["CREATE link"]),
        ("rmdir", &|| fs::remove_dir(at("directory")), &["DELETE directory"]),
    ];
    for (what, change, expected) in changes {
        tell(vm, ">/tmp/events")?;
        change()?;
        let began = Instant::now();
        let lines: String = expected.iter().map(|line| format!("heard '{line}'\n")).collect();
        tell(vm, &format!("{HEARD}{lines}"))?;
        let heard = began.elapsed();
        tell(vm, &format!("{HEARD}{lines}"))?;
        let asking = began.elapsed() - heard;
        println!("{what} on the host: heard within {} ms; to ask takes {}", heard.as_millis(), asking.as_millis());
    }
    tell(
        vm,
        "[ \"$(ls /mnt/share/watched)\" = link ]; cp /tmp/events /tmp/heard; sleep 2; cmp /tmp/events /tmp/heard",
    )?;
    expect(fs::read_dir(&directory)?.count() == 1, "the host has other files")?;
    tell(vm, "umount /mnt/share")?;
    Ok(())
}

/// Over vsock from this machine: as many round trips as over the port, and the same bytes.
fn from_here_over_vsock(vm: &mut Vm, share: &Share) -> Result<(), Failed> {
    tell(vm, MOUNT_OVER_VSOCK)?;
    let before = share.round_trips()?;
    let found: u64 = tell(vm, "find /mnt/share-vsock/tree | wc -l")?.parse()?;
    let cold = share.round_trips()? - before;
    expect(found == FILES + DIRECTORIES + 1, format!("{found} files and directories"))?;
    expect(cold <= DIRECTORIES * asks(vm.kernel()) * 11 / 10 + 20, format!("{cold} round trips: {}", share.guest()?))?;
    tell(vm, "cd /mnt/share-vsock; head -c 5000000 /dev/urandom >over-vsock; sha256sum <over-vsock >sum-over-vsock")?;
    let here = "sha256sum <over-vsock | cmp - sum-over-vsock; echo changed >over-vsock";
    let sum = Command::new("sh").args(["-ec", here]).current_dir(&share.directory).status()?;
    expect(sum.success(), "the host has other bytes")?;
    tell(
        vm,
        "tries=0; until [ \"$(cat /mnt/share-vsock/over-vsock)\" = changed ]; do tries=$((tries + 1)); [ $tries -lt 100 ]; sleep 0.1; done",
    )?;
    tell(vm, "umount /mnt/share-vsock")?;
    println!("over vsock from this machine: cold {cold} round trips; changes are seen on both sides");
    Ok(())
}

/// Each side sees what the other one changes.
fn changes(vm: &mut Vm, shared: &Path) -> Result<(), Failed> {
    tell(vm, "! [ -e /mnt/share/from-host ]")?;
    fs::write(shared.join("from-host"), "host")?;
    let until =
        |what: &str| format!("tries=0; until {what}; do tries=$((tries + 1)); [ $tries -lt 100 ]; sleep 0.1; done");
    tell(vm, &until("[ \"$(cat /mnt/share/from-host 2>/dev/null)\" = host ]"))?;
    fs::write(shared.join("from-host"), "longer")?;
    tell(vm, &until("[ \"$(cat /mnt/share/from-host)\" = longer ]"))?;
    tell(vm, "head -c 3000000 /dev/urandom >/mnt/share/from-guest; sha256sum </mnt/share/from-guest >/mnt/share/sum")?;
    let sum = Command::new("sh").args(["-c", "sha256sum <from-guest | cmp - sum"]).current_dir(shared).status()?;
    println!("changes are seen on both sides");
    expect(sum.success(), "the host has other bytes")
}
