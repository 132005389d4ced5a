//! How far a delete is: one line on the terminal, after the first second.
//!
//! How many entries are left is only known when they are gone, so the estimate counts directories that were seen and
//! takes the others' mean for them; it says "about".

use std::{
    io::{IsTerminal, Write},
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
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
        scope.spawn(move || show(control, &ended));
        let result = work();
        drop(done);
        result
    })
}

fn show(control: &Control, ended: &Receiver<()>) {
    const FIRST: Duration = Duration::from_secs(1);
    const STEP: Duration = Duration::from_millis(250);
    let started = Instant::now();
    let mut wait = FIRST;
    let mut shown = false;
    while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        let text = line(control.files() + control.directories(), control.about_left(), started.elapsed());
        let _ = std::io::stderr().lock().write_all(format!("\r{text}\x1b[K").as_bytes());
        (wait, shown) = (STEP, true);
    }
    if shown {
        let _ = std::io::stderr().lock().write_all(b"\r\x1b[K");
    }
}

fn line(removed: u64, left: u64, elapsed: Duration) -> String {
    let rate = removed as f64 / elapsed.as_secs_f64();
    let seconds = if rate > 0.0 { left as f64 / rate } else { 0.0 };
    format!("{removed} removed, {rate:.0}/s, about {left} left, about {seconds:.0} s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_counts_rate_and_time_left() {
        let text = line(30_000, 10_000, Duration::from_secs(3));
        assert_eq!(text, "30000 removed, 10000/s, about 10000 left, about 1 s");
        assert_eq!(line(0, 0, Duration::from_secs(1)), "0 removed, 0/s, about 0 left, about 0 s");
    }
}
