//! The nouns of inodyne: time, tasks, system calls, causes, ledger, place, run, recording, finding.
