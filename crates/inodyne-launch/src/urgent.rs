//! How soon a thread gets a CPU on a busy machine.

use rustix::process::{getpriority_process, setpriority_process};

/// The lowest nice value that there is (setpriority(2)).
const MOST_URGENT: i32 = -20;

/// Gives the calling thread a CPU before others, for as long as this lasts. Processes that the thread forks meanwhile are as urgent.
#[derive(Debug)]
pub struct Urgent {
    before: Option<i32>,
}

impl Urgent {
    /// Where this is not permitted, the thread waits for a CPU as all others do.
    pub fn now() -> Urgent {
        let before = getpriority_process(None).ok();
        Urgent { before: before.filter(|_| setpriority_process(None, MOST_URGENT).is_ok()) }
    }

    /// For the rest of the thread's life.
    pub fn from_now_on() {
        std::mem::forget(Urgent::now());
    }

    /// Gives the calling thread the highest real-time priority for the rest of its life: no thread with a lower one, or with none, takes its CPU.
    /// False where that is not permitted.
    pub fn before_all_from_now_on() -> bool {
        let highest = libc::sched_param { sched_priority: 99 }; // sched(7)
        // SAFETY: of the calling thread; the structure outlives the call.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const highest) == 0 }
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // Anybody may raise their nice value.
            let _ = setpriority_process(None, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_as_urgent_as_before_once_it_is_over() {
        let nice = || getpriority_process(None).expect("it has one");
        let before = nice();
        let urgent = Urgent::now();
        assert!(nice() == MOST_URGENT || urgent.before.is_none());
        drop(urgent);
        assert_eq!(nice(), before);
    }
}
