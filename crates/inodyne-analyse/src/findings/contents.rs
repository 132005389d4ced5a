//! Contents that come from the device, through the cache or past it: who waits for them, and how large the requests are.

use inodyne_model::cause::Cause;
use inodyne_model::ledger::PAGE_FAULT;

use super::case::{Case, Time, Waited, total};
use super::families::{opens, reads};

/// Below this size, a request is over before the device has reached its speed. Read-ahead asks for 128 KiB at once.
pub(super) const LARGE_READ: f64 = 65_536.0;

/// Whether the wait is for something that comes from the device through the cache.
fn comes_through_cache(waited: &Waited<'_>) -> bool {
    // When it reads ahead from a busy device, a reader waits for a free request as often as for the contents.
    let is_read = matches!(waited.cause, Cause::DeviceRead | Cause::QueueFull);
    is_read && !waited.is_direct() && !waited.is_copy_up()
}

/// Waits for contents to come from the device through the cache, by calls.
pub(super) fn waiting_for_contents(case: &Case<'_>) -> Time {
    case.waiting(|waited| comes_through_cache(waited) && reads(waited.call))
}

/// The same for mapped files, including programs: by page faults, and in the call that starts a program.
pub(super) fn waiting_for_mapped(case: &Case<'_>) -> Time {
    case.waiting(|waited| comes_through_cache(waited) && matches!(waited.call, PAGE_FAULT | "execve" | "execveat"))
}

/// Waits for contents that bypass the cache on their way to or from the device, by calls.
pub(super) fn waiting_directly(case: &Case<'_>) -> Time {
    case.waiting(|waited| {
        matches!(waited.cause, Cause::DeviceRead | Cause::DeviceWrite) && waited.is_direct() && !waited.is_sync()
    })
}

/// How many requests there are for each file that was opened, given their number.
pub(super) fn for_each_file(case: &Case<'_>, requests: u64) -> f64 {
    let opened = total(case.calls(opens).map(|call| call.calls.saturating_sub(call.errors)));
    requests as f64 / opened.max(1) as f64
}

/// Bytes that calls have read.
pub(super) fn bytes_read(case: &Case<'_>) -> f64 {
    case.calls(reads).filter_map(|call| call.bytes).map(|bytes| bytes as f64).sum()
}

/// Bytes read for each time that a thread waited: by the device's own count where there is one and it is the smaller, otherwise by the calls'.
pub(super) fn bytes_a_wait(case: &Case<'_>, time: &Time) -> f64 {
    let device = case
        .recording
        .run_of(case.index)
        .and_then(|run| run.device_read_bytes)
        .filter(|bytes| *bytes > 0)
        .map(|bytes| bytes as f64);
    let calls = bytes_read(case);
    device.map_or(calls, |device| device.min(calls)) / time.count.max(1) as f64
}
