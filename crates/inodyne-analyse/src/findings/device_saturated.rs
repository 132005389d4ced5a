//! `device-saturated`: the device is busy nearly all of the time with several requests at once, and the command waits for it. Whether it could
//! serve more at once is only known where it was measured: then more threads, or a longer queue, would only let each request wait longer.

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

/// Below this share of the wall-clock time, most of it is something other than the device.
const LEAST_SHARE: f64 = 0.5;
/// Below this fraction of what it was measured to be capable of, more requests at once would bring more.
const MOSTLY_USED: f64 = 0.7;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let device = AtDevice::of(case)?;
    let waiting = case.ledger(|row| row.kind == RowKind::Blocked && row.cause.is_some_and(Cause::is_of_device));
    let share = waiting / case.wall();
    let load = &device.load;
    let used = device.used_share();
    let could_do_more = used.is_some_and(|used| used < MOSTLY_USED);
    if share < LEAST_SHARE || load.busy < BUSY || load.depth < MANY || could_do_more {
        return None;
    }
    let faster = "or use a faster device, or several";
    let (title, faster) = match used {
        Some(_) => (
            "The device is working at its limit".to_owned(),
            format!("{faster}; more threads or a longer queue only make each request wait longer"),
        ),
        None => (
            format!("The device is busy {} of the time with {:.1} requests at once", percent(load.busy), load.depth),
            format!("{faster}; inodyne doctor --device DIRECTORY measures whether it could do more at once"),
        ),
    };
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
            title: format!("{title}: {} of the time is spent waiting for it", percent(share)),
            share,
            evidence,
            predicted: estimate::at_best_of(case, share),
            cure: advice(&[
                "move less: compress, leave out what nobody needs, keep in memory what is read again",
                &faster,
            ]),
            avoidable_calls: None,
            bound: true,
        }
        .finding(case),
    )
}
