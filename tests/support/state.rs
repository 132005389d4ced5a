//! What a run may change on the machine and must give back, and moments at which to disturb it.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use libbpf_rs::query::ProgInfoIter;

/// The state that a run may change and must give back.
#[derive(Debug, PartialEq, Eq)]
pub struct State {
    mounts: Vec<String>,
    loop_devices: Vec<String>,
    images: Vec<String>,
    settings: Vec<String>,
}

impl State {
    /// The current state.
    pub fn now(images: &Path) -> State {
        let setting = |name: &str| fs::read_to_string(Path::new("/proc/sys").join(name)).unwrap_or_default();
        State {
            mounts: mounts(),
            loop_devices: loop_devices(images),
            images: names(images),
            settings: ["vm/drop_caches", "kernel/perf_event_paranoid", "vm/dirty_ratio", "vm/vfs_cache_pressure"]
                .map(setting)
                .into_iter()
                .chain(of_writeback())
                .collect(),
        }
    }
}

/// What a run could have mounted: on a loop device, or where places are. Others may mount what they like meanwhile.
fn mounts() -> Vec<String> {
    let all = fs::read_to_string("/proc/self/mountinfo").expect("the mounts");
    all.lines().filter(|line| line.contains("/dev/loop") || line.contains("/place-")).map(str::to_owned).collect()
}

/// How much may be dirty for each loop device: that stays with its number when another file is attached. Those with a file
/// are somebody else's: ours have none any more.
fn of_writeback() -> Vec<String> {
    let bdis = Path::new("/sys/class/bdi");
    let mut all = Vec::new();
    let is_attached = |name: &str| Path::new("/sys/dev/block").join(name).join("loop/backing_file").exists();
    for device in names(bdis).into_iter().filter(|name| name.starts_with("7:") && !is_attached(name)) {
        let read = |name: &str| fs::read_to_string(bdis.join(&device).join(name)).unwrap_or_default();
        let [strict, ratio] = ["strict_limit", "max_ratio"].map(read);
        // One that is as the kernel creates it says nothing: devices come and go.
        if (strict.trim(), ratio.trim()) != ("0", "100") {
            all.push(format!("{device} {strict} {ratio}"));
        }
    }
    all.sort();
    all
}

/// The names in a directory.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Those that are bound to a file in this directory: others may come and go meanwhile.
pub fn loop_devices(images: &Path) -> Vec<String> {
    let file = |name: &String| fs::read_to_string(Path::new("/sys/block").join(name).join("loop/backing_file"));
    let bound = |name: &String| file(name).is_ok_and(|file| Path::new(file.trim_end()).starts_with(images));
    let mut devices: Vec<String> = names(Path::new("/sys/block")).into_iter().filter(bound).collect();
    devices.sort();
    devices
}

/// Servers of file systems that have an image in this directory open, or serve the file systems on them: those whose
/// inodyne has ended.
pub fn servers_over(images: &Path) -> Vec<String> {
    let is_one = |pid: &String| {
        let process = Path::new("/proc").join(pid);
        let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
        let open = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        let mut open = open.filter_map(|fd| fs::read_link(fd.path()).ok());
        match name.trim() {
            "inodyne-disk" => open.any(|file| file.starts_with(images)),
            "inodyne-fuse" | "inodyne-host" | "inodyne-guest" => {
                fs::read_to_string(process.join("stat")).is_ok_and(|stat| stat.contains(") S 1 "))
            }
            _ => false,
        }
    };
    names(Path::new("/proc")).into_iter().filter(is_one).collect()
}

/// Command lines of processes that contain this word.
pub fn processes_with(word: &str) -> Vec<String> {
    let of = |pid: String| fs::read(Path::new("/proc").join(pid).join("cmdline")).ok();
    let lines = names(Path::new("/proc")).into_iter().filter_map(of);
    lines.map(|line| String::from_utf8_lossy(&line).into_owned()).filter(|line| line.contains(word)).collect()
}

/// How many programs of ours are loaded.
pub fn our_programs() -> usize {
    ProgInfoIter::default().filter(|program| program.name == "calls_enter").count()
}

/// A different number each time, which is printed; `INODYNE_TEST_SEED` repeats a printed one.
pub fn seed() -> u64 {
    let given = std::env::var("INODYNE_TEST_SEED").ok();
    let given = given.map(|seed| seed.parse().expect("INODYNE_TEST_SEED is a number"));
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos() as u64;
    let seed = given.unwrap_or_else(now);
    println!("INODYNE_TEST_SEED={seed}");
    seed
}

/// Random moments.
pub struct Moments(u64);

impl Moments {
    /// Those of a [`seed`].
    pub fn new() -> Moments {
        Moments(seed())
    }

    /// The next one, in milliseconds. A linear congruential generator (Knuth's MMIX constants) is good enough for that.
    pub fn below(&mut self, milliseconds: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % milliseconds
    }
}
