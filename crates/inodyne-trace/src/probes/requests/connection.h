/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* Which end of a connection a socket is. */
#ifndef INODYNE_REQUESTS_CONNECTION_H
#define INODYNE_REQUESTS_CONNECTION_H

#include "../../bpf/file.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct unix_address;

struct unix_sock {
	struct unix_address *addr;
	struct sock *peer;
};

struct inet_bind_bucket {
	signed char fastreuse;
};

struct inet_connection_sock {
	struct inet_bind_bucket *icsk_bind_hash;
};

#pragma clang attribute pop

/* sk->sk_userlocks in include/net/sock.h: the program has bound the socket to a port. */
#define SOCK_BINDPORT_LOCK 8

/* The accepting end has the listener's address (unix_stream_connect in net/unix/af_unix.c); the connecting end seldom has one. */
static __always_inline bool unix_has_connected(struct sock *sk)
{
	struct unix_sock *own = (struct unix_sock *)sk, *peer;

	if (!bpf_core_type_exists(struct unix_sock) || BPF_CORE_READ(own, addr))
		return false;
	peer = (struct unix_sock *)BPF_CORE_READ(own, peer);
	return peer && BPF_CORE_READ(peer, addr);
}

/* A port chosen by connect() is marked as such (__inet_hash_connect in net/ipv4/inet_hashtables.c); an accepting end has the listener's. */
static __always_inline bool tcp_has_connected(struct sock *sk)
{
	struct inet_bind_bucket *port;

	if (!bpf_core_field_exists(struct inet_connection_sock, icsk_bind_hash) || !bpf_core_field_exists(struct inet_bind_bucket, fastreuse))
		return false;
	port = BPF_CORE_READ((struct inet_connection_sock *)sk, icsk_bind_hash);
	return port && BPF_CORE_READ(port, fastreuse) < 0;
}

/*
 * Whether requests may arrive at a descriptor of the current process: at any socket but its own end of a connection that it has made. If
 * that cannot be determined (bound before it was connected, a socket pair, another protocol), they may.
 */
static __always_inline bool may_be_asked(__u32 descriptor)
{
	struct sock *sk = socket_of(descriptor);
	__u16 family;

	if (!sk)
		return false;
	family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (family == AF_UNIX)
		return !unix_has_connected(sk);
	if (family != AF_INET && family != AF_INET6)
		return true;
	switch (BPF_CORE_READ(sk, sk_protocol)) {
	case IPPROTO_TCP:
		return !tcp_has_connected(sk);
	case IPPROTO_UDP:
		/* A server's port is one that it has bound explicitly. */
		return BPF_CORE_READ_BITFIELD_PROBED(sk, sk_userlocks) & SOCK_BINDPORT_LOCK;
	default:
		return true;
	}
}

#endif
