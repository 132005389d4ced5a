//! Why tracing is not possible, in one line.

/// Why tracing is not possible.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The kernel refused the programs or maps.
    #[error("the kernel refused the tracing programs ({reason}); 'inodyne doctor' says what is missing")]
    Load {
        /// What libbpf said.
        reason: String,
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
