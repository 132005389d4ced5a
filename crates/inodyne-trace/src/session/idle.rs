//! Between two runs: programs that stay loaded, attached to nothing.

use std::cell::RefCell;

use inodyne_model::trace::Refused;

use super::load::{Loaded, load_error};
use super::{Tracer, clear};
use crate::attach::measure_run_times;
use crate::cost::{Calibration, Cost};
use crate::error::TraceError;
use crate::options::Options;
use crate::probes;

/// What a tracer had loaded, for another run with the same options.
pub struct IdleTracer {
    loaded: Loaded,
    /// Slots for threads that were ever used.
    slots_used: u32,
    have_rings_grown: bool,
    /// The features of its probes.
    features: Vec<&'static str>,
    refused: Vec<Refused>,
    options: Options,
    cpus: usize,
    calibration: Calibration,
}

impl IdleTracer {
    /// From a tracer whose trace was taken.
    pub(super) fn of(tracer: Tracer) -> IdleTracer {
        let slots_used = tracer.shared().slots_used;
        let have_rings_grown = tracer.rings.borrow().have_grown();
        let features = tracer.probes.iter().map(|probe| probe.feature()).collect();
        let Tracer { skeleton, beside, threads, refused, options, cpus, calibration, .. } = tracer;
        let loaded = Loaded { skeleton, beside, threads };
        IdleTracer { loaded, slots_used, have_rings_grown, features, refused, options, cpus, calibration }
    }

