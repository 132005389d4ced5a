//! Which call each slot in a thread's account stands for.

use std::collections::BTreeMap;

use inodyne_model::Nanos;

use crate::contract::{CALL_SLOT_OTHERS, CALL_SLOTS, CALLS, GROUPS};
use crate::map::ArrayView;
use crate::names;
use crate::skeleton::InodyneMaps;

const OTHERS: &str = "(others)";

/// (group, call, reference) of every pair of command name and call that was seen.
pub fn used(maps: &InodyneMaps<'_>) -> Result<Vec<(usize, usize, u32)>, libbpf_rs::Error> {
    let references: ArrayView<[u32; 2]> = ArrayView::new(&maps.call_refs)?;
    let all = (0..GROUPS).flat_map(|group| (0..CALLS).map(move |call| (group, call)));
    // Each element holds two.
    let reference = |at: usize| references.get(at / 2)[at % 2];
    let all = all.map(|(group, call)| (group, call, reference(group * CALLS + call)));
    Ok(all.filter(|(_, _, reference)| *reference != 0).collect())
}

/// The names of calls by their slots.
#[derive(Debug, Clone)]
pub struct CallSlots(Vec<Option<String>>);

impl CallSlots {
    /// From the references that were given out.
    pub fn read(maps: &InodyneMaps<'_>) -> Result<CallSlots, libbpf_rs::Error> {
        Ok(CallSlots::of(&used(maps)?))
    }

    /// From (group, call, reference).
    pub(crate) fn of(used: &[(usize, usize, u32)]) -> CallSlots {
        let mut calls = vec![None; CALL_SLOTS];
        for (_, call, reference) in used {
            calls[(reference & 0xffff) as usize - 1] = names::call(*call as u16);
        }
        if calls[CALL_SLOT_OTHERS].is_some() {
            calls[CALL_SLOT_OTHERS] = Some(OTHERS.to_owned());
        }
        CallSlots(calls)
    }

    /// The name of the call in this slot.
    pub fn name(&self, slot: u32) -> String {
        self.0.get(slot as usize).cloned().flatten().unwrap_or_else(|| OTHERS.to_owned())
    }

    /// Names the calls in a thread's times, which are given by slot.
    pub fn named(&self, kernel: &[(u8, u64)]) -> BTreeMap<String, Nanos> {
        kernel.iter().map(|(slot, ns)| (self.name((*slot).into()), Nanos(*ns))).collect()
    }
}
