//! Kernel time outside of system calls: page faults, interrupts, and the way in and out of the kernel.
//!
//! The collecting side knows only "on a CPU, in no call". The samples taken there say how much of it was really user
//! mode; the time is split in their proportion. With few samples the split is rough, so its rows are marked
//! `estimated`. The split is done in integers, and the user part takes the remainder: the parts sum to the whole exactly.

use inodyne_model::Nanos;
use inodyne_model::ledger::{INTERRUPT, PAGE_FAULT, Row, RowKind};
use inodyne_model::observed::Sample;
use inodyne_model::stack::Stack;

/// What a thread did on a CPU outside of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outside {
    PageFault,
    Interrupt,
    /// In the kernel, but neither: entry and exit of calls, signals.
    Border,
}

const SPLITS: [Outside; 3] = [Outside::PageFault, Outside::Interrupt, Outside::Border];

impl Outside {
    /// The name that stands in a row's `syscall`.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Outside::PageFault => Some(PAGE_FAULT),
            Outside::Interrupt => Some(INTERRUPT),
            Outside::Border => None,
        }
    }

    /// From a kernel stack taken outside of calls. An interrupt may come in the middle of a page fault, and then lies
    /// nearer to the leaf, so the frame nearest to the leaf decides.
    pub(crate) fn of(stack: &Stack) -> Outside {
        let known = |symbol: &str| match symbol {
            "exc_page_fault" | "asm_exc_page_fault" | "do_user_addr_fault" | "handle_mm_fault" => {
                Some(Outside::PageFault)
            }
            "asm_common_interrupt" | "common_interrupt" | "handle_softirqs" | "irq_exit_rcu" | "run_ksoftirqd" => {
                Some(Outside::Interrupt)
            }
            _ if symbol.starts_with("asm_sysvec_") || symbol.starts_with("sysvec_") => Some(Outside::Interrupt),
            // The same on arm64.
            "do_page_fault" | "do_mem_abort" | "el0_da" | "el0_ia" => Some(Outside::PageFault),
            "el0_interrupt" | "el1_interrupt" | "gic_handle_irq" => Some(Outside::Interrupt),
            _ => None,
        };
        stack.symbols().find_map(known).unwrap_or(Outside::Border)
    }
}

/// Splits the time on a CPU outside of calls into rows that sum to it.
pub(crate) fn split<'a>(
    on_cpu: Nanos,
    samples: impl Iterator<Item = &'a Sample>,
    stack_of: impl Fn(&Sample) -> Option<&'a Stack>,
) -> Vec<Row> {
    let mut counts = [0u64; SPLITS.len()];
    let mut all = 0u64;
    for sample in samples.filter(|sample| sample.syscall.is_none()) {
        all = all.saturating_add(sample.count);
        if !sample.user_mode {
            let outside = stack_of(sample).map_or(Outside::Border, Outside::of);
            let count = &mut counts[outside as usize];
            *count = count.saturating_add(sample.count);
        }
    }
    let mut user = Row::new(RowKind::User, on_cpu);
    let mut rows = Vec::new();
    for (outside, count) in SPLITS.into_iter().zip(counts).filter(|(_, count)| *count > 0) {
        // Never more than what is left: three parts of a whole that saturated could sum to more.
        let part = u128::from(on_cpu.0) * u128::from(count) / u128::from(all);
        let ns = Nanos(u64::try_from(part).unwrap_or(u64::MAX)).min(user.ns);
        user.ns = user.ns - ns;
        user.estimated = true;
        rows.push(Row { syscall: outside.name().map(str::to_owned), estimated: true, ..Row::new(RowKind::Kernel, ns) });
    }
    rows.push(user);
    rows
}

#[cfg(test)]
mod tests {
    use inodyne_model::stack::{Frame, StackId};

    use super::*;

    fn stack(symbols: &[&str]) -> Stack {
        let frames = symbols.iter().map(|s| Frame::Symbol((*s).to_owned())).collect();
        Stack { id: StackId(1), frames, truncated: false }
    }

    #[test]
    fn the_frame_nearest_to_the_leaf_decides() {
        let fault = ["clear_page_erms", "do_anonymous_page", "handle_mm_fault", "exc_page_fault", "asm_exc_page_fault"];
        assert_eq!(Outside::of(&stack(&fault)), Outside::PageFault);
        let interrupted = ["handle_softirqs", "asm_sysvec_apic_timer_interrupt", "handle_mm_fault", "exc_page_fault"];
        assert_eq!(Outside::of(&stack(&interrupted)), Outside::Interrupt);
        assert_eq!(Outside::of(&stack(&["syscall_exit_to_user_mode", "do_syscall_64"])), Outside::Border);
    }

    #[test]
    fn the_parts_sum_to_the_whole() {
        let fault = stack(&["exc_page_fault"]);
        let sample = |user_mode, count| Sample {
            thread: 1,
            syscall: None,
            user_mode,
            stack: StackId(1),
            user_stack: StackId(0),
            count,
        };
        let samples = [sample(true, 2), sample(false, 1)];
        let rows = split(Nanos(1_000), samples.iter(), |_| Some(&fault));
        let parts: Vec<_> = rows.iter().map(|r| (r.kind, r.syscall.as_deref(), r.ns.0, r.estimated)).collect();
        assert_eq!(parts, [(RowKind::Kernel, Some(PAGE_FAULT), 333, true), (RowKind::User, None, 667, true)]);
    }
}
