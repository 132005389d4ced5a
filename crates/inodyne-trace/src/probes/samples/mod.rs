//! Reads the table of on-CPU samples.

use inodyne_model::observed::Sample;
use inodyne_model::stack::StackId;

use crate::intf::SampleKey;
use crate::names;

/// All samples, in a fixed order.
pub fn read(pairs: Vec<(SampleKey, u64)>) -> Vec<Sample> {
    let mut samples: Vec<Sample> = pairs
        .into_iter()
        .map(|(key, count)| Sample {
            thread: key.thread,
            syscall: names::call(key.call),
            user_mode: key.user_mode != 0,
            stack: StackId(key.stack),
            user_stack: StackId(key.user_stack),
            count,
        })
        .collect();
    samples.sort_by_cached_key(|one| (one.thread, one.syscall.clone(), one.user_mode, one.stack, one.user_stack));
    samples
}
