//! One folder per probe: its BPF C, and the Rust that reads the tables it fills. A probe is a folder here and a line below; every
//! folder with a `probe.bpf.h` is compiled into the object.

use crate::options::Options;
use crate::probe::Probe;

macro_rules! probes {
    ($($name:ident,)+) => {
        $(pub mod $name;)+

        /// Their names, in the same order.
        pub const NAMES: &[&str] = &[$(stringify!($name),)+];

        /// All probes, in the order in which they read.
        pub fn all() -> Vec<Box<dyn Probe>> {
            vec![$(Box::<$name::Own>::default(),)+]
        }
    };
}

/// Those that the options ask for.
pub fn wanted(options: &Options) -> Vec<Box<dyn Probe>> {
    let probes = all().into_iter().filter(|probe| !options.live || probe.is_of_live_view());
    probes.filter(|probe| probe.is_wanted(options)).collect()
}

probes! {
    calls,
    lifecycle,
    switches,
    samples,
    paths,
    files,
    dtype,
    block,
    dirty,
    page_cache,
    commits,
    requests,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::mem::MaybeUninit;

    use libbpf_rs::skel::{OpenSkel, SkelBuilder};

    use super::*;
    use crate::contract::layout::Contract;
    use crate::probe::{ANYWHERE, Program};
    use crate::skeleton::InodyneSkelBuilder;

    /// What the session itself runs, attached nowhere.
    const OF_THE_SESSION: [&str; 4] = ["follow_arm", "follow_disarm", "follow_running", "name_addresses"];

    #[test]
    fn every_probe_can_be_refused_by_its_name() {
        let refusable = &Contract::read().enums["refusable"];
        let expected = std::iter::once("none").chain(NAMES.iter().copied());
        let expected: Vec<(String, i64)> =
            expected.zip(0..).map(|(name, value)| (format!("REFUSE_{}", name.to_uppercase()), value)).collect();
        assert_eq!(*refusable, expected, "bpf/refusable.h");
    }

    #[test]
    fn of_a_program_and_the_one_that_is_held_each_kernel_has_one() {
        let probes = all();
        let programs: Vec<&Program> = probes.iter().flat_map(|probe| probe.programs()).collect();
        let of = |name: &str| programs.iter().find(|program| program.name == name).map(|program| program.on);
        for held in programs.iter().filter(|program| program.name.ends_with("_held")) {
            let other = of(held.name.trim_end_matches("_held")).expect("what it is in place of");
            for kernel in ANYWHERE {
                assert_ne!(held.on.contains(kernel), other.contains(kernel), "{} on {kernel:?}", held.name);
            }
        }
    }

    #[test]
    fn what_runs_again_runs_after_what_it_runs_again_for() {
        for probe in all() {
            let programs = probe.programs();
            for (at, again) in programs.iter().enumerate().filter(|(_, program)| program.name.ends_with("_again")) {
                let first = again.name.trim_end_matches("_again");
                let first = programs[..at].iter().find(|program| program.name == first).expect("the first of both");
                assert_eq!(again.point, first.point, "{}", again.name);
                assert!(again.done.is_some(), "{}", again.name);
                assert!(again.on.iter().all(|kernel| first.on.contains(kernel)), "{}", again.name);
            }
        }
    }

    #[test]
    fn every_program_has_one_owner() {
        let mut place = MaybeUninit::uninit();
        let open = InodyneSkelBuilder::default().open(&mut place).expect("the object can be opened");
        let in_object: BTreeSet<String> =
            open.open_object().progs().map(|program| program.name().to_string_lossy().into_owned()).collect();
        let probes = all();
        let owned = probes.iter().flat_map(|probe| probe.programs()).map(|program| program.name);
        let mut known = BTreeSet::new();
        for name in owned.chain(OF_THE_SESSION) {
            assert!(known.insert(name.to_owned()), "{name} has two owners");
        }
        assert_eq!(known, in_object);
    }
}
