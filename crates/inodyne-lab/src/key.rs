//! The options that a place may have. [`crate::Kind`] says which kind takes which; [`crate::PlaceSpec`] says what a value means.

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
    WithholdTypes,
    Set,
}

impl Key {
    /// All of them.
    pub(crate) const ALL: [Self; 13] = [
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
        Self::WithholdTypes,
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
            Self::WithholdTypes => "withhold-types",
            Self::Set => "set",
        }
    }

    /// Whether its value is a place.
    pub(crate) const fn is_place(self) -> bool {
        matches!(self, Self::Lower | Self::Upper)
    }

    /// Whether it has no value: it is either given or not.
    pub(crate) const fn is_word(self) -> bool {
        matches!(self, Self::WithholdTypes)
    }

    /// As it is written before its value.
    pub(crate) fn begins(self) -> String {
        if self.is_word() { self.name().to_owned() } else { format!("{}=", self.name()) }
    }

    /// The key that `text` begins with, and what follows: after its `=`, or, where it has no value, from the comma on.
    pub(crate) fn prefix(text: &str) -> Option<(Self, &str)> {
        let word = Self::ALL.into_iter().filter(|key| key.is_word()).find_map(|key| {
            let rest = text.strip_prefix(key.name())?;
            (rest.is_empty() || rest.starts_with(',')).then_some((key, rest))
        });
        if word.is_some() {
            return word;
        }
        let (name, value) = text.split_once('=')?;
        Self::ALL.into_iter().find(|key| key.name() == name && !key.is_word()).map(|key| (key, value))
    }
}
