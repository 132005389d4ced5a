//! The end of a trace, at one instant for all programs: to detach them takes a while (bpf/stop.h).

use inodyne_launch::monotonic_ns;
use inodyne_model::Nanos;

use super::Tracer;

impl Tracer {
    /// Has the programs record nothing from now on, and says when that was.
    pub(super) fn stop(&mut self) -> Nanos {
        self.skeleton.maps.bss_data.as_mut().expect("the object has global variables").stopped = 1;
        monotonic_ns()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    use crate::join::Whom;
    use crate::options::Options;
    use crate::session::Tracer;

    #[test]
    fn what_happens_until_all_programs_are_detached_is_not_recorded() {
        assert!(rustix::process::geteuid().is_root(), "this test loads programs: run it as root");
        let scratch = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let mut shell = Command::new("sh");
        shell.current_dir(scratch.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().expect("a shell starts");
        let (mut to, from) = (shell.stdin.take().expect("a pipe"), shell.stdout.take().expect("a pipe"));
        let mut lines = BufReader::new(from).lines();
        let mut does = |script: &str| {
            writeln!(to, "{script}; echo done").expect("it reads");
            assert_eq!(lines.next().expect("a line").expect("text"), "done");
        };
        let mut tracer = Tracer::new(&Options { joins: true, ..Options::default() }).expect("this machine can trace");
        assert_eq!(tracer.join(&Whom::Processes(vec![shell.id()])).expect("it is there"), 1);
        let calls_of_loops = tracer.calls_so_far();
        does("head -c 100000 /dev/zero >one; cat one | tail -n 1 >other; sync .");
        let (calls, born) = (tracer.calls_so_far() - calls_of_loops, tracer.shared().threads_born);
        tracer.stop();
        does("head -c 100000 /dev/zero >one; cat one | tail -n 1 >other; sync .; sleep 0.05");
        let trace = tracer.finish().expect("a trace");
        assert!(born >= 5 && calls > 100, "{born} threads, {calls} calls");
        assert_eq!(trace.observed.threads.len(), born as usize);
        // The shell may just have begun to read.
        assert!((calls..=calls + 2).contains(&trace.calls()), "{} calls for {calls}", trace.calls());
        assert!(trace.lost.total() == 0, "{:?}", trace.lost);
        drop(to);
        assert!(shell.wait().expect("it is ours").success());
    }
}
