//! Frames in user mode to function names, including those of processes that are gone.
//!
//! The kernel side gives a frame as the build id of its file and the offset in it. The file with this build id is looked
//! for where it most likely lies: among the files that the command's processes had mapped when they were looked at, the
//! programs that they executed, what this process has mapped, and the libraries that the dynamic linker knows. Its symbols (or
//! those of its separate debug file, by debug link) give the function, and debug information those inlined into it. A file that
//! is not found there leaves its frames without names.
//!
//! What lies in no file may be code that a program generated while it ran: then `/tmp/perf-PID.map`, which such programs can
//! write, names it; but only where it belongs to a user as which the process was seen to run, or to root: everybody can make a file of that
//! name. Anything else that lies in no file is not code at all, but what a program without frame pointers had in
//! that register: the stack ends before it, and is marked as cut off.
//!
//! These files are anybody's: one may be on a mount whose server does not answer, and where debug information is looked for there may be a
//! pipe. So a thread of its own reads them, and what it has not named in a long time stays without names. They are mapped, and may be
//! shortened meanwhile: see `shortened`.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use blazesym::helper::read_elf_build_id;
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Sym, Symbolized, Symbolizer};
use inodyne_model::observed::Program;
use inodyne_model::stack::{Frame, Stack, StackId};

use super::contract::{FRAME_IN_FILE, UserFrame, UserFrames};
use crate::contract::STACK_DEPTH;
use crate::mapped_files::{Users, mapped_in};
use crate::shortened;

const LINKER_CACHE: &str = "/etc/ld.so.cache";
/// A map of generated code is read no further than this.
const LARGEST_PERF_MAP: u64 = 64 << 20;

/// The longest wait for one file. With all debug information that a browser has, some seconds pass.
const LONGEST: Duration = Duration::from_secs(60);

/// As much as a program's first thread usually has: functions may be inlined into each other to any depth.
const STACK_BYTES: usize = 8 << 20;

type BuildId = [u8; 20];
/// The functions at places in a file.
type Named = HashMap<u64, Vec<Frame>>;

/// Names every frame of every stack.
pub fn name_stacks(
    stacks: &[(u64, UserFrames)],
    programs: &[Program],
    mapped: &BTreeSet<PathBuf>,
    users: &Users,
) -> Vec<Stack> {
    let mut wanted: HashMap<BuildId, BTreeSet<u64>> = HashMap::new();
    for (at, frame) in stacks.iter().flat_map(|(_, stack)| frames(stack).enumerate()) {
        if is_in_file(frame) {
            wanted.entry(frame.build_id).or_default().insert(place(at, frame));
        }
    }
    let executed = programs.iter().map(|program| PathBuf::from(&program.file)).filter(|path| path.is_absolute());
    let files: Vec<PathBuf> = mapped.iter().cloned().chain(executed).collect();
    let named = within(LONGEST, move |told| name_all(&wanted, files, told));
    let mut maps = PerfMaps { users, read: HashMap::new() };
    let named: HashMap<BuildId, Named> = named.into_iter().collect();
    let mut named: Vec<Stack> = stacks.iter().map(|(id, stack)| name_stack(*id, stack, &named, &mut maps)).collect();
    named.sort_by_key(|stack| stack.id);
    named
}

/// What a thread of its own has sent, until it ends or sends nothing for so long. Each message may have something, or say that it goes on.
fn within<T: Send + 'static>(longest: Duration, work: impl FnOnce(&Sender<Option<T>>) + Send + 'static) -> Vec<T> {
    let (telling, told) = channel();
    let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || work(&telling));
    let Ok(thread) = thread else { return Vec::new() };
    let mut all = Vec::new();
    loop {
        match told.recv_timeout(longest) {
            Ok(next) => all.extend(next),
            Err(RecvTimeoutError::Disconnected) => {
                let _ = thread.join();
                return all;
            }
            // It is left behind.
            Err(RecvTimeoutError::Timeout) => return all,
        }
    }
}

fn name_all(wanted: &HashMap<BuildId, BTreeSet<u64>>, files: Vec<PathBuf>, told: &Sender<Option<(BuildId, Named)>>) {
    shortened::read_as_zeroes();
    // Nobody may be listening any more; then it does not matter.
    let goes_on = || drop(told.send(None));
    let found = find_files(wanted.keys().copied().collect(), files, &goes_on);
    // With line information, which is where inlined functions are found.
    let symbolizer = Symbolizer::new();
    for (id, path) in found {
        if let Some(places) = wanted.get(&id) {
            drop(told.send(Some((id, name_places(&symbolizer, &path, places)))));
        }
    }
}

