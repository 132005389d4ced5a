//! Who did the work that was waited for, by a name that people know.

use inodyne_model::observed::Helper;
use inodyne_model::stack::{Stack, function_name};

/// The name of a helper that woke somebody at this place: for a worker, what it worked on (`xfs-inodegc`, `loop`); for other
/// kernel threads, their own name without device and CPU (`jbd2`); for a process, its command name; and for the numbered
/// threads of one (`fuser-3`), the name that they share.
pub(super) fn name(helper: &Helper, stack: Option<&Stack>) -> String {
    let worker = helper.kernel_thread && helper.comm.starts_with("kworker/");
    let work = stack.filter(|_| worker).and_then(work_function);
    let own = match helper.kernel_thread {
        true => helper.comm.split(['/', ':']).next().unwrap_or_default(),
        false => without_number(&helper.comm),
    };
    work.map_or_else(|| own.to_owned(), of_work)
}

fn without_number(comm: &str) -> &str {
    match comm.rsplit_once(['-', '_', '/', ':', '#', ' ']) {
        Some((name, number))
            if !name.is_empty() && !number.is_empty() && number.bytes().all(|c| c.is_ascii_digit()) =>
        {
            name
        }
        _ => comm,
    }
}

/// The function that a worker called for its piece of work.
fn work_function(stack: &Stack) -> Option<&str> {
    let symbols: Vec<&str> = stack.symbols().collect();
    let at = symbols.iter().position(|symbol| function_name(symbol) == "process_one_work")?;
    // A function that only tells that everything before it is done is a piece of work, too (`wq_barrier_func`, inlined).
    let function = symbols.get(at.checked_sub(1)?).map(|symbol| function_name(symbol))?;
    (!["complete", "wq_barrier_func"].contains(&function)).then_some(function)
}

/// `xfs_inodegc_worker` is `xfs-inodegc`.
fn of_work(function: &str) -> String {
    let ends = ["_workfn", "_worker", "_work", "_fn"];
    let short = ends.iter().find_map(|end| function.strip_suffix(end)).unwrap_or(function);
    short.trim_start_matches('_').replace('_', "-")
}

/// True for the stack of a helper that waits to be given work, and so holds nobody up: a kernel thread in its own
/// main function, a FUSE server that asks for the next request.
pub(super) fn is_idle(helper: &Helper, stack: Option<&Stack>) -> bool {
    const SCHEDULER: [&str; 5] =
        ["__schedule", "schedule", "schedule_timeout", "schedule_hrtimeout_range_clock", "schedule_preempt_disabled"];
    let Some(stack) = stack else { return false };
    let mut symbols = stack.symbols().map(function_name).skip_while(|symbol| SCHEDULER.contains(symbol));
    if helper.kernel_thread {
        return symbols.nth(1).is_none_or(|symbol| symbol == "kthread");
    }
    symbols.any(|symbol| symbol == "fuse_dev_do_read")
}

#[cfg(test)]
mod tests {
    use inodyne_model::sample::stack;

    use super::*;

    fn kernel_thread(comm: &str) -> Helper {
        Helper { comm: comm.to_owned(), kernel_thread: true, ..Helper::default() }
    }

    #[test]
    fn helpers_have_names_that_people_know() {
        let inodegc =
            stack(1, "try_to_wake_up complete __flush_work xfs_inodegc_worker process_one_work worker_thread kthread");
        assert_eq!(name(&kernel_thread("kworker/2:1"), Some(&inodegc)), "xfs-inodegc");
        assert_eq!(name(&kernel_thread("kworker/2:1"), None), "kworker");
        assert_eq!(name(&kernel_thread("jbd2/loop0-8"), Some(&inodegc)), "jbd2");
        let server = Helper { comm: "sshfs".to_owned(), ..Helper::default() };
        assert_eq!(name(&server, None), "sshfs");
        let named = |comm: &str| name(&Helper { comm: comm.to_owned(), ..Helper::default() }, None);
        assert_eq!(["fuser-12", "python3", "md5-", "-7"].map(named), ["fuser", "python3", "md5-", "-7"]);
    }

    #[test]
    fn waiting_for_work_is_idle_and_waiting_for_a_device_is_not() {
        let idle = stack(1, "__schedule schedule kjournald2 kthread ret_from_fork ret_from_fork_asm");
        let waits = stack(
            2,
            "__schedule schedule io_schedule bit_wait_io __wait_on_bit jbd2_journal_commit_transaction kjournald2 kthread",
        );
        let jbd2 = kernel_thread("jbd2/loop0-8");
        assert!(is_idle(&jbd2, Some(&idle)));
        assert!(!is_idle(&jbd2, Some(&waits)));
        assert!(!is_idle(&jbd2, None));
    }
}
