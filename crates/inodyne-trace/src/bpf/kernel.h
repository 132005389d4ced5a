/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * The few kernel structures that the programs access, with only the fields they use. CO-RE finds the real offsets when
 * the programs are loaded (preserve_access_index), so no dump of a kernel's types (vmlinux.h) is needed to build.
 */
#ifndef INODYNE_KERNEL_H
#define INODYNE_KERNEL_H

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "arch.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sched_entity {
	__u64 sum_exec_runtime;
};

struct qstr {
	__u32 len;
	const unsigned char *name;
};

struct gendisk {
	int major;
	int first_minor;
};

struct block_device {
	__u32 bd_dev;
	struct gendisk *bd_disk;
};

struct super_block;

struct file_system_type {
	const char *name;
};

struct super_block {
	__u32 s_dev;
	struct block_device *s_bdev;
	struct file_system_type *s_type;
};

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

typedef struct {
	int counter;
} atomic_t;

struct inode {
	__u16 i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	__s64 i_size;
	__u32 i_generation;
	atomic_t i_writecount;
	struct hlist_head i_dentry;
};

struct address_space {
	struct inode *host;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
	union {
		struct hlist_node d_alias;
	} d_u;
};

/* The same in 7.3, where the union has no name. */
struct dentry___7_3 {
	struct hlist_node d_alias;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	struct inode *f_inode;
	struct path f_path;
	__s64 f_pos;
	void *private_data;
};

struct sock_common {
	__u16 skc_family;
};

struct sock {
	struct sock_common __sk_common;
	__u16 sk_protocol;
	__u8 sk_userlocks : 4;
};

struct socket {
	struct sock *sk;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct fs_struct {
	struct path root, pwd;
};

struct mm_struct {
	unsigned long arg_start, arg_end;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[];
};

/* In signal_struct's flags: all threads of the process have been told to exit, with the same code. */
#define SIGNAL_GROUP_EXIT 0x00000004
/* ... its process ignores the signals that it has no handler for, as it is the first one of a PID namespace. */
#define SIGNAL_UNKILLABLE 0x00000040

struct kernfs_node {
	__u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct css_set {
	struct cgroup *dfl_cgrp; /* in the cgroup v2 hierarchy */
};

struct signal_struct {
	atomic_t live; /* threads that have not ended */
	int group_exit_code;
	unsigned int flags;
};

typedef struct {
	unsigned long sig[1];
} sigset_t;

struct sigaction {
	void *sa_handler; /* 0: SIG_DFL */
};

struct k_sigaction {
	struct sigaction sa;
};

struct sigpending {
	sigset_t signal;
};

struct task_struct {
	struct thread_info thread_info;
	void *stack;
	unsigned int flags;
	unsigned int __state;
	/* One byte wide in 7.3. libbpf adjusts loads to the field's width in the running kernel, but not those of signed fields. */
	unsigned int on_cpu;
	int pid;
	int tgid;
	int exit_code;
	struct task_struct *group_leader;
	struct signal_struct *signal;
	struct sigpending pending;
	struct pid *thread_pid;
	struct sched_entity se;
	struct fs_struct *fs;
	struct files_struct *files;
	struct mm_struct *mm;
	struct css_set *cgroups;
	char comm[16];
};

struct linux_binprm {
	const char *filename;
};

#pragma clang attribute pop

/* An iterator program is called for each task, and once more at the end with no task. */
struct bpf_iter__task {
	struct task_struct *task;
} __attribute__((preserve_access_index));

/* include/linux/sched.h */
#define PF_EXITING 0x00000004
#define PF_IO_WORKER 0x00000010
#define PF_USER_WORKER 0x00004000
#define PF_KTHREAD 0x00200000
#define PF_MEMALLOC 0x00000800
#define TASK_DEAD 0x00000080
#define TASK_NEW 0x00000800

/* include/uapi/asm-generic/errno-base.h, include/uapi/asm-generic/signal.h */
#define EINTR 4
#define SIGKILL 9
#define SIGCHLD 17
#define SIGCONT 18
#define SIGSTOP 19
#define SIGTSTP 20
#define SIGTTIN 21
#define SIGTTOU 22
#define SIGURG 23
#define SIGWINCH 28

/* include/linux/socket.h */
#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10

/* include/uapi/linux/in.h */
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17

/* include/uapi/linux/stat.h */
#define S_IFMT 0170000
#define S_IFDIR 0040000
#define S_IFBLK 0060000
#define S_IFREG 0100000
#define S_IFSOCK 0140000

#endif
