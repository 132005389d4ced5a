// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * The kernel side, as one object: the maps are shared by all probes. Each probe lies beside the Rust that reads it.
 */
#include <asm/unistd_64.h>

#include "intf.h"
#include "kernel.h"
#include "maps.h"
#include "clock.h"
#include "histogram.h"
#include "stack.h"
#include "task.h"
#include "work.h"
#include "adopt.h"

#include "../probes/switches/probe.bpf.h"
#include "../probes/dtype/probe.bpf.h"
#include "../probes/paths/probe.bpf.h"
#include "../probes/samples/probe.bpf.h"
#include "../probes/calls/probe.bpf.h"
#include "../probes/lives/probe.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
