//! Kernel addresses to function names, by the kernel itself (`bpf/names.bpf.h`).

use std::collections::HashMap;

use inodyne_model::stack::{Frame, Stack, StackId};
use libbpf_rs::ProgramInput;

use crate::skeleton::{InodyneSkel, types};
use crate::stacks::KernelStack;

/// The global variables of the programs.
type Variables = types::bss;

/// Frames between the traced place and the program that took the stack; they say nothing about the place.
const OF_THE_TRACER: [&str; 6] =
    ["bpf_prog_", "bpf_trace_run", "__bpf_trace_", "__traceiter_", "bpf_get_stack", "bpf_overflow_handler"];

/// Names every frame of every stack. An address without a symbol stays an address.
pub fn name_stacks(stacks: &[KernelStack], skeleton: &mut InodyneSkel<'_>) -> Result<Vec<Stack>, libbpf_rs::Error> {
    let mut addresses: Vec<u64> = stacks.iter().flat_map(|stack| stack.addresses.iter().copied()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    let names = name_addresses(&addresses, skeleton)?;
    let mut named: Vec<Stack> = stacks.iter().map(|stack| name_stack(stack, &names)).collect();
    named.sort_by_key(|stack| stack.id);
    Ok(named)
}

fn name_stack(stack: &KernelStack, names: &HashMap<u64, String>) -> Stack {
    let frame = |address: &u64| match names.get(address) {
        Some(name) => Frame::Symbol(name.clone()),
        None => Frame::Unknown { address: *address },
    };
    let is_tracer = |f: &Frame| f.symbol().is_some_and(|s| OF_THE_TRACER.iter().any(|prefix| s.starts_with(prefix)));
    let mut frames: Vec<Frame> = stack.addresses.iter().map(frame).collect();
    let first = frames.iter().rposition(is_tracer).map_or(0, |last| last + 1);
    frames.drain(..first);
    Stack { id: StackId(stack.id), frames, truncated: stack.is_truncated }
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

/// The function that the kernel wrote: `xfs_iget [xfs]` if it belongs to a module, a number if the kernel knows none.
fn function(written: &[i8]) -> Option<String> {
    let bytes: Vec<u8> = written.iter().map(|byte| byte.cast_unsigned()).take_while(|byte| *byte != 0).collect();
    let text = String::from_utf8_lossy(&bytes);
    let name = text.split(' ').next().filter(|name| !name.is_empty() && !name.starts_with("0x"))?;
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_has_no_name_stays_an_address_and_what_is_ours_is_left_out() {
        let name = |(address, name): (u64, &str)| (address, name.to_owned());
        let names = HashMap::from([(50, "bpf_trace_run4"), (51, "leaf")].map(name));
        let stack = KernelStack { id: 1, addresses: [49, 50, 51, 52].into(), is_truncated: true };
        let frames = vec![Frame::Symbol("leaf".to_owned()), Frame::Unknown { address: 52 }];
        assert_eq!(name_stack(&stack, &names), Stack { id: StackId(1), frames, truncated: true });
    }
}
