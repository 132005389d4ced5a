//! Compiles the BPF programs and their Rust skeleton, and for the tests the parts of the C that are plain C.

use std::env;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"];

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets the target's architecture");
    assert_eq!(arch, "x86_64", "inodyne traces on x86-64 only: the numbers of system calls are known for it alone");
    SkeletonBuilder::new()
        .source("src/bpf/inodyne.bpf.c")
        // v3: 32-bit jumps and atomic fetch-and-add; clang 14 crashes on the latter without it.
        .clang_args(["-mcpu=v3", "-Isrc/bpf", "-I/usr/include/x86_64-linux-gnu"].iter().chain(&WARNINGS))
        .build_and_generate(out.join("inodyne.skel.rs"))
        .expect("the BPF programs compile (needs clang 14 or newer and the kernel's user headers)");
    cc::Build::new().file("src/bpf/host.c").include("src/bpf").warnings(true).compile("inodyne_host");
    println!("cargo:rerun-if-changed=src/bpf");
    println!("cargo:rerun-if-changed=src/probes");
}
