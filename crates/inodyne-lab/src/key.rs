//! The options that a place may have. Which kind takes which says [`crate::Kind`]; what a value means, [`crate::PlaceSpec`].

/// The name of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Size,
    Mkfs,
    Lower,
    Upper,
    Layers,
    Mount,
    Age,
    Full,
    Delay,
    Bandwidth,
    Iops,
    Set,
}

impl Key {
    /// All of them.
    pub(crate) const ALL: [Self; 12] = [
        Self::Size,
        Self::Mkfs,
        Self::Lower,
        Self::Upper,
        Self::Layers,
        Self::Mount,
        Self::Age,
        Self::Full,
        Self::Delay,
        Self::Bandwidth,
        Self::Iops,
        Self::Set,
    ];

    /// As it is written.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Mkfs => "mkfs",
            Self::Lower => "lower",
            Self::Upper => "upper",
            Self::Layers => "layers",
            Self::Mount => "mount",
            Self::Age => "age",
            Self::Full => "full",
            Self::Delay => "delay",
            Self::Bandwidth => "bandwidth",
            Self::Iops => "iops",
            Self::Set => "set",
        }
    }

    /// Whether its value is a place.
    pub(crate) const fn is_place(self) -> bool {
        matches!(self, Self::Lower | Self::Upper)
    }

    /// The key that `text` begins with, and what follows its `=`.
    pub(crate) fn prefix(text: &str) -> Option<(Self, &str)> {
        let (name, value) = text.split_once('=')?;
        Self::ALL.into_iter().find(|key| key.name() == name).map(|key| (key, value))
    }
}
