//! What the sides of a comparison are called: by what they differ in, and in words that say nothing twice.

use inodyne_model::comparison::Side;
use inodyne_model::recording::Recording;
use inodyne_model::run::CacheState;

/// The names of two sides, and what they have in common.
pub(crate) struct Names {
    pub(crate) a: String,
    pub(crate) b: String,
    /// The command or the place of both, where the recording has several; empty otherwise.
    pub(crate) common: String,
}

impl Names {
    pub(crate) fn of(recording: &Recording, a: Side, b: Side) -> Names {
        let several_commands = recording.commands.len() > 1;
        let several_places = recording.places.len() > 1;
        let (place, command) =
            (|side: Side| place(recording, side.place), |side: Side| command(recording, side.command));
        if a.command == b.command {
            let common = if several_commands { command(a) } else { String::new() };
            Names { a: place(a), b: place(b), common }
        } else {
            let common = if several_places { format!("on {}", place(a)) } else { String::new() };
            Names { a: command(a), b: command(b), common }
        }
    }

    /// What both have in common, with the state of the caches: `, find . , cold`.
    pub(crate) fn circumstances(&self, cache: CacheState) -> String {
        let common = if self.common.is_empty() { String::new() } else { format!(", {}", self.common) };
        match cache {
            CacheState::AsIs => common,
            _ => format!("{common}, {cache}"),
        }
    }
}

/// A place's label, or where it is.
pub(crate) fn place(recording: &Recording, index: usize) -> String {
    match recording.places.get(index) {
        Some(place) if !place.label.is_empty() => place.label.clone(),
        Some(place) => place.path.display().to_string(),
        None => "?".to_owned(),
    }
}

/// A case by what the recording has several of: its command, its place, or both.
pub(crate) fn case(recording: &Recording, place: usize, command: usize) -> String {
    match (recording.commands.len() > 1, recording.places.len() > 1) {
        (true, true) => format!("{} on {}", self::command(recording, command), self::place(recording, place)),
        (true, false) => self::command(recording, command),
        (false, _) => self::place(recording, place),
    }
}

/// A command as it is called in reports.
pub(crate) fn command(recording: &Recording, index: usize) -> String {
    recording.commands.get(index).map_or_else(|| "?".to_owned(), |command| command.label.clone())
}
