//! A path into the JSON of a recording: `comparisons[b.place=fast, command=find, metric=wall].ratio`.
//!
//! ```text
//! path      = root selector? ( "." field selector? )*
//! selector  = "[" key "=" value ( "," key "=" value )* "]"
//! ```
//! A root is a list of the recording. A selector takes those elements of a list for which all of it is true; without one, all are taken.
//! Which roots, fields and keys there are is in [`super::fields`].

use std::fmt;

/// A path, not looked up yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    pub root: Step,
    pub steps: Vec<Step>,
}

/// One name of it, and what to take there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub field: String,
    /// Keys and the values that they must have.
    pub select: Vec<(String, String)>,
}

impl Path {
    /// Reads one.
    pub fn parse(text: &str) -> Result<Path, String> {
        let mut steps = Vec::new();
        let mut rest = text.trim();
        loop {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (field, after) = rest.split_at(end);
            if field.trim().is_empty() {
                return Err(format!("'{text}' lacks a name before '{after}'"));
            }
            let (select, after) = match after.strip_prefix('[') {
                Some(inside) => {
                    let (select, after) = inside.split_once(']').ok_or_else(|| format!("'{text}' lacks a ']'"))?;
                    (selector(select)?, after)
                }
                None => (Vec::new(), after),
            };
            steps.push(Step { field: field.trim().to_owned(), select });
            match after.strip_prefix('.') {
                Some(after) => rest = after,
                None if after.trim().is_empty() => break,
                None => return Err(format!("'{text}' goes on with '{after}': write a dot before a name")),
            }
        }
        let root = steps.remove(0);
        Ok(Path { root, steps })
    }
}

fn selector(text: &str) -> Result<Vec<(String, String)>, String> {
    let pair = |pair: &str| match pair.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() && !value.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(format!("'[{text}]' is not a selector: write [key=value, key=value]")),
    };
    text.split(',').map(pair).collect()
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in std::iter::once(&self.root).chain(&self.steps).enumerate() {
            write!(f, "{}{}", if at == 0 { "" } else { "." }, step.field)?;
            if !step.select.is_empty() {
                let pairs: Vec<String> = step.select.iter().map(|(key, value)| format!("{key}={value}")).collect();
                write!(f, "[{}]", pairs.join(", "))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_and_written() {
        for text in [
            "findings",
            "findings[place=slow, id=dtype-missing]",
            "comparisons[b.place=fast, metric=syscall:read:wall].ratio",
            "traces[command=ls -R].syscalls[name=newfstatat].calls",
        ] {
            assert_eq!(Path::parse(text).unwrap().to_string(), text);
        }
        let path = Path::parse("traces[place=a,command=b].ledger.rows[kind=blocked].ns").unwrap();
        assert_eq!(path.steps[2].field, "ns");
        assert_eq!(path.root.select, [("place".into(), "a".into()), ("command".into(), "b".into())]);
    }

    #[test]
    fn what_is_no_path_is_said() {
        for text in ["", ".", "a..b", "a[", "a[b]", "a[b=]", "a[=c]", "a[b=c]d", "a.", "[a=b]", "a[b=c,]"] {
            assert!(Path::parse(text).is_err(), "{text}");
        }
    }
}
