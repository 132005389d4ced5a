//! A tuning of `find` on a slow device: one setting helps, one is refused, others show no gain.

use crate::place::Place;
use crate::recording::Recording;
use crate::run::{CacheState, Run};
use crate::tuning::{Measured, Objective, Risk, Set, Tried, TuneVerdict, Tuning};

use super::{command, empty, ext4, ms, run};

/// Three settings screened, one of them confirmed, one refused.
pub fn tuned_recording() -> Recording {
    let mut recording = empty();
    let names = ["slow", "inode_readahead_blks=256", "noatime", "slow", "inode_readahead_blks=256"];
    recording.places = names.map(|label| Place { label: label.to_owned(), ..ext4("", &[]) }).into();
    recording.commands = vec![command("find . -size +1k"); names.len()];
    let mut add = |place: usize, block: u32, wall: f64| {
        let run = run(place, CacheState::Cold, false, ms(wall));
        recording.push_run(Run { block, command: place, ..run });
    };
    for block in 0..5 {
        [778.0, 151.0, 780.0].into_iter().enumerate().for_each(|(at, wall)| add(at, block, wall + f64::from(block)));
    }
    for block in 0..10 {
        [778.0, 152.0].into_iter().enumerate().for_each(|(at, wall)| add(3 + at, block, wall + f64::from(block)));
    }
    let set = |name: &str, written: &str, risk, finding: Option<&str>, permanent: &str| Set {
        name: name.to_owned(),
        written: written.to_owned(),
        risk,
        finding: finding.map(str::to_owned),
        permanent: permanent.to_owned(),
    };
    let seen = |pairs, ratio: f64, ends: Option<(f64, f64)>, p| Measured {
        pairs,
        base_ns: ms(780.0),
        wall_ns: ms(780.0 * ratio),
        base_number: None,
        number: None,
        ratio,
        ci_low: ends.map(|ends| ends.0),
        ci_high: ends.map(|ends| ends.1),
        p,
    };
    let (helps, refused) = (TuneVerdict::Helps, TuneVerdict::Refused);
    let tried = |set, verdict, screened, confirmed| Tried {
        settings: vec![set],
        verdict,
        reason: (verdict == refused).then(|| "mkfs.ext4 failed: no room for its journal".to_owned()),
        screened,
        confirmed,
    };
    let fstab = |option: &str| format!("/etc/fstab: add {option} to the mount options");
    let readahead = "inode_readahead_blks=256";
    recording.tuning = Some(Tuning {
        objective: Objective::Exit,
        number: None,
        place: "slow=ext4:delay=3ms".to_owned(),
        command: "find . -size +1k".to_owned(),
        tried: vec![
            tried(
                set("inode_readahead_blks", readahead, Risk::None, Some("cold-metadata"), &fstab(readahead)),
                helps,
                Some(seen(5, 0.195, None, 0.0625)),
                Some(seen(10, 0.196, Some((0.19, 0.21)), 0.002)),
            ),
            tried(
                set("inode-size", "-I 128", Risk::Safety, None, "make it anew: mkfs.ext4 -I 128"),
                TuneVerdict::NotPursued,
                Some(seen(5, 0.81, None, 0.0625)),
                None,
            ),
            tried(
                set("journal-size", "-J size=64", Risk::None, None, "make it anew: mkfs.ext4 -J size=64"),
                refused,
                None,
                None,
            ),
            tried(
                set("atime", "noatime", Risk::None, None, &fstab("noatime")),
                TuneVerdict::NoGain,
                Some(seen(3, 1.003, None, 0.75)),
                None,
            ),
        ],
        best: Some(0),
        complete: true,
    });
    recording
}
