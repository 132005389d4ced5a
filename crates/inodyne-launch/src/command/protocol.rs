//! What inodyne and the guard say to each other: one fixed-size packet per message over a socket pair.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use inodyne_model::Nanos;
use inodyne_model::run::{Exit, Usage};
use nix::errno::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use super::Ended;

/// A step between fork and the command's first instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Arming the tracer.
    Arm,
    /// Becoming the user.
    User,
    /// Entering the directory.
    Directory,
    /// Finding and executing the file.
    Execute,
    /// Executing a file that was found: what it names to run it is not there.
    Interpret,
    /// Anything else: pipes, signals, memory.
    Prepare,
}

const STAGES: [Stage; 6] =
    [Stage::Arm, Stage::User, Stage::Directory, Stage::Execute, Stage::Interpret, Stage::Prepare];

impl Stage {
    /// One line for the user.
    pub(super) fn explain(self, errno: i32) -> String {
        let reason = Errno::from_raw(errno).desc();
        match (self, errno) {
            (Stage::Execute, libc::ENOENT) => "command not found".to_owned(),
            (Stage::Execute, libc::EACCES) => {
                "permission denied: not an executable file, or not for this user".to_owned()
            }
            (Stage::Execute, libc::EISDIR) => "is a directory, not a command".to_owned(),
            (Stage::Execute, _) => format!("cannot execute: {reason}"),
            (Stage::Interpret, _) => {
                "cannot execute: the interpreter in its first line, or its loader, is missing".to_owned()
            }
            (Stage::Directory, _) => format!("cannot enter this directory: {reason}"),
            (Stage::User, _) => format!("cannot become the user: {reason}"),
            (Stage::Arm, _) => format!("cannot be traced: {reason}"),
            (Stage::Prepare, _) => format!("cannot prepare the process: {reason}"),
        }
    }
}

/// inodyne to guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Let the command go.
    Release,
    /// End, and leave everything else running.
    Leave,
    /// Kill the command and all its descendants, then end.
    Kill,
}

/// Guard to inodyne.
pub enum Report {
    /// The command is held.
    Ready { pid: i32 },
    /// It will not start.
    NotStarted { stage: Stage, errno: i32 },
    /// A signal killed it before it was released.
    Killed { signal: i32 },
    /// It has ended.
    Ended(Ended),
}

const WORDS: usize = 13;
type Packet = [u64; WORDS];

/// One end of the pair.
pub struct Channel(OwnedFd);

impl Channel {
    /// Both ends, closed on exec.
    pub fn pair() -> io::Result<(Channel, Channel)> {
        let (ours, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Channel(ours), Channel(theirs)))
    }

    pub fn order(&self, order: Order) -> io::Result<()> {
        let mut packet = Packet::default();
        packet[0] = order as u64;
        self.send(&packet)
    }

    /// None where the other end is gone.
    pub fn next_order(&self) -> io::Result<Option<Order>> {
        Ok(self.receive()?.map(|packet| match packet[0] {
            0 => Order::Release,
            1 => Order::Leave,
            _ => Order::Kill,
        }))
    }

    pub fn send_report(&self, report: &Report) -> io::Result<()> {
        self.send(&encode(report))
    }

    /// None where the other end is gone.
    pub fn report(&self) -> io::Result<Option<Report>> {
        Ok(self.receive()?.map(|packet| decode(&packet)))
    }

    fn send(&self, packet: &Packet) -> io::Result<()> {
        rustix::net::send(&self.0, bytemuck::cast_slice(packet), SendFlags::NOSIGNAL)?;
        Ok(())
    }

    fn receive(&self) -> io::Result<Option<Packet>> {
        let mut packet = Packet::default();
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut packet);
        let length = rustix::io::retry_on_intr(|| rustix::net::recv(&self.0, &mut *bytes, RecvFlags::empty()));
        match length {
            Ok((_, 0)) | Err(rustix::io::Errno::CONNRESET) => Ok(None),
            Ok(_) => Ok(Some(packet)),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn encode(report: &Report) -> Packet {
    let mut packet = Packet::default();
    match report {
        Report::Ready { pid } => packet[..2].copy_from_slice(&[0, *pid as u64]),
        Report::NotStarted { stage, errno } => packet[..3].copy_from_slice(&[1, *stage as u64, *errno as u64]),
        Report::Killed { signal } => packet[..2].copy_from_slice(&[2, *signal as u64]),
        Report::Ended(e) => {
            let (kind, code) = match e.exit {
                Exit::Code(code) => (0, code),
                Exit::Signal(signal) => (1, signal),
            };
            packet = [
                3,
                e.released_ns.0,
                e.ended_ns.0,
                kind,
                code as u64,
                e.usage.user_ns.0,
                e.usage.sys_ns.0,
                e.usage.voluntary_switches,
                e.usage.involuntary_switches,
                e.usage.major_faults,
                e.usage.minor_faults,
                e.usage.max_rss_bytes,
                e.left_running.into(),
            ];
        }
    }
    packet
}

fn decode(packet: &Packet) -> Report {
    match packet[0] {
        0 => Report::Ready { pid: packet[1] as i32 },
        1 => Report::NotStarted { stage: STAGES[packet[1] as usize % STAGES.len()], errno: packet[2] as i32 },
        2 => Report::Killed { signal: packet[1] as i32 },
        _ => Report::Ended(Ended {
            released_ns: Nanos(packet[1]),
            ended_ns: Nanos(packet[2]),
            exit: if packet[3] == 0 { Exit::Code(packet[4] as i32) } else { Exit::Signal(packet[4] as i32) },
            usage: Usage {
                user_ns: Nanos(packet[5]),
                sys_ns: Nanos(packet[6]),
                voluntary_switches: packet[7],
                involuntary_switches: packet[8],
                major_faults: packet[9],
                minor_faults: packet[10],
                max_rss_bytes: packet[11],
            },
            left_running: packet[12] as u32,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_arrive_as_they_were_sent() {
        let (ours, theirs) = Channel::pair().unwrap();
        theirs.send_report(&Report::NotStarted { stage: Stage::Execute, errno: libc::ENOENT }).unwrap();
        assert!(matches!(
            ours.report().unwrap(),
            Some(Report::NotStarted { stage: Stage::Execute, errno: libc::ENOENT })
        ));
        theirs.send_report(&Report::Killed { signal: libc::SIGTERM }).unwrap();
        assert!(matches!(ours.report().unwrap(), Some(Report::Killed { signal: libc::SIGTERM })));
        let ended = Ended {
            released_ns: Nanos(1),
            ended_ns: Nanos(2),
            exit: Exit::Signal(9),
            usage: Usage {
                user_ns: Nanos(3),
                sys_ns: Nanos(4),
                voluntary_switches: 5,
                involuntary_switches: 6,
                major_faults: 7,
                minor_faults: 8,
                max_rss_bytes: 9,
            },
            left_running: 10,
        };
        theirs.send_report(&Report::Ended(ended)).unwrap();
        assert!(matches!(ours.report().unwrap(), Some(Report::Ended(arrived)) if arrived == ended));
        drop(theirs);
        assert!(ours.report().unwrap().is_none());
    }
}