fn frames(stack: &UserFrames) -> impl Iterator<Item = &UserFrame> {
    stack.frame.iter().take((stack.depth as usize).min(STACK_DEPTH))
}

/// Whether the kernel found it in a file. For an address in no mapping it takes the next mapping above, and gives a place before
/// that one's beginning (`stack_map_get_build_id_offset`, kernel/bpf/stackmap.c): a negative number.
fn is_in_file(frame: &UserFrame) -> bool {
    frame.status == FRAME_IN_FILE && frame.place.cast_signed() >= 0
}

/// All frames but the first are return addresses: the call is the instruction before, and may be the last of its function.
fn place(at: usize, frame: &UserFrame) -> u64 {
    frame.place.saturating_sub(u64::from(at > 0))
}

fn name_stack(
    id: u64,
    stack: &UserFrames,
    named: &HashMap<BuildId, Named>,
    maps: &mut PerfMaps<'_>,
) -> Stack {
    let mut truncated = stack.depth as usize >= STACK_DEPTH;
    let mut all = Vec::new();
    for (at, frame) in frames(stack).enumerate() {
        let place = place(at, frame);
        if is_in_file(frame) {
            match named.get(&frame.build_id).and_then(|places| places.get(&place)) {
                Some(names) => all.extend(names.iter().cloned()),
                None => all.push(Frame::Unknown { address: place }),
            }
        } else if let Some(name) = maps.name(stack.pid, place) {
            all.push(Frame::Symbol(name));
        } else if at == 0 {
            all.push(Frame::Unknown { address: place });
        } else {
            truncated = true;
            break;
        }
    }
    Stack { id: StackId(id), frames: all, truncated }
}

/// The files with these build ids, as far as they are found.
fn find_files(mut wanted: BTreeSet<BuildId>, files: Vec<PathBuf>, goes_on: &dyn Fn()) -> HashMap<BuildId, PathBuf> {
    let mut found = HashMap::new();
    let own = mapped_in("self").into_iter().chain(known_to_the_linker());
    let mut seen = BTreeSet::new();
    for path in files.into_iter().chain(own) {
        if wanted.is_empty() {
            break;
        }
        goes_on();
        if !seen.insert(path.clone()) {
            continue;
        }
        if let Some(id) = build_id(&path).filter(|id| wanted.remove(id)) {
            found.insert(id, path);
        }
    }
    found
}

/// A file's build id as the kernel has it: 20 bytes, with zeroes after a shorter one.
fn build_id(path: &Path) -> Option<BuildId> {
    // A device or pipe of this name would block, or worse.
    if !std::fs::metadata(path).is_ok_and(|data| data.is_file()) {
        return None;
    }
    let read = read_elf_build_id(&path).ok()??;
    let mut id = BuildId::default();
    id.get_mut(..read.len())?.copy_from_slice(&read);
    Some(id)
}

/// Every absolute path in the linker's cache, whose strings all end in a zero byte.
fn known_to_the_linker() -> Vec<PathBuf> {
    let cache = std::fs::read(LINKER_CACHE).unwrap_or_default();
    let texts = cache.split(|byte| *byte == 0).filter(|text| text.first() == Some(&b'/'));
    texts.filter_map(|text| std::str::from_utf8(text).ok()).map(PathBuf::from).collect()
}

/// The functions at each place, the innermost inlined one first.
fn name_places(symbolizer: &Symbolizer, path: &Path, places: &BTreeSet<u64>) -> Named {
    let places: Vec<u64> = places.iter().copied().collect();
    let file = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let symbols = symbolizer.symbolize(&Source::Elf(Elf::new(path)), Input::FileOffset(&places)).unwrap_or_default();
    let mut named = Named::new();
    for (index, place) in places.into_iter().enumerate() {
        let functions = match symbols.get(index) {
            Some(Symbolized::Sym(symbol)) => functions(symbol),
            _ => vec![Frame::InFile { file: file.clone(), offset: place }],
        };
        named.insert(place, functions);
    }
    named
}

fn functions(symbol: &Sym<'_>) -> Vec<Frame> {
    let inlined = symbol.inlined.iter().rev().map(|function| function.name.to_string());
    inlined.chain([symbol.name.to_string()]).map(Frame::Symbol).collect()
}

