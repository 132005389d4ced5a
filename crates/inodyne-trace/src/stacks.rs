//! Kernel stacks as they arrive: each one once, and from then on only its ID is sent.

use std::collections::HashSet;

use crate::contract::{STACK_DEPTH, StackRecord};
use crate::map::record_from;

/// A stack of addresses, the innermost first.
pub struct KernelStack {
    /// The kernel side's hash of them.
    pub id: u64,
    /// Return addresses.
    pub addresses: Box<[u64]>,
    /// Whether there were more.
    pub is_truncated: bool,
}

impl KernelStack {
    /// From a record, which has as many addresses as it says, or all that there is room for.
    fn of(bytes: &[u8]) -> KernelStack {
        let StackRecord { stack, depth, truncated, address } = record_from(bytes);
        let addresses = address[..(depth as usize).min(STACK_DEPTH)].into();
        KernelStack { id: stack, addresses, is_truncated: truncated != 0 }
    }
}

/// What has arrived so far.
#[derive(Default)]
pub struct Stacks {
    arrived: Vec<KernelStack>,
    known: HashSet<u64>,
}

impl Stacks {
    /// Takes a record. The same stack may come more than once, from CPUs that met it at the same time.
    pub fn take(&mut self, bytes: &[u8]) {
        let stack = KernelStack::of(bytes);
        if self.known.insert(stack.id) {
            self.arrived.push(stack);
        }
    }

    /// Those that have arrived since the last time.
    pub fn take_new(&mut self) -> Vec<KernelStack> {
        std::mem::take(&mut self.arrived)
    }

    /// How many have arrived.
    pub fn len(&self) -> usize {
        self.known.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::planted::{every_field_counts, planted};

    unsafe extern "C" {
        fn host_plant_stack_record(to: *mut StackRecord);
    }

    fn bytes(record: &StackRecord, addresses: usize) -> Vec<u8> {
        let head = [
            record.stack.to_ne_bytes().to_vec(),
            record.depth.to_ne_bytes().to_vec(),
            record.truncated.to_ne_bytes().to_vec(),
        ];
        let addresses = record.address[..addresses].iter().flat_map(|address| address.to_ne_bytes());
        head.concat().into_iter().chain(addresses).collect()
    }

    #[test]
    fn every_part_of_a_stack_reaches_its_meaning() {
        let record: StackRecord = planted(host_plant_stack_record);
        let decoded = |record: &StackRecord| {
            let KernelStack { id, addresses, is_truncated } = KernelStack::of(&bytes(record, STACK_DEPTH));
            (id, addresses, is_truncated)
        };
        assert_eq!(decoded(&record), (50, [51, 52].into(), false));
        every_field_counts("stack_record", record, &[], decoded);
    }

    #[test]
    fn a_stack_is_kept_once() {
        let record: StackRecord = planted(host_plant_stack_record);
        let mut stacks = Stacks::default();
        stacks.take(&bytes(&record, 2));
        stacks.take(&bytes(&record, 2));
        assert_eq!((stacks.take_new().len(), stacks.len()), (1, 1));
        stacks.take(&bytes(&record, 2));
        assert_eq!((stacks.take_new().len(), stacks.len()), (0, 1));
    }
}
