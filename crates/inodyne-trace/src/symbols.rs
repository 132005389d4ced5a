//! Kernel addresses to function names, by the kernel itself (`bpf/names.bpf.h`).

use std::collections::HashMap;

use inodyne_model::stack::{Frame, Stack, StackId};
use libbpf_rs::ProgramInput;

use crate::contract::{STACK_DEPTH, StackFrames};
use crate::skeleton::{InodyneSkel, types};

/// The global variables of the programs.
type Variables = types::bss;

/// Frames that stand between the traced place and the program that took the stack; they say nothing of the place.
const OF_THE_TRACER: [&str; 6] =
    ["bpf_prog_", "bpf_trace_run", "__bpf_trace_", "__traceiter_", "bpf_get_stack", "bpf_overflow_handler"];

/// Names every frame of every stack. An address without a symbol stays an address.
pub fn name_stacks(
    stacks: &[(u64, StackFrames)],
    skeleton: &mut InodyneSkel<'_>,
) -> Result<Vec<Stack>, libbpf_rs::Error> {
    let mut addresses: Vec<u64> = stacks.iter().flat_map(|(_, frames)| frame_addresses(frames)).collect();
    addresses.sort_unstable();
    addresses.dedup();
    let names = name_addresses(&addresses, skeleton)?;
    let mut named: Vec<Stack> = stacks.iter().map(|(id, frames)| name_stack(*id, frames, &names)).collect();
    named.sort_by_key(|stack| stack.id);
    Ok(named)
}

fn frame_addresses(frames: &StackFrames) -> impl Iterator<Item = u64> + '_ {
    frames.address.iter().take((frames.depth as usize).min(STACK_DEPTH)).copied()
}

fn name_stack(id: u64, frames: &StackFrames, names: &HashMap<u64, String>) -> Stack {
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

/// Asks the kernel for the names, some at a time. An address that is in no function has none.
fn name_addresses(addresses: &[u64], skeleton: &mut InodyneSkel<'_>) -> Result<HashMap<u64, String>, libbpf_rs::Error> {
    let mut names = HashMap::with_capacity(addresses.len());
    let at_once = variables(skeleton).named_addresses.len();
    for some in addresses.chunks(at_once) {
        variables(skeleton).named_addresses[..some.len()].copy_from_slice(some);
        let mut count = (some.len() as u64).to_ne_bytes();
        let input = ProgramInput { context_in: Some(&mut count), ..ProgramInput::default() };
        skeleton.progs.name_addresses.test_run(input)?;
        let written = &variables(skeleton).address_names;
        names.extend(some.iter().zip(written).filter_map(|(address, name)| Some((*address, function(name)?))));
    }
    Ok(names)
}

fn variables<'a>(skeleton: &'a mut InodyneSkel<'_>) -> &'a mut Variables {
    skeleton.maps.bss_data.as_mut().expect("the object has global variables")
}

/// The function that the kernel wrote: `xfs_iget [xfs]` where it is one of a module's, a number where it knows none.
fn function(written: &[i8]) -> Option<String> {
    let bytes: Vec<u8> = written.iter().map(|byte| byte.cast_unsigned()).take_while(|byte| *byte != 0).collect();
    let text = String::from_utf8_lossy(&bytes);
    let name = text.split(' ').next().filter(|name| !name.is_empty() && !name.starts_with("0x"))?;
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::planted::{every_field_counts, planted};

    unsafe extern "C" {
        fn host_plant_stack_frames(to: *mut StackFrames);
    }

    #[test]
    fn what_the_kernel_writes_is_a_function_of_the_kernel_or_of_a_module() {
        const LENGTH: usize = 32;
        let written = |text: &str| {
            let mut name = [0; LENGTH];
            name.iter_mut().zip(text.bytes()).for_each(|(to, byte)| *to = byte.cast_signed());
            function(&name)
        };
        assert_eq!(written("schedule").as_deref(), Some("schedule"));
        assert_eq!(written("xfs_iget [xfs]").as_deref(), Some("xfs_iget"));
        assert_eq!(written("0xffff888012345678"), None);
        assert_eq!(written(""), None);
        assert_eq!(written(&"x".repeat(LENGTH)).map(|name| name.len()), Some(LENGTH));
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
