//! Reads the table of samples, and names the stacks in user mode that came with them.

mod contract;
mod user_symbols;

use std::collections::HashSet;

use inodyne_model::observed::{BlockedSample, Sample};
use inodyne_model::trace::Trace;
use inodyne_model::stack::StackId;

use crate::contract::HELPER_FIRST;
use crate::map::{TakenOut, pairs};
use crate::names;
use crate::probe::{Point, Probe, Program, Seen};
use crate::options::Options;
use crate::skeleton::{InodyneMaps, OpenInodyneSkel};
use crate::thread_numbers::ThreadNumbers;
use contract::SampleKey;

/// The probe of samples.
#[derive(Default)]
pub struct Own {
    taken_out: TakenOut<SampleKey, u64>,
}

const PROGRAMS: &[Program] = &[Program::new("samples_take", Point::CpuClock)];

impl Probe for Own {
    fn feature(&self) -> &'static str {
        "samples"
    }

    fn without(&self) -> &'static str {
        "functions that run are not seen, nor page faults told from user mode"
    }

    fn is_optional(&self) -> bool {
        true
    }

    fn programs(&self) -> &'static [Program] {
        PROGRAMS
    }

    fn is_wanted(&self, options: &Options) -> bool {
        options.sample_hz > 0
    }

    fn configure(&self, object: &mut OpenInodyneSkel<'_>, options: &Options, _cpus: usize) -> libbpf_rs::Result<()> {
        let constants = object.maps.rodata_data.as_mut().expect("the object has constants");
        constants.blocked_sample_ns = 1_000_000_000u64.checked_div(options.sample_hz.into()).unwrap_or(0);
        object.maps.samples.set_max_entries(options.max_rows)
    }

    fn make_room_in_tables(
        &self,
        maps: &InodyneMaps<'static>,
        living: &dyn Fn() -> HashSet<u32>,
    ) -> libbpf_rs::Result<()> {
        self.taken_out.take(&maps.samples, |key| key.thread, living)
    }

    fn read(&mut self, seen: &Seen<'_>, result: &mut Trace) -> libbpf_rs::Result<()> {
        let observed = &mut result.observed;
        let user_stacks = pairs(&seen.maps.user_stacks)?;
        observed.stacks.extend(user_symbols::name_stacks(&user_stacks, &observed.programs, &seen.mapped, &seen.users));
        let all: Vec<(SampleKey, u64)> = self.taken_out.and_those_in(&seen.maps.samples)?;
        let (of_helpers, of_command): (Vec<_>, Vec<_>) = all.into_iter().partition(|(key, _)| key.thread >= HELPER_FIRST);
        (observed.samples, observed.blocked_samples) = read(of_command, seen.numbers);
        observed.helper_samples = read(of_helpers, seen.numbers).0;
        observed.sample_hz = seen.options.sample_hz;
        Ok(())
    }
}

/// All samples, on a CPU and off it, each in a fixed order.
fn read(pairs: Vec<(SampleKey, u64)>, numbers: ThreadNumbers) -> (Vec<Sample>, Vec<BlockedSample>) {
    let (off, on): (Vec<_>, Vec<_>) = pairs.into_iter().partition(|(key, _)| key.blocked != 0);
    let sample = |(key, count): (SampleKey, u64)| Sample {
        thread: numbers.of(key.thread),
        syscall: names::call(key.call),
        user_mode: key.user_mode != 0,
        stack: StackId(key.stack),
        user_stack: StackId(key.user_stack),
        count,
    };
    let blocked = |(key, count): (SampleKey, u64)| BlockedSample {
        thread: numbers.of(key.thread),
        syscall: names::call(key.call),
        user_stack: StackId(key.user_stack),
        count,
    };
    let mut samples: Vec<Sample> = on.into_iter().map(sample).collect();
    let mut blocked_samples: Vec<BlockedSample> = off.into_iter().map(blocked).collect();
    samples.sort_by_cached_key(|one| (one.thread, one.syscall.clone(), one.user_mode, one.stack, one.user_stack));
    blocked_samples.sort_by_cached_key(|one| (one.thread, one.syscall.clone(), one.user_stack));
    (samples, blocked_samples)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::planted::{every_field_counts, planted};

    const NUMBERS: ThreadNumbers = ThreadNumbers { threads: 0 };

    unsafe extern "C" {
        fn host_plant_sample_key(to: *mut SampleKey);
    }

    #[test]
    fn every_part_of_a_sample_reaches_its_meaning() {
        let key: SampleKey = planted(host_plant_sample_key);
        let (samples, blocked) = read(vec![(key, 709)], NUMBERS);
        assert!(blocked.is_empty());
        let expected = Sample {
            thread: 701,
            syscall: Some("write".to_owned()),
            user_mode: true,
            stack: StackId(705),
            user_stack: StackId(706),
            count: 709,
        };
        assert_eq!(samples, [expected]);
        let (samples, blocked) = read(vec![(SampleKey { blocked: 1, ..key }, 709)], NUMBERS);
        assert!(samples.is_empty());
        assert_eq!((blocked[0].thread, blocked[0].user_stack, blocked[0].count), (701, StackId(706), 709));
        every_field_counts("sample_key", key, &[], |key| read(vec![(*key, 709)], NUMBERS));
    }
}
