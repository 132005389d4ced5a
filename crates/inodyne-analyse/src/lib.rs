//! Explain: ledger, causes, findings; pure functions of a recording.
