# Everything that is typed here. Each target sees to its own set-up (scripts/setup).

# Programs of administrators, and a Rust that was installed for this user only.
export PATH := $(PATH):$(HOME)/.cargo/bin:/usr/sbin:/sbin

INODYNE := $(abspath $(or $(CARGO_TARGET_DIR),target))/release/inodyne

.PHONY: build demo test check bench bench-rm setup help

build: setup ## the program, optimised
	cargo build --release --locked

demo: build ## why find is slow where readdir gives no types: found, predicted, measured (root; half a minute)
	scripts/demo $(INODYNE)

test: setup ## all tests (root: they make file systems and trace)
	cargo test --workspace --locked

check: ## what a change must pass: the tests, then formatting, lints and documentation
	.ci/run

bench: setup-bench build ## what tracing costs, beside strace, perf trace and bpftrace (root, a quiet machine)
	scripts/bench-overhead --inodyne $(INODYNE) $(BENCH)

bench-rm: setup-bench build ## how fast trees are deleted (root, a quiet machine)
	scripts/bench-rm $(BENCH)

setup: ## only install what is missing
	@scripts/setup

.PHONY: setup-bench
setup-bench:
	@scripts/setup bench

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' Makefile | expand -t 10
