//! Why tracing is not possible, in one line.

/// Why tracing is not possible.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The kernel refused the programs or maps.
    #[error("the kernel refused the tracing programs ({reason}); 'inodyne doctor' says what is missing")]
    Load {
        /// Which program or map, and what the kernel said.
        reason: String,
    },
    /// There is no such probe to refuse.
    #[error("no probe is called {name}: they are {known}")]
    NoSuchProbe {
        /// What was given.
        name: String,
        /// Those that exist.
        known: String,
    },
    /// A program found nothing to attach to.
    #[error("cannot attach to {point} ({reason}); 'inodyne doctor' says what is missing")]
    Attach {
        /// The tracepoint.
        point: String,
        /// What libbpf said.
        reason: String,
    },
    /// A table could not be read back.
    #[error("cannot read the tracing tables: {reason}")]
    Read {
        /// What the system said.
        reason: String,
    },
    /// The command ended before it executed anything.
    #[error("the command was never seen to start")]
    NoStart,
}

impl TraceError {
    /// What the kernel, or whoever was asked, said.
    pub fn reason(&self) -> String {
        match self {
            TraceError::Load { reason } | TraceError::Read { reason } => reason.clone(),
            TraceError::Attach { point, reason } => format!("{point}: {reason}"),
            TraceError::NoSuchProbe { .. } | TraceError::NoStart => self.to_string(),
        }
    }
}
