//! Collect: what the kernel saw of a command.
//!
//! [`Tracer`] loads the BPF programs, follows one command and its descendants and returns sums, tables and a timeline.
//! The command itself is started by `inodyne-launch`; explaining what was seen is left to `inodyne-analyse`.
//!
//! ```text
//! bpf/            the C that all probes share: the contract (intf.h), who is followed, the state machine (clock.h)
//! probes/NAME/    a probe: its BPF C, what it shares with the Rust side (intf.h), and the Rust that reads its tables (mod.rs)
//! probe           what every probe can do;  attach  where its programs run
//! options         what a Tracer is asked to do;  session  its life: load, attach, drain, finish
//! session/load    loading the programs;  session/beside  two at a time
//! session/idle    programs that stay loaded from one run to the next;  session/clear  their maps made as they were
//! session/running waiting until no detached program runs any more
//! session/live    reading again and again while it goes on
//! contract/       the structures of the C as Rust types, and the tests of what their fields mean
//! join            joining threads that are already running
//! map, names      reading maps;  names of system calls;  devices  numbers and names of devices
//! cgroups         what control groups are called
//! call_slots      which call each slot in a thread's account stands for
//! symbols         addresses in kernel stacks to names
//! thread_table    accounts of threads, in a table that grows
//! thread_numbers  numbers of threads in a recording
//! mapped_files    files that processes map as code, for naming functions once the processes are gone
//! shortened       mapped files that others shorten while they are read
//! calibrate       how much longer one cheap call takes with tracing;  cost  what tracing costs a command, measured while it runs
//! perf_event      opening perf's events
//! types/          the kernel's types, of which libbpf is given those that the programs ask about
//! kernel          properties of this kernel that CO-RE cannot ask about
//! map_of_maps     inner maps, and putting them into maps of maps
//! rings           ring buffers that grow
//! refused         what is kept where the kernel refuses a part
//! libbpf_log      keeps what libbpf and the verifier say for the error
//! capability      what this machine lacks
//! ```

mod attach;
mod calibrate;
mod call_slots;
pub mod capability;
mod cgroups;
#[cfg(test)]
mod clock;
mod contract;
mod cost;
mod devices;
mod error;
#[cfg(test)]
mod headers;
mod join;
mod kernel;
mod libbpf_log;
mod map;
mod map_of_maps;
mod mapped_files;
mod names;
mod options;
mod perf_event;
mod probe;
mod probes;
mod refused;
mod rings;
mod session;
mod shortened;
mod skeleton;
mod stacks;
mod symbols;
mod thread_numbers;
mod thread_table;
mod types;

pub use attach::Ran;
pub use error::TraceError;
pub use join::Whom;
pub use names::all as names_of_calls;
pub use options::{NoSuchMarks, Options, RequestMarks};
pub use session::{CostsOfCalls, IdleTracer, LiveTracer, Tracer};
