//! What must hold of all findings, whatever the recording.
