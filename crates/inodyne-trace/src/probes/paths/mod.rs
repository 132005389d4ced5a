//! Reads the table of paths that were looked up.

mod contract;

use std::cmp::Reverse;

use inodyne_model::Nanos;
use inodyne_model::trace::{PathCount, Paths, Trace};

use crate::contract::{global, path_end};
use crate::map::pairs;
use crate::names;
use crate::probe::{Probe, Program, Seen};
use crate::options::Options;
use crate::skeleton::OpenInodyneSkel;
use contract::Counted;

/// The probe of paths. It has no program of its own: that of system calls calls it.
#[derive(Default)]
pub struct Own;

impl Probe for Own {
    fn feature(&self) -> &'static str {
        "paths"
    }

    fn without(&self) -> &'static str {
        "it is not counted which paths are looked up"
    }

    fn is_optional(&self) -> bool {
        true
    }

    fn programs(&self) -> &'static [Program] {
        &[]
    }

    fn is_wanted(&self, options: &Options) -> bool {
        options.max_paths > 0
    }

    fn configure(&self, object: &mut OpenInodyneSkel<'_>, options: &Options, _cpus: usize) -> libbpf_rs::Result<()> {
        let constants = object.maps.rodata_data.as_mut().expect("the object has constants");
        constants.record_paths = 1;
        object.maps.paths.set_max_entries(options.max_paths)
    }

    fn read(&mut self, seen: &Seen<'_>, result: &mut Trace) -> libbpf_rs::Result<()> {
        let variables = seen.maps.bss_data.as_ref().expect("the object has global variables");
        result.paths = Some(read(pairs(&seen.maps.paths)?, global(&variables.paths_not_kept)));
        Ok(())
    }
}

/// The paths that found room, most calls first, and how many look-ups did not.
fn read(counts: Vec<(u64, Counted)>, not_kept: u64) -> Paths {
    let mut looked_up: Vec<PathCount> = counts.iter().filter_map(|(_, count)| path(count)).collect();
    looked_up.sort_by(|a, b| (Reverse(a.calls), &a.path, &a.syscall).cmp(&(Reverse(b.calls), &b.path, &b.syscall)));
    Paths { looked_up, not_kept }
}

fn path(count: &Counted) -> Option<PathCount> {
    Some(PathCount {
        path: path_end(&count.path, count.length, count.cut != 0)?,
        syscall: names::call(count.call)?,
        calls: count.calls,
        not_found: count.not_found,
        wall_ns: Nanos(count.wall_ns),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::planted::{every_field_counts, planted};

    unsafe extern "C" {
        fn host_plant_path_count(to: *mut Counted);
    }

    #[test]
    fn every_part_of_a_path_reaches_its_meaning() {
        let counted: Counted = planted(host_plant_path_count);
        let expected = PathCount {
            path: "/a/b".to_owned(),
            syscall: "write".to_owned(),
            calls: 901,
            not_found: 902,
            wall_ns: Nanos(903),
        };
        assert_eq!(path(&counted), Some(expected));
        every_field_counts("path_count", counted, &["unused"], path);
    }
}
