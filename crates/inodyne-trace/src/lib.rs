//! Collect: eBPF programs and their decoders; launching and following a command.
