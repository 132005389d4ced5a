//! Reads which requests were answered.

mod contract;

use std::cell::RefCell;
use std::rc::Rc;

use inodyne_model::Nanos;
use inodyne_model::requests::Served;
use inodyne_model::trace::Trace;

use crate::contract::global;
use crate::map::record;
use crate::names;
use crate::options::{Options, RequestMarks};
use crate::rings::Rings;
use crate::probe::{Probe, Program, Seen};
use crate::skeleton::{InodyneMaps, OpenInodyneSkel};
use crate::thread_numbers::ThreadNumbers;
use contract::{REQUESTS_OF_CALLS, REQUESTS_OF_SOCKETS, REQUESTS_UNDER_WAY, Record};

/// Requests that are kept.
const MOST: usize = 1_000_000;
/// Initial room for what has not been read yet.
const FIRST_RING_BYTES: u32 = 512 << 10;
/// ... and how much where more of it arrives.
const RING_BYTES: u32 = 4 << 20;

/// The probe of requests. It has no program of its own: that of system calls calls it.
#[derive(Default)]
pub struct Own {
    arrived: Rc<RefCell<Arrived>>,
}

#[derive(Default)]
struct Arrived {
    answered: Vec<Record>,
    dropped: u64,
}

impl Arrived {
    fn take(&mut self, answered: Record) {
        if self.answered.len() < MOST { self.answered.push(answered) } else { self.dropped += 1 }
    }
}

impl Probe for Own {
    fn feature(&self) -> &'static str {
        "requests"
    }

    fn without(&self) -> &'static str {
        "it is not seen when a request begins and ends"
    }

    fn is_optional(&self) -> bool {
        true
    }

    fn programs(&self) -> &'static [Program] {
        &[]
    }

    fn is_wanted(&self, options: &Options) -> bool {
        options.requests.is_some()
    }

    fn configure(&self, object: &mut OpenInodyneSkel<'_>, options: &Options, _cpus: usize) -> libbpf_rs::Result<()> {
        let constants = object.maps.rodata_data.as_mut().expect("the object has constants");
        match options.requests {
            Some(RequestMarks::Sockets) => constants.record_requests = REQUESTS_OF_SOCKETS,
            Some(RequestMarks::Calls(read, write)) => {
                constants.record_requests = REQUESTS_OF_CALLS;
                (constants.request_read, constants.request_write) = (read.into(), write.into());
            }
            None => return Ok(()),
        }
        object.maps.requests_read.set_max_entries(REQUESTS_UNDER_WAY)?;
        object.maps.requests_answered.set_max_entries(FIRST_RING_BYTES)
    }

    fn open(
        &mut self,
        maps: &InodyneMaps<'static>,
        _options: &Options,
        rings: &mut Rings,
    ) -> libbpf_rs::Result<()> {
        let arrived = Rc::clone(&self.arrived);
        rings.add(&maps.requests_answered, &maps.requests_answered_larger, RING_BYTES, move |bytes| {
            arrived.borrow_mut().take(record(bytes));
        })?;
        Ok(())
    }

    fn read(&mut self, seen: &Seen<'_>, result: &mut Trace) -> libbpf_rs::Result<()> {
        let variables = seen.maps.bss_data.as_ref().expect("the object has global variables");
        let arrived = self.arrived.take();
        let not_kept = arrived.dropped + global(&variables.requests_not_kept);
        let calls = match seen.options.requests {
            Some(RequestMarks::Calls(read, write)) => [read, write].into_iter().filter_map(names::call).collect(),
            _ => Vec::new(),
        };
        let read = read(&arrived.answered, result.observed.started_ns, seen.numbers);
        result.requests = Some(Served { calls, not_kept, ..read });
        Ok(())
    }
}

fn read(answered: &[Record], started: Nanos, numbers: ThreadNumbers) -> Served {
    Served {
        from_ns: answered.iter().map(|one| one.from.saturating_sub(started.0)).collect(),
        ns: answered.iter().map(|one| one.to.saturating_sub(one.from)).collect(),
        thread: answered.iter().map(|one| numbers.of(one.thread)).collect(),
        ..Served::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::planted::{every_field_counts, planted};

    unsafe extern "C" {
        fn host_plant_request_record(to: *mut Record);
    }

    #[test]
    fn every_part_of_a_request_reaches_its_meaning() {
        let answered: Record = planted(host_plant_request_record);
        let of = |answered: &Record| read(&[*answered], Nanos(10_000), ThreadNumbers { threads: 2_000 });
        let expected = Served { from_ns: vec![971], ns: vec![10], thread: vec![973], ..Served::default() };
        assert_eq!(of(&answered), expected);
        every_field_counts("request_record", answered, &["unused"], of);
    }
}
