# Everything that is typed here. Each target sees to its own set-up (scripts/setup).

# Programs of administrators, and a Rust that was installed for this user only.
export PATH := $(PATH):$(HOME)/.cargo/bin:/usr/sbin:/sbin

INODYNE := $(abspath $(or $(CARGO_TARGET_DIR),target))/release/inodyne

.PHONY: build demo test test-kernels check bench bench-rm bench-share try-fresh setup help

build: setup-build ## the program, optimised
	cargo build --release --locked

.PHONY: dist install
dist: setup-build ## in dist/: a static program, an archive and a Debian package of it, debug symbols
	scripts/dist

install: setup-build ## the program, man pages, completions and documentation below $(DESTDIR)$(PREFIX)
	DESTDIR='$(DESTDIR)' PREFIX='$(or $(PREFIX),/usr/local)' scripts/dist install

.PHONY: package
package: setup-build ## in target/package/: the crates with the compiled BPF programs, tried without clang
	scripts/package

demo: setup-demo build ## why find is slow where readdir gives no types: found, predicted, measured (root; half a minute)
	scripts/demo $(INODYNE)

test: setup-test ## all tests, whatever fails, with a summary (root: they make file systems and trace)
	scripts/test

.PHONY: fuzz
fuzz: setup-test ## files changed at random, ten minutes for each kind, and 2,000 random invocations of rm (root, an hour)
	INODYNE_FUZZ_SECONDS=600 INODYNE_TEST_CASES=2000 cargo test --workspace --locked --test fuzz --test rm_like_gnu -- --nocapture

.PHONY: test-share
test-share: setup-test build ## a shared folder: ten minutes of changes by host and guests, POSIX, an hour of random reads and writes, the source of a kernel (root)
	INODYNE_SHARE_SECONDS=600 cargo test --workspace --locked --test share guests_see -- --nocapture
	scripts/share-conformance $(INODYNE) 3600
	scripts/share-conformance $(INODYNE) --kernel-tree

.PHONY: test-share-vm
test-share-vm: setup-test ## a shared folder in a virtual machine, over a serial port, virtiofs and vsock (root, a few minutes without KVM)
	cargo build --locked -p inodyne -p inodyne-vm
	$(abspath $(dir $(INODYNE))../debug/inodyne-vm-share) --vsock --inodyne $(abspath $(dir $(INODYNE))../debug/inodyne) $(KERNELS)

.PHONY: test-services-vm
test-services-vm: setup-test ## units of systemd watched, clients of systemd and Podman followed, in a virtual machine (root, a quarter of an hour without KVM)
	cargo build --locked -p inodyne -p inodyne-vm
	$(abspath $(dir $(INODYNE))../debug/inodyne-vm) run $(or $(KERNELS),6.18) --systemd --inodyne $(abspath $(dir $(INODYNE))../debug/inodyne) \
		--add scripts=/opt/scripts --timeout 3600 -- sh -ec '/opt/scripts/try-units inodyne; /opt/scripts/try-clients inodyne'

.PHONY: test-tune
test-tune: setup-test ## tuning: twenty trials in which nothing can help, thirty kills (root, a quiet machine, ten minutes)
	INODYNE_LONG=1 cargo test --workspace --locked --test tune

.PHONY: test-exports
test-exports: demo ## what other viewers read, held against their own programs and schemas (root; npm and PyPI)
	scripts/check-exports $(dir $(INODYNE))demo.inodyne

.PHONY: test-loom
test-loom: setup-build ## the pool of the delete engine, in every order in which its threads may meet
	RUSTFLAGS='--cfg loom' CARGO_TARGET_DIR=target/loom cargo test --locked -p inodyne-tree --lib pool

check: ## what a change must pass: the tests, then formatting, lints and documentation
	.ci/run

.PHONY: score
score: setup-bench build ## how often findings are right on programs that nobody here wrote; writes docs/findings/score.md (root, a quiet machine)
	flock /sys/kernel scripts/score-findings $(INODYNE) --write

test-kernels: setup-test ## the checks of tests/vm on each kernel of the matrix, in virtual machines; writes docs/kernels.md (hours without KVM)
	cargo build --locked -p inodyne-vm && $(abspath $(dir $(INODYNE))../debug/inodyne-vm) matrix --write docs/kernels.md $(KERNELS)

bench: setup-bench build ## what tracing costs, beside strace, perf trace and bpftrace (root, a quiet machine)
	scripts/bench-overhead --inodyne $(INODYNE) $(BENCH)

bench-rm: setup-bench dist ## how fast trees are deleted, by the program of `make dist` (root, a quiet machine, three hours)
	scripts/bench-rm --binary "$$(ls $(CURDIR)/dist/inodyne-*-$$(uname -m))" $(BENCH)

bench-share: setup-bench build ## the shared folder beside the directory itself and sshfs (root, a quiet machine)
	scripts/bench-share --inodyne $(INODYNE) $(BENCH)

.PHONY: bench-share-vm
bench-share-vm: setup-bench build ## the shared folder in a virtual machine, beside virtiofs, 9p, NFS and sshfs there (root, an hour without KVM)
	cargo build --locked -p inodyne-vm
	$(abspath $(dir $(INODYNE))../debug/inodyne-vm-bench-share) --inodyne $(INODYNE) $(BENCH)

try-fresh: ## the demo and the tests in a bare Debian that is made for it (root, an hour)
	scripts/try-fresh

.PHONY: try-dist
try-dist: setup-test setup-fresh dist ## what make dist makes: the program on bare kernels in virtual machines, the package in a bare Debian (root, a few minutes)
	cargo build --locked -p inodyne-vm
	scripts/try-dist $(KERNELS)

setup: setup-test ## only install what is missing for all of these but the benchmarks

.PHONY: setup-build setup-demo setup-test setup-bench setup-fresh
setup-build setup-demo setup-test setup-bench setup-fresh:
	@scripts/setup $(@:setup-%=%)

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' Makefile | expand -t 10
