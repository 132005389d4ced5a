//! Parallel delete and tree maker.
