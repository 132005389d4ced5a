// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * The kernel side, as one object. Each probe is next to the Rust code that reads it; build.rs lists the folders in probes.h.
 */
#include "follow.bpf.h"
#include "join.bpf.h"
#include "names.bpf.h"
#include "probes.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