/// The maps of generated code, by process: each function's first address, length and name.
struct PerfMaps<'a> {
    users: &'a Users,
    read: HashMap<u32, Vec<(u64, u64, String)>>,
}

impl PerfMaps<'_> {
    fn name(&mut self, pid: u32, address: u64) -> Option<String> {
        // Whoever has this number now may be another process.
        let is_its = |owner| owner == 0 || self.users.contains(&(pid, owner));
        let read = || read_perf_map(Path::new(&format!("/tmp/perf-{pid}.map")), is_its);
        let functions = self.read.entry(pid).or_insert_with(|| read().unwrap_or_default());
        let after = functions.partition_point(|(start, ..)| *start <= address);
        let (start, length, name) = functions.get(after.checked_sub(1)?)?;
        (address - start < *length).then(|| name.clone())
    }
}

/// The traced user owns the file and its directory: no link is followed, and nothing but a file is read.
fn read_perf_map(path: &Path, is_its: impl Fn(u32) -> bool) -> Option<Vec<(u64, u64, String)>> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
    let found = file.metadata().ok()?;
    if !found.is_file() || !is_its(found.uid()) {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(LARGEST_PERF_MAP).read_to_end(&mut bytes).ok()?;
    Some(perf_map(&String::from_utf8_lossy(&bytes)))
}

