//! What takes long ends soon after the user wants no more of it, even in the middle of one large file.

mod common;

use std::{fs, mem, path::Path, ptr, time::Duration};

use common::{SOMEBODY, lab, make, spec};
use inodyne_lab::{DataSpec, LabError};
use inodyne_launch::{ASKING_TO_END, SignalReader};

/// Sends SIGTERM to this thread once it has used this much more CPU time: however busy the machine is, the same amount is done before.
struct Timer(libc::timer_t);

impl Timer {
    fn after(used: Duration) -> Timer {
        // SAFETY: plain old data, valid when zero; the pointers are live.
        unsafe {
            let mut event: libc::sigevent = mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = libc::SIGTERM;
            event.sigev_notify_thread_id = libc::gettid();
            let mut id: libc::timer_t = ptr::null_mut();
            assert_eq!(libc::timer_create(libc::CLOCK_THREAD_CPUTIME_ID, &mut event, &mut id), 0);
            let mut time: libc::itimerspec = mem::zeroed();
            time.it_value.tv_nsec = used.as_nanos().try_into().expect("less than a second");
            assert_eq!(libc::timer_settime(id, 0, &time, ptr::null_mut()), 0);
            Timer(id)
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: made above, and deleted once.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// Interrupts work that would take longer, in its middle.
fn interrupt<T>(what: &str, work: impl FnOnce() -> Result<T, LabError>) {
    let mut signals = SignalReader::of(ASKING_TO_END).expect("signals are read");
    let timer = Timer::after(Duration::from_millis(40));
    let ended = work();
    drop(timer);
    while signals.arrived().is_some() {}
    match ended {
        Err(LabError::Interrupted) => {}
        Err(error) => panic!("{what}: {error}"),
        Ok(_) => panic!("{what}: it went on to its end"),
    }
}

/// Bytes of the large file.
const LARGE: u64 = 1 << 30;

fn data(path: &Path) -> DataSpec {
    path.display().to_string().parse().expect("data")
}

#[test]
fn one_large_file_is_not_copied_nor_unpacked_to_its_end() {
    let (lab, scratch) = lab();
    let from = scratch.path().join("from");
    fs::create_dir(&from).expect("made");
    let large = fs::File::create(from.join("large")).expect("made");
    large.set_len(LARGE).expect("grown");
    let archive = scratch.path().join("large.tar.zst");
    let compressed = zstd::Encoder::new(fs::File::create(&archive).expect("made"), 1).expect("compressed");
    let mut tar = tar::Builder::new(compressed.auto_finish());
    tar.sparse(false);
    tar.append_path_with_name(from.join("large"), "large").expect("packed");
    drop(tar.into_inner().expect("written"));
    for source in [&from, &archive] {
        let mut place = make(&lab, "tmpfs:size=2G");
        interrupt(&source.display().to_string(), || place.fill(&data(source)));
        let made = fs::metadata(place.path().join("large")).expect("it was begun").len();
        assert!((1..LARGE).contains(&made), "{}: {made} bytes", source.display());
    }
}

#[test]
fn a_file_system_is_not_made_to_look_used_to_its_end() {
    let (lab, _scratch) = lab();
    interrupt("age", || lab.make(&spec("ext4:size=1G,age=50"), SOMEBODY));
}
