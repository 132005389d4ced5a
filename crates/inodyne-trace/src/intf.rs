//! The Rust twin of `bpf/intf.h`: every structure that lies in a map or travels through a ring buffer, field by field.
//! What the fields mean is said there. The test below compares sizes and offsets with the C compiler's.

use bytemuck::{Pod, Zeroable};

pub const CALLS_64: usize = 512;
pub const CALL_INVALID: usize = 511;
pub const CALLS: usize = 2 * CALLS_64;
pub const CALL_NONE: u16 = 0xffff;
pub const GROUPS: usize = 256;
pub const GROUP_CALIBRATION: usize = 0;
pub const ORDINALS: usize = 128;
pub const ORDINAL_OTHERS: usize = ORDINALS - 1;
pub const ERRNO_PLAIN: usize = 134;
pub const ERRNO_RESTARTS: usize = 5;
pub const ERRNO_OTHERS: usize = ERRNO_PLAIN + ERRNO_RESTARTS;
pub const ERRNO_SLOTS: usize = ERRNO_OTHERS + 1;
pub const COMM_LENGTH: usize = 16;
pub const STACK_DEPTH: usize = 64;
/// `enum bpf_stack_build_id_status`: the frame lies in a file with a build id.
pub const FRAME_IN_FILE: i32 = 1;
pub const STATE_READY: u8 = 1;
pub const STATE_BLOCKED: u8 = 2;
pub const FLAG_EXITING: u8 = 2;
pub const FLAG_HELPER: u8 = 16;
pub const FLAG_KTHREAD: u8 = 32;
pub const HELPER_FIRST: u32 = 1 << 31;
pub const WAKER_TRACED: u8 = 1;
pub const WAKER_PROCESS: u8 = 2;
pub const WAKER_KTHREAD: u8 = 3;
pub const WAKER_INTERRUPT: u8 = 4;
pub const RECORD_THREAD: u32 = 1;
pub const RECORD_PROGRAM: u32 = 2;
pub const TIMELINE_INTERVAL: u32 = 1;
pub const TIMELINE_WORK: u32 = 2;
pub const PROGRAM_FILE: usize = 256;
pub const PROGRAM_ARGS: usize = 1024;
pub const PATH_KEPT: usize = 256;
pub const PATH_NAMES: usize = 16;
pub const PATH_NAME: usize = 64;
pub const HISTOGRAM_BUCKETS: usize = inodyne_model::histogram::BUCKETS;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Thread {
    pub task: u64,
    pub since: u64,
    pub user_ns: u64,
    pub call_start: u64,
    pub call_blocked_ns: u64,
    pub call_ready_ns: u64,
    pub call: u16,
    pub group: u16,
    pub state: u8,
    pub flags: u8,
    pub depth: u8,
    pub unused: u8,
    pub number: u32,
    pub touched: [u32; ORDINALS / 32],
    pub unused1: u32,
    pub wake_ns: u64,
    pub stack: u64,
    pub waker_stack: u64,
    pub waker_tid: u32,
    pub waker: u8,
    pub unused2: [u8; 3],
    pub waker_number: u32,
    pub slot: u32,
    pub ready_ns: u64,
    pub blocked_ns: u64,
    pub waits: u64,
    pub preemptions: u64,
    pub unseen_ns: u64,
    pub born: u64,
    pub ended: u64,
    pub runtime_start: u64,
    pub runtime: u64,
    pub parent: u32,
    pub pid: u32,
    pub tid: u32,
    pub unused3: u32,
    pub comm: [u8; COMM_LENGTH],
    pub kernel_ns: [u64; ORDINALS],
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Cell {
    pub calls: u64,
    pub errors: u64,
    pub wall_ns: u64,
    pub blocked_ns: u64,
    pub ready_ns: u64,
    pub min_ns: u64,
    pub max_ns: u64,
    pub failed_ns: u64,
    pub bytes: u64,
    pub histogram: [u64; HISTOGRAM_BUCKETS],
    pub errnos: [u32; ERRNO_SLOTS],
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct WaitKey {
    pub thread: u32,
    pub call: u16,
    pub waker: u8,
    pub unused: u8,
    pub stack: u64,
    pub waker_stack: u64,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct WaitSum {
    pub ns: u64,
    pub count: u64,
    pub max_ns: u64,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct SampleKey {
    pub thread: u32,
    pub call: u16,
    pub user_mode: u8,
    pub blocked: u8,
    pub stack: u64,
    pub user_stack: u64,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct StackFrames {
    pub depth: u32,
    pub truncated: u32,
    pub address: [u64; STACK_DEPTH],
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct UserFrame {
    pub status: i32,
    pub build_id: [u8; 20],
    pub place: u64,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct UserFrames {
    pub depth: u32,
    pub pid: u32,
    pub frame: [UserFrame; STACK_DEPTH],
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct ThreadRecord {
    pub kind: u32,
    pub unused: u32,
    pub thread: Thread,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct ProgramRecord {
    pub kind: u32,
    pub thread: u32,
    pub pid: u32,
    pub args_length: u32,
    pub at: u64,
    pub file: [u8; PROGRAM_FILE],
    pub args: [u8; PROGRAM_ARGS],
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct IntervalRecord {
    pub kind: u32,
    pub thread: u32,
    pub waker_tid: u32,
    pub waker_number: u32,
    pub out: u64,
    pub wake: u64,
    pub back: u64,
    pub stack: u64,
    pub waker_stack: u64,
    pub call: u16,
    pub waker: u8,
    pub unused: [u8; 5],
}

/// A `struct work_record` without its parts.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct WorkHead {
    pub kind: u32,
    pub thread: u32,
    pub at: u64,
    pub count: u32,
    pub unused: u32,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct WorkPart {
    pub ordinal: u32,
    pub unused: u32,
    pub ns: u64,
}

/// The start of `struct walk`: the rest is the kernel side's own business.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct DtypeTotals {
    pub reads: u64,
    pub entries: u64,
    pub unknown: u64,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct DtypeFs {
    pub reads: u64,
    pub entries: u64,
    pub unknown: u64,
    pub fs: [u8; COMM_LENGTH],
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct DirectoryKey {
    pub inode: u64,
    pub device: u32,
    pub unused: u32,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Directory {
    pub entries: u64,
    pub unknown: u64,
    pub names: u32,
    pub cut: u32,
    pub name: [u8; PATH_NAMES * PATH_NAME],
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct ForcedKey {
    pub thread: u32,
    pub call: u16,
    pub directory: u8,
    pub unused: u8,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct ForcedSum {
    pub calls: u64,
    pub wall_ns: u64,
    pub blocked_ns: u64,
    pub ready_ns: u64,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct PathCount {
    pub calls: u64,
    pub not_found: u64,
    pub wall_ns: u64,
    pub length: u32,
    pub call: u16,
    pub cut: u8,
    pub unused: u8,
    pub path: [u8; PATH_KEPT],
}

/// The losses, in the order of `enum loss`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Losses {
    pub calls: u64,
    pub threads: u64,
    pub records: u64,
    pub intervals: u64,
    pub waits: u64,
    pub samples: u64,
    pub stacks: u64,
    pub dtype: u64,
    pub work: u64,
    pub helpers: u64,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Shared {
    pub lost: Losses,
    pub paths_not_kept: u64,
    pub threads_born: u32,
    pub slots_used: u32,
    pub groups: u32,
    pub cells: u32,
    pub ordinals: u32,
    pub untyped: u32,
    pub helpers_born: u32,
    pub helpers_alive: u32,
    pub tracer: u32,
    pub user_stacks: u32,
}

/// A C string in a fixed field, up to its zero byte; bytes that are not UTF-8 are replaced.
pub fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    unsafe extern "C" {
        static host_sizes: [usize; 19];
        static host_offsets: [usize; 13];
        fn host_bucket_of(ns: u64) -> u32;
    }

    #[test]
    fn layout() {
        let sizes = [
            size_of::<Thread>(),
            size_of::<Cell>(),
            size_of::<WaitKey>(),
            size_of::<WaitSum>(),
            size_of::<SampleKey>(),
            size_of::<StackFrames>(),
            size_of::<ThreadRecord>(),
            size_of::<ProgramRecord>(),
            size_of::<IntervalRecord>(),
            size_of::<DtypeFs>(),
            size_of::<DirectoryKey>(),
            size_of::<Directory>(),
            size_of::<ForcedKey>(),
            size_of::<ForcedSum>(),
            size_of::<Shared>(),
            size_of::<PathCount>(),
            size_of::<WorkPart>(),
            size_of::<WorkHead>(),
            size_of::<UserFrames>(),
        ];
        let offsets = [
            offset_of!(Thread, number),
            offset_of!(Thread, waker),
            offset_of!(Thread, born),
            offset_of!(Thread, comm),
            offset_of!(Thread, kernel_ns),
            offset_of!(Cell, histogram),
            offset_of!(Cell, errnos),
            offset_of!(ProgramRecord, args),
            offset_of!(IntervalRecord, call),
            offset_of!(Directory, name),
            offset_of!(Shared, untyped),
            offset_of!(PathCount, path),
            offset_of!(Thread, slot),
        ];
        // SAFETY: constant arrays of exactly these lengths, defined in host.c.
        unsafe {
            assert_eq!(sizes, host_sizes);
            assert_eq!(offsets, host_offsets);
        }
    }

    #[test]
    fn histogram_twins() {
        for exponent in 0..64 {
            for offset in [-1i64, 0, 1, 3, 7] {
                let ns = (1u64 << exponent).wrapping_add_signed(offset);
                // SAFETY: a pure function.
                let kernel = unsafe { host_bucket_of(ns) };
                assert_eq!(kernel as usize, inodyne_model::histogram::bucket_of(ns), "{ns}");
            }
        }
    }
}
