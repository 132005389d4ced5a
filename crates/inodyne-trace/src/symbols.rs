//! Kernel addresses to function names, through the kernel's own symbol table.

use std::collections::HashMap;

use blazesym::symbolize::source::{Kernel, Source};
use blazesym::symbolize::{Input, Symbolizer};
use blazesym::{Addr, MaybeDefault};
use inodyne_model::stack::{Frame, Stack, StackId};

use crate::contract::{STACK_DEPTH, StackFrames};

/// Frames that stand between the traced place and the program that took the stack; they say nothing of the place.
const OF_THE_TRACER: [&str; 6] =
    ["bpf_prog_", "bpf_trace_run", "__bpf_trace_", "__traceiter_", "bpf_get_stack", "bpf_overflow_handler"];

/// Names every frame of every stack. An address without a symbol stays an address.
pub fn name_stacks(stacks: &[(u64, StackFrames)]) -> Vec<Stack> {
    let mut addresses: Vec<Addr> = stacks.iter().flat_map(|(_, frames)| frame_addresses(frames)).collect();
    addresses.sort_unstable();
    addresses.dedup();
    let names = name_addresses(&addresses);
    let mut named: Vec<Stack> = stacks.iter().map(|(id, frames)| name_stack(*id, frames, &names)).collect();
    named.sort_by_key(|stack| stack.id);
    named
}

fn frame_addresses(frames: &StackFrames) -> impl Iterator<Item = Addr> + '_ {
    frames.address.iter().take((frames.depth as usize).min(STACK_DEPTH)).copied()
}

fn name_stack(id: u64, frames: &StackFrames, names: &HashMap<Addr, String>) -> Stack {
    let frame = |address| match names.get(&address) {
        Some(name) => Frame::Symbol(name.clone()),
        None => Frame::Unknown { address },
    };
    let is_tracer = |f: &Frame| f.symbol().is_some_and(|s| OF_THE_TRACER.iter().any(|prefix| s.starts_with(prefix)));
    let mut frames_named: Vec<Frame> = frame_addresses(frames).map(frame).collect();
    let first = frames_named.iter().rposition(is_tracer).map_or(0, |last| last + 1);
    frames_named.drain(..first);
    Stack { id: StackId(id), frames: frames_named, truncated: frames.truncated != 0 }
}

fn name_addresses(addresses: &[Addr]) -> HashMap<Addr, String> {
    let kernel = Kernel { vmlinux: MaybeDefault::None, debug_syms: false, ..Kernel::default() };
    let symbolizer = Symbolizer::builder().enable_code_info(false).enable_inlined_fns(false).build();
    // Without symbols (kallsyms hidden) every frame is an address, and is counted as unknown in the report.
    let Ok(symbols) = symbolizer.symbolize(&Source::Kernel(kernel), Input::AbsAddr(addresses)) else {
        return HashMap::new();
    };
    let named = addresses.iter().zip(symbols);
    named.filter_map(|(address, symbol)| Some((*address, symbol.as_sym()?.name.to_string()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::planted::{every_field_counts, planted};

    unsafe extern "C" {
        fn host_plant_stack_frames(to: *mut StackFrames);
    }

    #[test]
    fn every_part_of_a_stack_reaches_its_meaning() {
        let frames: StackFrames = planted(host_plant_stack_frames);
        let names = HashMap::from([(51, "leaf".to_owned())]);
        let named = |frames: &StackFrames| name_stack(1, frames, &names);
        let expected = vec![Frame::Symbol("leaf".to_owned()), Frame::Unknown { address: 52 }];
        assert_eq!(named(&frames), Stack { id: StackId(1), frames: expected, truncated: false });
        every_field_counts("stack_frames", frames, &[], named);
    }
}
