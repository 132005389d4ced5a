//! `device-saturated`: the device is busy nearly all of the time with several requests at once, and the command waits for it. More threads,
//! or a longer queue, would only let each request wait longer.

use inodyne_model::cause::Cause;
use inodyne_model::finding::Finding;
use inodyne_model::ledger::RowKind;

use super::at_device::AtDevice;
use super::case::Case;
use super::estimate::{self, Diagnosed};
use super::others;
use super::remedy::advice;
use crate::device::{BUSY, MANY};
use crate::units::{percent, seconds};

/// Below this share of the wall-clock time something else than the device is most of it.
const LEAST_SHARE: f64 = 0.5;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let device = AtDevice::of(case)?;
    let waiting = case.ledger(|row| row.kind == RowKind::Blocked && row.cause.is_some_and(Cause::is_of_device));
    let share = waiting / case.wall();
    let load = &device.load;
    if share < LEAST_SHARE || load.busy < BUSY || load.depth < MANY {
        return None;
    }
    let mut evidence = vec![format!(
        "it moves {:.1} MB and answers {:.0} requests a second, {:.1} KB each",
        load.bytes_per_s / 1e6,
        load.requests_per_s,
        load.amount.mean_bytes() as f64 / 1e3
    )];
    evidence.extend(device.line());
    evidence.extend(device.limit_line());
    evidence.extend(others::evidence(case));
    evidence.push(format!("the command waits for it for {}", seconds(waiting)));
    Some(
        Diagnosed {
            title: format!("The device has all that it can do: {} of the time is waiting for it", percent(share)),
            share,
            evidence,
            predicted: estimate::at_best_of(case, share),
            cure: advice(&[
                "move less: compress, leave out what nobody needs, keep in memory what is read again",
                "or use a faster device, or several; more threads or a longer queue only make each request wait longer",
            ]),
            avoidable_calls: None,
            bound: true,
        }
        .finding(case),
    )
}
