//! Which class of `page.css` stands for what: a colour for each state, and one for each family of causes.

use inodyne_model::cause::Cause;

use crate::report::state::State;

/// The class of a state.
pub(super) fn of_state(state: State) -> &'static str {
    match state {
        State::User | State::OutsideCalls => "user",
        State::Kernel | State::InCall => "kernel",
        State::Ready => "ready",
        State::Unexplained => "unexplained",
        State::Blocked(cause) => of_cause(cause),
    }
}

fn of_cause(cause: Cause) -> &'static str {
    match cause {
        Cause::DeviceRead | Cause::DeviceWrite | Cause::DeviceFlush => "device",
        Cause::Journal => "journal",
        Cause::InodeLock | Cause::BufferLock | Cause::Lock | Cause::Futex => "lock",
        Cause::WriteThrottle | Cause::QueueFull | Cause::Memory => "limit",
        Cause::FuseServer | Cause::RemoteServer => "server",
        Cause::Pipe | Cause::Socket | Cause::Child | Cause::Poll => "other-end",
        Cause::Sleep | Cause::Stopped => "sleep",
        Cause::Other => "other",
    }
}

/// All classes with what they stand for, for the legends that the script makes.
pub(super) const LEGEND: [(&str, &str); 12] = [
    ("user", "user"),
    ("kernel", "kernel"),
    ("ready", "waiting for a CPU"),
    ("device", "blocked: device"),
    ("journal", "blocked: journal"),
    ("lock", "blocked: lock"),
    ("limit", "blocked: throttle, queue, memory"),
    ("server", "blocked: server"),
    ("other-end", "blocked: child, pipe, socket, poll"),
    ("sleep", "sleep, stopped"),
    ("other", "blocked: other"),
    ("unexplained", "unexplained"),
];
