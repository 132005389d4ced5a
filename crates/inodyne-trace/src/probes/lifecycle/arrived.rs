//! What has arrived about lives while the trace runs. All of it is kept until the end, and a long build has a million of them: so each record
//! is cut down to what is read then.

use crate::contract::{COMM_LENGTH, Thread};
use crate::map::{record, record_from};
use super::contract::{
    ExitRecord, PROGRAM_ARGS, ProgramRecord, RECORD_EXIT, RECORD_PROGRAM, RECORD_THREAD, ThreadRecord,
};

/// What has arrived so far.
#[derive(Default)]
pub(super) struct Arrived {
    pub(super) threads: Vec<Ended>,
    pub(super) programs: Vec<Exec>,
    pub(super) exits: Vec<ExitRecord>,
}

impl Arrived {
    /// Takes the next record.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        match bytes.first_chunk().map(|kind| u32::from_ne_bytes(*kind)) {
            Some(RECORD_THREAD) => self.threads.push(Ended::of(&record_from::<ThreadRecord>(bytes).thread)),
            Some(RECORD_PROGRAM) => self.programs.push(Exec::of(&record(bytes))),
            Some(RECORD_EXIT) => self.exits.push(record(bytes)),
            _ => unreachable!("the programs send three kinds of records"),
        }
    }
}

/// The account of a thread when it is closed: [`Thread`] without what only the kernel side and the state machine need.
pub(super) struct Ended {
    pub(super) number: u32,
    pub(super) parent: u32,
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) pid_here: u32,
    pub(super) flags: u8,
    pub(super) comm: [u8; COMM_LENGTH],
    pub(super) cgroup: u64,
    pub(super) born: u64,
    pub(super) ended: u64,
    pub(super) user_ns: u64,
    pub(super) ready_ns: u64,
    pub(super) blocked_ns: u64,
    pub(super) runtime: u64,
    pub(super) waits: u64,
    pub(super) preemptions: u64,
    pub(super) calls: u64,
    pub(super) untimed_ns: u64,
    pub(super) stood_ns: u64,
    /// The nonzero entries of `kernel_ns`, each with its slot.
    pub(super) kernel: Box<[(u8, u64)]>,
}

impl Ended {
    /// From an account.
    pub(super) fn of(thread: &Thread) -> Ended {
        let kernel = (0u8..).zip(thread.kernel_ns).filter(|(_, ns)| *ns > 0);
        Ended {
            number: thread.number,
            parent: thread.parent,
            pid: thread.pid,
            tid: thread.tid,
            pid_here: thread.pid_here,
            flags: thread.flags,
            comm: thread.comm,
            cgroup: thread.cgroup,
            born: thread.born,
            ended: thread.ended,
            user_ns: thread.user_ns,
            ready_ns: thread.ready_ns,
            blocked_ns: thread.blocked_ns,
            runtime: thread.runtime,
            waits: thread.waits,
            preemptions: thread.preemptions,
            calls: thread.calls,
            untimed_ns: thread.untimed_ns,
            stood_ns: thread.stood_ns,
            kernel: kernel.collect(),
        }
    }
}

/// An executed program: [`ProgramRecord`] without the unused ends of its fields.
pub(super) struct Exec {
    pub(super) thread: u32,
    pub(super) pid: u32,
    pub(super) at: u64,
    /// Of all arguments, including those that are not kept.
    pub(super) args_length: u32,
    pub(super) file: Box<[u8]>,
    pub(super) args: Box<[u8]>,
}

impl Exec {
    /// From a record.
    pub(super) fn of(record: &ProgramRecord) -> Exec {
        let file = record.file.split(|byte| *byte == 0).next().unwrap_or_default();
        Exec {
            thread: record.thread,
            pid: record.pid,
            at: record.at,
            args_length: record.args_length,
            file: file.into(),
            args: record.args[..(record.args_length as usize).min(PROGRAM_ARGS)].into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;

    use super::*;
    use crate::contract::CALL_SLOTS;

    #[test]
    fn of_a_record_no_more_is_kept_than_is_in_it() {
        let mut thread = Thread::zeroed();
        (thread.kernel_ns[3], thread.kernel_ns[CALL_SLOTS - 1]) = (5, 7);
        let kernel: &[(u8, u64)] = &[(3, 5), (CALL_SLOTS as u8 - 1, 7)];
        assert_eq!(&*Ended::of(&thread).kernel, kernel);
        let mut program = ProgramRecord::zeroed();
        program.file[..2].copy_from_slice(b"/a");
        program.args[..4].copy_from_slice(b"b\0c\0");
        program.args_length = 4;
        let kept = Exec::of(&program);
        assert_eq!((&*kept.file, &*kept.args), (&b"/a"[..], &b"b\0c\0"[..]));
        program.args_length = 5_000;
        assert_eq!(Exec::of(&program).args.len(), PROGRAM_ARGS);
        assert!(size_of::<Ended>() + size_of::<Exec>() < 300);
    }
}
