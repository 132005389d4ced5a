//! Stacks, and the identity that the kernel side gives them.

use serde::{Deserialize, Serialize};

/// A stack's identity: a 64-bit hash of its return addresses, computed in the kernel. Zero means "no stack".
///
/// It serialises as a hexadecimal string, since JSON numbers are not exact beyond 2^53.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct StackId(pub u64);

impl StackId {
    /// True for "no stack".
    pub fn is_none(&self) -> bool {
        self.0 == 0
    }
}

impl Serialize for StackId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:016x}", self.0))
    }
}

impl<'de> Deserialize<'de> for StackId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<StackId, D::Error> {
        let text = String::deserialize(deserializer)?;
        u64::from_str_radix(&text, 16).map(StackId).map_err(serde::de::Error::custom)
    }
}

/// One frame: a function, or a place that no symbol covers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Frame {
    /// A function's name without offset.
    Symbol(String),
    /// A place in a file whose symbols do not cover it.
    InFile {
        /// The file's name, without its directory.
        file: String,
        /// The offset in it.
        offset: u64,
    },
    /// An address without a symbol (hidden, or of a module that is gone).
    Unknown {
        /// The return address.
        address: u64,
    },
}

impl Frame {
    /// The function's name, where there is one.
    pub fn symbol(&self) -> Option<&str> {
        match self {
            Frame::Symbol(name) => Some(name),
            Frame::InFile { .. } | Frame::Unknown { .. } => None,
        }
    }
}

/// A function's name without what the compiler appends: `filemap_readahead.isra.0`, `do_select.constprop.0`.
pub fn function_name(symbol: &str) -> &str {
    symbol.split_once('.').map_or(symbol, |(name, _)| name)
}

/// A stack in the kernel or in user mode, leaf first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// Its identity.
    pub id: StackId,
    /// Leaf (where the thread was) first, entry point last.
    pub frames: Vec<Frame>,
    /// True where the stack was deeper than what could be recorded; the frames nearest to the leaf are kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

impl Stack {
    /// The names of the known frames, leaf first.
    pub fn symbols(&self) -> impl Iterator<Item = &str> {
        self.frames.iter().filter_map(Frame::symbol)
    }
}