fn perf_map(text: &str) -> Vec<(u64, u64, String)> {
    let hex = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok();
    let function = |line: &str| {
        let mut words = line.splitn(3, ' ');
        Some((hex(words.next()?)?, hex(words.next()?)?, words.next()?.to_owned()))
    };
    // A label that is no longer than nothing is nowhere, and hides what begins there.
    let is_somewhere = |(_, length, _): &(u64, u64, String)| *length > 0;
    let mut functions: Vec<_> = text.lines().filter_map(function).filter(is_somewhere).collect();
    // Those at the same address stay in the order in which they were written: the last one was there last.
    functions.sort_by_key(|(start, ..)| *start);
    functions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::planted::{every_field_counts, planted};

    unsafe extern "C" {
        fn host_plant_user_frames(to: *mut UserFrames);
    }

    #[test]
    fn every_part_of_a_stack_reaches_its_meaning() {
        let planted: UserFrames = planted(host_plant_user_frames);
        // 802 in the file of this build id, then an address of process 801 that its map of generated code names.
        let id: BuildId = std::array::from_fn(|at| if at == 0 { 9 } else { 0 });
        let named = |stack: &UserFrames| {
            let functions = HashMap::from([(802, vec![Frame::Symbol("f".to_owned())])]);
            let read = HashMap::from([(801, vec![(802, 1, "g".to_owned())])]);
            let mut maps = PerfMaps { users: &Users::new(), read };
            name_stack(1, stack, &HashMap::from([(id, functions)]), &mut maps)
        };
        let stack = named(&planted);
        assert_eq!(stack.frames, [Frame::Symbol("f".to_owned()), Frame::Symbol("g".to_owned())]);
        assert!(!stack.truncated);
        every_field_counts("user_frames", planted, &[], named);
        every_field_counts("user_frame", planted.frame[0], &[], |frame| {
            let mut changed = planted;
            changed.frame[0] = *frame;
            named(&changed)
        });
    }

    fn in_file(build_id: BuildId, place: u64) -> UserFrame {
        UserFrame { status: FRAME_IN_FILE, build_id, place }
    }

    fn stack(all: &[UserFrame]) -> UserFrames {
        let none = UserFrame { status: 0, build_id: BuildId::default(), place: 0 };
        let mut frame = [none; STACK_DEPTH];
        frame[..all.len()].copy_from_slice(all);
        UserFrames { depth: all.len() as u32, pid: 0, frame }
    }

    #[test]
    fn what_lies_before_a_file_is_no_code_of_it() {
        let id = BuildId::default();
        let before = in_file(id, 5_u64.wrapping_sub(4096));
        let functions = HashMap::from([(id, HashMap::from([(802, vec![Frame::Symbol("f".to_owned())])]))]);
        let mut maps = PerfMaps { users: &Users::new(), read: HashMap::new() };
        let named = name_stack(1, &stack(&[in_file(id, 802), before]), &functions, &mut maps);
        assert_eq!(named.frames, [Frame::Symbol("f".to_owned())]);
        assert!(named.truncated, "a program without frame pointers had that in the register");
    }

    /// Marked, so that its address is that of code in this very file.
    #[inline(never)]
    extern "C" fn a_function_to_be_found(n: u64) -> u64 {
        std::hint::black_box(n + 1)
    }

    /// The offset in the file of an address of this process.
    fn offset_here(address: u64) -> (PathBuf, u64) {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("our own mappings");
        let found = maps.lines().find_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (start, end) = words[0].split_once('-')?;
            let hex = |word| u64::from_str_radix(word, 16).expect("hexadecimal");
            let inside = (hex(start)..hex(end)).contains(&address);
            inside.then(|| (PathBuf::from(words[5]), address - hex(start) + hex(words[2])))
        });
        found.expect("an address of ours")
    }

    #[test]
    fn a_function_is_found_by_build_id_and_offset_alone() {
        std::hint::black_box(a_function_to_be_found(1));
        let (path, offset) = offset_here(a_function_to_be_found as *const () as u64);
        let Some(id) = build_id(&path) else { panic!("{} has no build id", path.display()) };
        let named = name_stacks(&[(7, stack(&[in_file(id, offset + 1)]))], &[], &BTreeSet::new(), &Users::new());
        let name = named[0].frames.last().and_then(Frame::symbol).expect("a name");
        assert!(name.contains("a_function_to_be_found"), "{named:?}");
    }

    #[test]
    fn a_file_that_is_never_read_holds_nobody_up() {
        let (release, released) = channel::<()>();
        let found = within(Duration::from_millis(100), move |told| {
            told.send(Some(1)).expect("it is listened to");
            told.send(None).expect("it is listened to");
            let _ = released.recv();
            let _ = told.send(Some(2));
        });
        assert_eq!(found, [1]);
        drop(release);
        assert_eq!(within(LONGEST, |told| _ = told.send(Some(3))), [3]);
    }

    #[test]
    fn what_is_no_code_ends_the_stack() {
        let garbage = UserFrame { status: 2, build_id: BuildId::default(), place: 3 };
        let stacks = [(7, stack(&[in_file([9; 20], 5), garbage, garbage]))];
        let named = name_stacks(&stacks, &[], &BTreeSet::new(), &Users::new());
        assert_eq!(named[0].frames, [Frame::Unknown { address: 5 }]);
        assert!(named[0].truncated);
    }

    #[test]
    fn generated_code_is_named_by_its_map() {
        let functions = perf_map("7f00 10 first\nnonsense\n0x7f20 8 LazyCompile:~ second function\n");
        let mut maps = PerfMaps { users: &Users::new(), read: HashMap::from([(4, functions)]) };
        let names = [0x7eff, 0x7f00, 0x7f0f, 0x7f10, 0x7f27, 0x7f28].map(|address| maps.name(4, address));
        let (first, second) = (Some("first".to_owned()), Some("LazyCompile:~ second function".to_owned()));
        assert_eq!(names, [None, first.clone(), first, None, second, None]);
        // Where a function was that is gone, another one is put, which may be shorter.
        let functions = perf_map("7f00 20 gone\n7f40 8 other\n7f00 10 there\n7f00 0 label\n");
        let mut maps = PerfMaps { users: &Users::new(), read: HashMap::from([(4, functions)]) };
        assert_eq!([0x7f08, 0x7f18].map(|address| maps.name(4, address)), [Some("there".to_owned()), None]);
    }

    /// A number that no process has, so that the file can only be this test's.
    #[test]
    fn a_map_of_another_user_names_nothing() {
        const NOBODYS: u32 = u32::MAX;
        let path = format!("/tmp/perf-{NOBODYS}.map");
        std::fs::write(&path, "7f00 10 first\n").expect("written");
        let own = rustix::process::geteuid().as_raw();
        let owner = if own == 0 { 65534 } else { own };
        let given = std::os::unix::fs::chown(&path, Some(owner), None);
        let name = |users: &Users| PerfMaps { users, read: HashMap::new() }.name(NOBODYS, 0x7f00);
        let others = name(&Users::from([(NOBODYS, owner - 1), (1, owner)]));
        let its = name(&Users::from([(NOBODYS, owner)]));
        std::fs::remove_file(&path).expect("it is there");
        given.expect("it is given");
        assert_eq!((others, its.as_deref()), (None, Some("first")));
    }
}
