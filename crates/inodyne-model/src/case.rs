//! Which case something belongs to: one command in one place, with the caches in one state, under one set of settings.
//!
//! A case is what is repeated and compared. Runs, traces and statistics say which one they belong to by `key()`, and a
//! comparison is about two of them.
//!
//! In JSON, the fields of a key are among those of a run or a trace. In a comparison, the state of the caches is given only
//! once, since it is the same for both.

use serde::{Deserialize, Serialize};

use crate::run::{CacheState, Run, SettingsIndex, is_default};
use crate::trace::Trace;

/// What identifies a case within its recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct CaseKey {
    /// Index into the recording's places.
    pub place: usize,
    /// Index into the recording's commands.
    pub command: usize,
    /// State of the caches beforehand.
    pub cache: CacheState,
    /// Which settings were in force.
    #[serde(default, skip_serializing_if = "is_default")]
    pub settings: SettingsIndex,
}

impl CaseKey {
    /// The case of a command in a place with the settings that the place came with.
    pub fn new(place: usize, command: usize, cache: CacheState) -> CaseKey {
        CaseKey { place, command, cache, settings: 0 }
    }
}

impl Run {
    /// The case that it belongs to.
    pub fn key(&self) -> CaseKey {
        let Run { place, command, cache, settings, .. } = *self;
        CaseKey { place, command, cache, settings }
    }
}

impl Trace {
    /// The case that it belongs to.
    pub fn key(&self) -> CaseKey {
        let Trace { place, command, cache, settings, .. } = *self;
        CaseKey { place, command, cache, settings }
    }
}

/// Two cases with the caches in the same state: the base `a`, and `b`, which is compared with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "StoredPair", into = "StoredPair")]
pub struct CasePair {
    /// The base.
    pub a: CaseKey,
    /// What is compared with it.
    pub b: CaseKey,
}

impl CasePair {
    /// The state of the caches of both.
    pub fn cache(&self) -> CacheState {
        self.a.cache
    }
}

/// A pair as it is stored in recordings.
#[derive(Serialize, Deserialize)]
struct StoredPair {
    a: StoredCase,
    b: StoredCase,
    cache: CacheState,
}

#[derive(Serialize, Deserialize)]
struct StoredCase {
    place: usize,
    command: usize,
    #[serde(default, skip_serializing_if = "is_default")]
    settings: SettingsIndex,
}

impl From<StoredPair> for CasePair {
    fn from(StoredPair { a, b, cache }: StoredPair) -> CasePair {
        let key = |StoredCase { place, command, settings }| CaseKey { place, command, cache, settings };
        CasePair { a: key(a), b: key(b) }
    }
}

impl From<CasePair> for StoredPair {
    fn from(pair: CasePair) -> StoredPair {
        let stored = |CaseKey { place, command, settings, .. }| StoredCase { place, command, settings };
        StoredPair { a: stored(pair.a), b: stored(pair.b), cache: pair.cache() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_stand_in_a_recording_where_some_were_tried() {
        let key = CaseKey::new(1, 2, CacheState::Cold);
        let json = r#"{"place":1,"command":2,"cache":"cold"}"#;
        assert_eq!(serde_json::to_string(&key).unwrap(), json);
        assert_eq!(serde_json::from_str::<CaseKey>(json).unwrap(), key);
        let tuned = CaseKey { settings: 3, ..key };
        let json = r#"{"place":1,"command":2,"cache":"cold","settings":3}"#;
        assert_eq!(serde_json::to_string(&tuned).unwrap(), json);
        assert_eq!(serde_json::from_str::<CaseKey>(json).unwrap(), tuned);
    }

    #[test]
    fn a_pair_has_its_state_of_the_caches_once() {
        let key = |place, settings| CaseKey { settings, ..CaseKey::new(place, 0, CacheState::Warm) };
        let pair = CasePair { a: key(0, 0), b: key(1, 2) };
        let json = r#"{"a":{"place":0,"command":0},"b":{"place":1,"command":0,"settings":2},"cache":"warm"}"#;
        assert_eq!(serde_json::to_string(&pair).unwrap(), json);
        assert_eq!(serde_json::from_str::<CasePair>(json).unwrap(), pair);
    }
}
