//! Starting processes: the measured command under its guard, and helper processes that run detached from everything else.
//!
//! Builds without clang and without libbpf. Tracing comes in as a descriptor of a BPF program that the command's process
//! runs in its own context ([`start`]); what it does is not known here.
//!
//! | module | what it knows |
//! |---|---|
//! | `command` | a command, held until it is released, its guard, and what they say to each other |
//! | `detach` | how a forked helper process leaves behind its parent's descriptors, terminal and directory |
//! | `signals` | which signals are not for guards and helpers, which were ignored before inodyne began, and how it reads its own |
//! | `search` | where the file of a command is |
//! | `urgent` | how soon a thread gets a CPU |
//! | `user` | users and their groups |
//! | `clock` | the clock by which starts and ends are timed |

mod clock;
mod command;
mod detach;
mod search;
mod signals;
mod urgent;
mod user;

pub use clock::{monotonic_ns, own_cpu_time};
pub use command::{Ended, Input, LaunchError, LaunchSpec, Leftovers, Output, Stage, Started, run_to_end, start};
pub use detach::{all_except, detach};
pub use search::find;
pub use signals::{
    ASKING_TO_END, SignalReader, hear_of_children, is_asked_to_end, is_ignored, take_size_limits_as_errors, unblock_all,
};
pub use urgent::Urgent;
pub use user::User;
