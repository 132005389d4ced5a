/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * What the user side has to know of: the compiler leaves types out of the object's BTF that no map and no variable has, and with
 * them their Rust twins, which are generated of it. EXPORT(struct, name) keeps one: each record of a ring buffer, and each enum
 * whose constants both sides use. Constants are enums for this reason: a #define is in no BTF.
 */
#ifndef INODYNE_EXPORT_H
#define INODYNE_EXPORT_H

#ifdef __bpf__
#define EXPORT(kind, name) kind name *exported_##name
#else
#define EXPORT(kind, name) _Static_assert(sizeof(kind name), #name)
#endif

#endif
