//! What the kernel may keep of a server's answers, given as mount options as libfuse's servers take them.

use std::time::Duration;

/// For how long names and attributes are believed, and whether contents are kept beyond an open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caching {
    /// `entry_timeout=SECONDS`: for names, 1 s by default.
    pub entry: Duration,
    /// `attr_timeout=SECONDS`: for attributes, 1 s by default.
    pub attributes: Duration,
    /// `negative_timeout=SECONDS`: for names that are not there, none by default.
    pub negative: Duration,
    /// `kernel_cache`: an open does not drop cached contents.
    pub contents: bool,
}

impl Default for Caching {
    fn default() -> Self {
        Self {
            entry: Duration::from_secs(1),
            attributes: Duration::from_secs(1),
            negative: Duration::ZERO,
            contents: false,
        }
    }
}

impl Caching {
    /// What comma-separated mount options say about it, and those options that are the kernel's.
    ///
    /// # Errors
    /// A time is not a number of seconds; the text says which.
    pub fn of_options(options: &str) -> Result<(Self, String), String> {
        let mut caching = Self::default();
        let mut others = Vec::new();
        for option in options.split(',') {
            let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
            let time = match (name, value) {
                ("entry_timeout", Some(_)) => &mut caching.entry,
                ("attr_timeout", Some(_)) => &mut caching.attributes,
                ("negative_timeout", Some(_)) => &mut caching.negative,
                ("kernel_cache", None) => {
                    caching.contents = true;
                    continue;
                }
                _ => {
                    others.push(option);
                    continue;
                }
            };
            let seconds = value.and_then(|value| value.parse().ok());
            *time = seconds
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .ok_or_else(|| format!("{option}: it is a number of seconds, as {name}=60"))?;
        }
        Ok((caching, others.join(",")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_server_are_told_from_the_kernels() {
        let (caching, others) =
            Caching::of_options("allow_other,entry_timeout=60,max_read=4096,attr_timeout=0.5,kernel_cache").unwrap();
        let [entry, attributes] = [Duration::from_secs(60), Duration::from_millis(500)];
        assert_eq!(caching, Caching { entry, attributes, contents: true, ..Caching::default() });
        assert_eq!(others, "allow_other,max_read=4096");
        assert_eq!(Caching::of_options("").unwrap(), (Caching::default(), String::new()));
        for wrong in ["entry_timeout=x", "negative_timeout=-1", "attr_timeout=", "attr_timeout=1e300"] {
            assert!(Caching::of_options(wrong).unwrap_err().starts_with(wrong), "{wrong}");
        }
    }
}
