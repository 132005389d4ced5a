//! Where in a study's file something is wrong, and what.

use std::fmt;
use std::ops::Range;

use toml::Spanned;

/// The text of a study, and what to call it.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its path, or its name if it is built in.
    pub name: String,
    pub text: String,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    at: usize,
    what: String,
}

impl Mistake {
    /// At a byte of the text.
    pub fn at(at: usize, what: impl fmt::Display) -> Mistake {
        Mistake { at, what: what.to_string() }
    }

    /// At a value that was read.
    pub fn of<T>(value: &Spanned<T>, what: impl fmt::Display) -> Mistake {
        Mistake::at(value.span().start, what)
    }

    /// What the TOML parser says, also about unknown keys and wrong types.
    pub fn of_toml(error: &toml::de::Error) -> Mistake {
        Mistake::at(error.span().map_or(0, |Range { start, .. }| start), error.message())
    }

    /// `FILE:LINE:COLUMN: what`, counted from 1, columns in characters.
    pub fn told(&self, source: &Source) -> String {
        let before = source.text.get(..self.at).unwrap_or(&source.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!("{}:{line}:{column}: {}", source.name, self.what)
    }

    /// Where it is.
    pub fn position(&self) -> usize {
        self.at
    }
}
