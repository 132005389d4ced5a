//! Why a thread was blocked: from its kernel stack, and from who woke it, to a [`Cause`].
//!
//! A stack is read from the leaf outwards, and the first function that says *what* the thread waits for decides.
//! Applying each rule to the whole stack would be wrong: nearly every stack of a file system passes through a function
//! that "reads" or "locks", but only the one nearest to the leaf is what the thread waits in.
//!
//! Some functions at the leaf only say *how* the thread waits: on a sleeping lock, on a bit of a buffer. They set a
//! [`Way`], and from then on only rules for that way count besides the unconditional ones. A thread that sleeps on a
//! semaphore below `iterate_dir` waits for a lock, whatever `iterate_dir` reads at other times. For a lock, only the
//! function that took it is consulted: those farther out hold other locks.
//!
//! ```text
//! rwsem_down_write_slowpath   how: a lock           bit_wait_io              how: a device
//! down_write                  nothing               __wait_on_bit            nothing
//! do_unlinkat                 an inode's: decided   __ext4_find_entry        a read: decided
//! ```
//!
//! The waker is consulted where the stack alone would mislead: a buffer's lock that is released by the completion of
//! its I/O was waited for because of the device, and nobody else wanted it; and the wait for a page looks the same
//! whether a device or a server reads it. And where the stack says nothing at all, an interrupt that ended the wait
//! does: a timer, a request of a block device, a packet.

mod table;

use std::cell::RefCell;
use std::collections::HashMap;

use inodyne_model::cause::Cause;
use inodyne_model::observed::{Wait, Waker};
use inodyne_model::stack::{Stack, StackId, function_name};

use table::{ANSWERS, Ended, INTERRUPTS, IO_COMPLETIONS, Means, RULES, STOPS, SWITCHES, WRITERS, Way};

/// Decides the causes of the waits of one trace, and remembers what it has decided.
pub struct Classifier<'a> {
    stacks: HashMap<StackId, &'a Stack>,
    rules: HashMap<&'static str, Vec<Means>>,
    decided: RefCell<HashMap<(StackId, Waker, StackId), Cause>>,
}

impl<'a> Classifier<'a> {
    /// A classifier over all stacks of a trace.
    pub fn new(stacks: &'a [Stack]) -> Classifier<'a> {
        let mut rules: HashMap<_, Vec<_>> = HashMap::new();
        for rule in RULES {
            rules.entry(rule.symbol).or_default().push(rule.means);
        }
        let stacks = stacks.iter().map(|stack| (stack.id, stack)).collect();
        Classifier { stacks, rules, decided: RefCell::default() }
    }

    /// The stack with this identity, where it was kept.
    pub fn stack(&self, id: StackId) -> Option<&'a Stack> {
        self.stacks.get(&id).copied()
    }

    /// The cause of a wait; [`Cause::Other`] where no rule knows.
    pub fn cause(&self, wait: &Wait) -> Cause {
        self.cause_of(wait.stack, wait.waker, wait.waker_stack)
    }

    /// The same for a wait given by its stack, and by who ended it and where.
    pub fn cause_of(&self, stack: StackId, waker: Waker, waker_stack: StackId) -> Cause {
        *self.decided.borrow_mut().entry((stack, waker, waker_stack)).or_insert_with(|| {
            let Some(stack) = self.stack(stack) else { return Cause::Other };
            match self.of_stack(stack) {
                Cause::BufferLock if self.woken_by_io(waker_stack) => Cause::DeviceRead,
                cause @ (Cause::DeviceRead | Cause::DeviceWrite) => self.of_server(waker_stack).unwrap_or(cause),
                Cause::Other if waker == Waker::Interrupt => self.of_interrupt(stack, waker_stack),
                cause => cause,
            }
        })
    }

    fn of_stack(&self, stack: &Stack) -> Cause {
        let mut way = None;
        for symbol in stack.symbols() {
            let rules = self.rules.get(function_name(symbol)).map_or(&[][..], Vec::as_slice);
            let mut how_only = false;
            for means in rules {
                match *means {
                    Means::Is(cause) => return cause,
                    Means::When(how, cause) if way == Some(how) => return cause,
                    Means::When(..) => {}
                    Means::Waits(how) => {
                        how_only = true;
                        way = way.or(Some(how));
                    }
                }
            }
            if way == Some(Way::Lock) && !how_only {
                return Cause::Lock;
            }
        }
        match way {
            Some(way) => way.otherwise(),
            None if is_stopped(stack) => Cause::Stopped,
            None => Cause::Other,
        }
    }

    fn of_interrupt(&self, waiter: &Stack, interrupt: StackId) -> Cause {
        match self.ended(interrupt) {
            Some(Ended::Time) => Cause::Sleep,
            Some(Ended::Packet) => Cause::Socket,
            Some(Ended::Io) if waiter.symbols().any(|symbol| WRITERS.contains(&function_name(symbol))) => {
                Cause::DeviceWrite
            }
            Some(Ended::Io) => Cause::DeviceRead,
            None => Cause::Other,
        }
    }

    fn ended(&self, interrupt: StackId) -> Option<Ended> {
        let what = |symbol| INTERRUPTS.iter().find(|(name, _)| *name == function_name(symbol)).map(|(_, ended)| *ended);
        self.stack(interrupt).and_then(|stack| stack.symbols().find_map(what))
    }

    /// Whether a wait ended because its time was up, as far as what woke the waiter tells: an interrupt that brought neither a packet
    /// nor a device's completion. The stack of such an interrupt may show no more than the code that it interrupted.
    pub(crate) fn is_time_up(&self, waker: Waker, waker_stack: StackId) -> bool {
        matches!(waker, Waker::Interrupt) && matches!(self.ended(waker_stack), Some(Ended::Time) | None)
    }

    /// Which server's answer the waker ended the wait with. The code that an interrupt broke into does not count.
    fn of_server(&self, waker_stack: StackId) -> Option<Cause> {
        let symbols = self.stack(waker_stack)?.symbols().map(function_name);
        let mut own = symbols.take_while(|symbol| !symbol.starts_with("asm_"));
        own.find_map(|symbol| ANSWERS.iter().find(|(name, _)| *name == symbol).map(|(_, cause)| *cause))
    }

    fn woken_by_io(&self, waker_stack: StackId) -> bool {
        let completes = |stack: &Stack| stack.symbols().any(|symbol| IO_COMPLETIONS.contains(&function_name(symbol)));
        self.stack(waker_stack).is_some_and(completes)
    }
}

fn is_stopped(stack: &Stack) -> bool {
    stack.symbols().map(function_name).find(|symbol| !SWITCHES.contains(symbol)) == Some(STOPS)
}

#[cfg(test)]
mod tests;
