/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Types that user space has to know: the compiler leaves types that no map or variable uses out of the object's BTF, from which
 * their Rust twins are generated. EXPORT(struct, name) keeps one; it is needed for each ring buffer record and for each enum
 * whose constants both sides use. This is why constants are enums: a #define does not appear in BTF.
 */
#ifndef INODYNE_EXPORT_H
#define INODYNE_EXPORT_H

#ifdef __bpf__
#define EXPORT(kind, name) kind name *exported_##name
#else
#define EXPORT(kind, name) _Static_assert(sizeof(kind name), #name)
#endif

#endif
