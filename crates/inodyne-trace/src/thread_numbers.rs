//! Numbers of threads in a recording: those of the command first, then the helpers.

use inodyne_model::observed::ThreadNumber;

use crate::contract::HELPER_FIRST;

/// Gives helpers the numbers after those of the command's threads.
#[derive(Debug, Clone, Copy)]
pub struct ThreadNumbers {
    /// How many threads the command had.
    pub threads: u32,
}

impl ThreadNumbers {
    /// The number in the recording of a thread with this number on the kernel side.
    pub fn of(self, number: u32) -> ThreadNumber {
        if number < HELPER_FIRST {
            number
        } else {
            (number - HELPER_FIRST).saturating_add(self.threads).saturating_add(1)
        }
    }
}
