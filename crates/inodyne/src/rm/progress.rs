//! How far a delete has got: one line on the terminal, after the first second.
//!
//! How many entries are left is only known once they are gone, so the estimate counts the directories seen so far and assumes the mean of
//! the others for them; it says "about", and says nothing before there is a mean.

use std::{
    io::{IsTerminal, Write},
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use inodyne_tree::Control;

/// Runs `work` with a progress line, if stderr is a terminal.
pub fn shown<T>(wanted: bool, control: &'static Control, work: impl FnOnce() -> T) -> T {
    if !wanted || !std::io::stderr().is_terminal() {
        return work();
    }
    thread::scope(|scope| {
        let (done, ended): (Sender<()>, _) = channel();
        // If no thread can be started, there is no line.
        let _ = thread::Builder::new().spawn_scoped(scope, move || show(control, &ended));
        let result = work();
        drop(done);
        result
    })
}

/// Whether the cursor is at the end of the line.
static SHOWN: AtomicBool = AtomicBool::new(false);

/// Goes to the start of the terminal's line, and clears what follows.
const WIPE: &str = "\r\x1b[K";

/// What must precede a message on `stream`, which the caller has locked, so that it begins a line.
pub fn wiped(stream: &impl IsTerminal) -> &'static str {
    if SHOWN.load(Ordering::Relaxed) && stream.is_terminal() && SHOWN.swap(false, Ordering::Relaxed) {
        WIPE
    } else {
        ""
    }
}

fn show(control: &Control, ended: &Receiver<()>) {
    const FIRST: Duration = Duration::from_secs(1);
    const STEP: Duration = Duration::from_millis(250);
    let started = Instant::now();
    let removed = || control.files() + control.directories();
    // Other operands may have come before.
    let before = removed();
    let mut wait = FIRST;
    while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        let rate = (removed() - before) as f64 / started.elapsed().as_secs_f64();
        let text = line(removed(), rate, control.about_left());
        let mut stderr = std::io::stderr().lock();
        let _ = stderr.write_all(format!("\r{text}\x1b[K").as_bytes());
        SHOWN.store(true, Ordering::Relaxed);
        wait = STEP;
    }
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(wiped(&stderr).as_bytes());
}

/// `rate` is in entries per second.
fn line(removed: u64, rate: f64, left: Option<u64>) -> String {
    let mut text = format!("{removed} removed, {rate:.0}/s");
    if let Some(left) = left {
        text += &format!(", about {left} left");
        if rate > 0.0 {
            text += &format!(", about {:.0} s", left as f64 / rate);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_counts_rate_and_time_left_as_far_as_known() {
        assert_eq!(line(30_000, 10_000.0, Some(10_000)), "30000 removed, 10000/s, about 10000 left, about 1 s");
        assert_eq!(line(30_000, 10_000.0, None), "30000 removed, 10000/s");
        assert_eq!(line(7, 0.0, Some(10)), "7 removed, 0/s, about 10 left");
    }
}