    /// Attaches the programs again, to follow nobody yet. What tracing costs is taken to be what it was when they were loaded.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn begin(self) -> Result<Tracer, TraceError> {
        self.clear().map_err(load_error)?;
        let mut probes = probes::wanted(&self.options);
        probes.retain(|probe| self.features.contains(&probe.feature()));
        let mut tracer = Tracer::of(self.loaded, probes, &self.options, self.cpus)?;
        (tracer.refused, tracer.calibration) = (self.refused, self.calibration);
        tracer.attach()?;
        tracer.follow_this_thread()?;
        tracer.leave_this_thread()?;
        tracer.cost = RefCell::new(Some(Cost::new(tracer.calibration, measure_run_times(), tracer.reading())));
        tracer.nothing_is_skipped_yet();
        Ok(tracer)
    }

    /// Makes the programs forget the last run, and all that they knew.
    fn clear(&self) -> libbpf_rs::Result<()> {
        clear::clear(&self.loaded.skeleton, self.have_rings_grown)?;
        self.loaded.threads.clear(self.slots_used)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::io::Write;
    use std::process::{Command, Stdio};

    use libbpf_rs::skel::Skel;
    use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};

    use super::*;
    use crate::join::Whom;
    use crate::options::RequestMarks;

    /// Whether there is anything in a map: a key, or something else than zeros.
    fn is_blank(map: &impl MapCore) -> bool {
        let is_zero = |value: &[u8]| value.iter().all(|byte| *byte == 0);
        let indices = || (0..map.max_entries()).map(u32::to_ne_bytes);
        let value = |index: [u8; 4]| map.lookup(&index, MapFlags::ANY).expect("an element");
        match map.map_type() {
            MapType::Hash | MapType::LruHash => map.keys().next().is_none(),
            MapType::Array => indices().all(|index| value(index).is_some_and(|value| is_zero(&value))),
            MapType::PercpuArray => indices().all(|index| {
                let values = map.lookup_percpu(&index, MapFlags::ANY).expect("an element").expect("an element");
                values.iter().all(|value| is_zero(value))
            }),
            MapType::Queue => map.lookup(&[], MapFlags::ANY).expect("its head").is_none(),
            MapType::ArrayOfMaps => indices().filter_map(value).all(|inner| {
                let number = u32::from_ne_bytes(inner.try_into().expect("a number"));
                let inner = MapHandle::from_map_id(number).expect("a map");
                // Ring buffers have no elements; it must be gone.
                inner.map_type() == MapType::Array && is_blank(&inner)
            }),
            MapType::RingBuf => true,
            other => panic!("{other:?}"),
        }
    }

    /// Whether each map is blank, by its name; except the constants.
    fn blank(idle: &IdleTracer) -> BTreeMap<String, bool> {
        let maps = idle.loaded.skeleton.object().maps();
        let named = maps.map(|map| (map.name().to_string_lossy().into_owned(), is_blank(&map)));
        named.filter(|(name, _)| !name.ends_with(".rodata")).collect()
    }

    #[test]
    fn nothing_is_left_in_any_map_for_another_run() {
        assert!(rustix::process::geteuid().is_root(), "this test loads programs: run it as root");
        let scratch = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let mut shell = Command::new("sh").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("a shell starts");
        let mut to = shell.stdin.take().expect("a pipe");
        let marks = Some(RequestMarks::Sockets);
        let some = Options { joins: true, max_paths: 1000, max_files: 1000, requests: marks, ..Options::default() };
        let mut tracer = Tracer::new(&some).expect("this machine can trace");
        assert_eq!(tracer.join(&Whom::Processes(vec![shell.id()])).expect("it is there"), 1);
        let script = format!(
            "cd {}; for at in 1 2 3; do head -c 100000 /dev/zero >$at; sync; done; find . | wc -l; ls -l; exit\n",
            scratch.path().display()
        );
        to.write_all(script.as_bytes()).expect("it reads");
        while shell.try_wait().expect("it is ours").is_none() {
            tracer.drain();
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let (trace, idle) = tracer.finish_and_keep().expect("a trace");
        let idle = idle.expect("what was loaded");
        assert!(trace.observed.threads.len() > 5 && trace.lost.total() == 0, "{:?}", trace.lost);
        let used: Vec<String> = blank(&idle).into_iter().filter(|(_, blank)| !blank).map(|(name, _)| name).collect();
        // The others are for what this script does not do.
        assert!(used.len() > 30, "{used:?}");
        idle.clear().expect("the kernel allows that");
        let left: Vec<String> = blank(&idle).into_iter().filter(|(_, blank)| !blank).map(|(name, _)| name).collect();
        assert!(left.is_empty(), "{left:?}");
    }

    /// What programs know about this machine, and about who traces.
    fn known(tracer: &Tracer) -> (u64, u32, u64, u32) {
        let variables = tracer.skeleton.maps.bss_data.as_ref().expect("the object has global variables");
        let namespace = (variables.tracers_namespace, variables.tracers_level);
        (namespace.0, namespace.1, variables.page_last_is_beyond, tracer.shared().tracer)
    }

    /// Which of the variables' words are not zero.
    fn set(tracer: &Tracer) -> BTreeSet<usize> {
        let variables = tracer.skeleton.object().maps().find(|map| map.name().to_string_lossy().ends_with(".bss"));
        let bytes = variables.expect("it has variables").lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        let bytes = bytes.expect("they can be read").expect("an element");
        let words = bytes.chunks(8).enumerate();
        words.filter(|(_, word)| word.iter().any(|byte| *byte != 0)).map(|(at, _)| at).collect()
    }

    #[test]
    fn what_programs_know_once_they_are_loaded_they_know_for_each_run() {
        assert!(rustix::process::geteuid().is_root(), "this test loads programs: run it as root");
        let mut tracer = Tracer::new(&Options { joins: true, ..Options::default() }).expect("this machine can trace");
        let (before, set_before) = (known(&tracer), set(&tracer));
        assert!(before.0 != 0 && before.3 != 0, "{before:?}");
        tracer.join(&Whom::Processes(vec![std::process::id()])).expect("it is there");
        let again =
            tracer.finish_and_keep().expect("a trace").1.expect("what was loaded").begin().expect("another run");
        assert_eq!(known(&again), before);
        let missing: Vec<usize> = set_before.difference(&set(&again)).copied().collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
