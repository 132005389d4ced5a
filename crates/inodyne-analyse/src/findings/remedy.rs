//! What to do about a finding: a line of the report, and what of it a program can do.

use inodyne_model::cure::{Change, Cure, PlaceChange};
use inodyne_model::place::Place;

use super::case::Case;

/// A line of a finding's cure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Remedy {
    /// The line.
    pub(super) text: String,
    /// What of it a program can do, and which line of the evidence it answers: the first, unless said otherwise.
    pub(super) cure: Cure,
}

impl Remedy {
    /// What a program can do, in words.
    pub(super) fn new(text: impl Into<String>, change: Change) -> Remedy {
        Remedy { text: text.into(), cure: Cure { change, answers: 0 } }
    }

    /// What only people can do.
    pub(super) fn advice(text: impl Into<String>) -> Remedy {
        Remedy::new(text, Change::advice())
    }

    /// The same as an answer to another line of the evidence.
    pub(super) fn answering(mut self, line: usize) -> Remedy {
        self.cure.answers = line;
        self
    }
}

/// Where the kernel keeps how far it reads ahead, unless it is with the file system.
pub(super) const READ_AHEAD_OF_DEVICE: &str = "/sys/block/DEVICE/queue/read_ahead_kb";

/// Where the kernel keeps how far it reads ahead in this case. btrfs has that for itself, and does not heed what its devices, of which there may
/// be several, have (`super_setup_bdi` in fs/btrfs/super.c).
pub(super) fn read_ahead_file(case: &Case<'_>) -> &'static str {
    if case.fs() == "btrfs" { "/sys/fs/btrfs/UUID/bdi/read_ahead_kb" } else { READ_AHEAD_OF_DEVICE }
}

/// The kernel reads ahead so many KiB, where a place can be made that way.
pub(super) fn read_ahead(case: &Case<'_>, kib: &str) -> Change {
    if read_ahead_file(case) != READ_AHEAD_OF_DEVICE {
        return Change::advice();
    }
    Change::Setting { file: "/sys/block/LOOP/queue/read_ahead_kb".to_owned(), value: kib.to_owned() }
}

/// Lines that only people can follow.
pub(super) fn advice(lines: &[&str]) -> Vec<Remedy> {
    lines.iter().map(|line| Remedy::advice(*line)).collect()
}

/// Leaves settings as the machine has them, where the place has other values for some of them; advice where it has none.
pub(super) fn without_settings(case: &Case<'_>, settings: &[&str]) -> Change {
    fn name(file: &str) -> &str {
        file.rsplit('/').next().unwrap_or(file)
    }
    fn changed(place: &Place) -> Vec<&str> {
        place.settings.keys().map(|file| name(file)).chain(place.below.iter().flat_map(changed)).collect()
    }
    let place = case.recording.places.get(case.trace.place);
    let mut names: Vec<&str> = place.map_or_else(Vec::new, changed);
    names.retain(|name| settings.contains(name));
    match names[..] {
        [] => Change::advice(),
        _ => Change::Place(PlaceChange::WithoutSettings(names.into_iter().map(str::to_owned).collect())),
    }
}
