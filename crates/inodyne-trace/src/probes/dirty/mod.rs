//! Reads who dirtied pages, and on which disk.

mod contract;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use inodyne_model::block::{Asker, Dirtied};
use inodyne_model::trace::Trace;

use super::block::asker;
use crate::cgroups;
use crate::contract::text;
use crate::devices;
use crate::map::pairs;
use crate::probe::{LOSING, Probe, Program, Seen};
use contract::{Key, Sum};

/// The probe of dirty pages.
#[derive(Default)]
pub struct Own;

const PROGRAMS: &[Program] = &[
    Program::at("dirty_folio", "writeback_dirty_folio"),
    Program::at("dirty_folio_again", "writeback_dirty_folio").on(LOSING).done(|bss| bss.dirty_folio_again_done),
];

impl Probe for Own {
    fn feature(&self) -> &'static str {
        "dirty pages"
    }

    fn without(&self) -> &'static str {
        "it is not known whose data is written back"
    }

    fn is_optional(&self) -> bool {
        true
    }

    fn programs(&self) -> &'static [Program] {
        PROGRAMS
    }

    fn read(&mut self, seen: &Seen<'_>, result: &mut Trace) -> libbpf_rs::Result<()> {
        let rows: Vec<(Key, Sum)> = pairs(&seen.maps.dirty_sums)?;
        // Of use only together with requests.
        if let Some(block) = &mut result.block {
            let has_requests = |number: &str| block.disks.iter().any(|disk| disk.number == number);
            block.dirtied = read(&rows, &seen.cgroups, has_requests);
        }
        Ok(())
    }
}

/// By disk and who did it, most bytes first. Several file systems may lie on one disk; what lies on several disks may be written to each
/// of them.
fn read(rows: &[(Key, Sum)], cgroups: &cgroups::Names, has_requests: impl Fn(&str) -> bool) -> Vec<Dirtied> {
    let mut by_who = BTreeMap::<(String, String, Option<&String>, Asker), u64>::new();
    let mut below = BTreeMap::<u32, BTreeSet<String>>::new();
    for (key, sum) in rows {
        let disks = below
            .entry(sum.disk)
            .or_insert_with(|| devices::disks_below(&devices::number(sum.disk), &has_requests));
        for disk in disks.iter() {
            let who = (disk.clone(), text(&key.comm), cgroups.get(&key.cgroup), asker(key.asker));
            *by_who.entry(who).or_default() += sum.bytes;
        }
    }
    let dirtied = |((disk, comm, cgroup, asker), bytes): ((_, _, Option<&String>, _), _)| Dirtied { disk, comm, cgroup: cgroup.cloned(), asker, bytes };
    let mut all: Vec<Dirtied> = by_who.into_iter().map(dirtied).collect();
    all.sort_by_key(|one| Reverse(one.bytes));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::planted::{every_field_counts, planted};

    unsafe extern "C" {
        fn host_plant_dirty_key(to: *mut Key);
        fn host_plant_dirty_sum(to: *mut Sum);
    }

    fn read(rows: &[(Key, Sum)]) -> Vec<Dirtied> {
        super::read(rows, &cgroups::Names::from([(433, "/planted".to_owned())]), |_| false)
    }

    #[test]
    fn every_part_of_dirty_pages_reaches_its_meaning() {
        let (key, sum): (Key, Sum) = (planted(host_plant_dirty_key), planted(host_plant_dirty_sum));
        let expected = Dirtied {
            disk: "259:2".to_owned(),
            comm: "planted".to_owned(),
            cgroup: Some("/planted".to_owned()),
            asker: Asker::Other,
            bytes: 432,
        };
        assert_eq!(read(&[(key, sum)]), [expected]);
        // The address only tells file systems apart.
        every_field_counts("dirty_key", key, &["superblock", "unused"], |key| read(&[(*key, sum)]));
        every_field_counts("dirty_sum", sum, &["unused"], |sum| read(&[(key, *sum)]));
    }

    #[test]
    fn file_systems_on_one_disk_are_one() {
        let (key, sum): (Key, Sum) = (planted(host_plant_dirty_key), planted(host_plant_dirty_sum));
        let second = Key { superblock: key.superblock + 1, ..key };
        assert_eq!(read(&[(key, sum), (second, sum)]).iter().map(|one| one.bytes).collect::<Vec<_>>(), [2 * 432]);
    }
}
