//! Contents that come from the device, through the cache or past it: who waits for them, and how large the requests are.

use inodyne_model::cause::Cause;
use inodyne_model::ledger::{PAGE_FAULT, RowKind};

use super::at_device::is_own_content;
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

/// Work on a CPU in page faults for mapped files, in nanoseconds: fresh memory takes faults as well. Where none was sampled, all of it.
pub(super) fn work_in_faults_of_files(case: &Case<'_>) -> f64 {
    let is_fault = |call: &str| call == PAGE_FAULT;
    let all = case.sampled_in(is_fault, |_| true).ns;
    let of_files = case.sampled_in(is_fault, |function| {
        matches!(
            function,
            "do_fault"
                | "__do_fault"
                | "do_read_fault"
                | "do_cow_fault"
                | "do_shared_fault"
                | "do_fault_around"
                | "filemap_fault"
                | "filemap_map_pages"
        )
    });
    let part = if all > 0.0 { of_files.ns / all } else { 1.0 };
    part * case.ledger(|row| row.kind == RowKind::Kernel && row.syscall.as_deref() == Some(PAGE_FAULT))
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

/// Bytes read for each time that a thread waited: by the devices' own count where there is one and it is the smaller, otherwise by the calls'.
pub(super) fn bytes_a_wait(case: &Case<'_>, time: &Time) -> f64 {
    let device = bytes_from_device(case).map(|bytes| bytes as f64);
    let calls = bytes_read(case);
    device.map_or(calls, |device| device.min(calls)) / time.count.max(1) as f64
}

/// Bytes that came from devices, by their own count; none where that is not known.
pub(super) fn bytes_from_device(case: &Case<'_>) -> Option<u64> {
    let of_place = case.recording.run_of(case.index).and_then(|run| run.device_read_bytes);
    // What is read may lie on another disk than the place.
    of_place.max(bytes_requested(case)).filter(|bytes| *bytes > 0)
}

/// Bytes of contents that the command itself asked all disks for; none where block devices were not looked at.
fn bytes_requested(case: &Case<'_>) -> Option<u64> {
    let requests = case.trace.block.as_ref()?.paths.iter();
    let own = requests.filter(|row| !row.after && is_own_content(row));
    Some(total(own.map(|row| row.amount.bytes)))
}
