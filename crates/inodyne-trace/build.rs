//! Compiles the BPF programs and their Rust skeleton, and for the tests the parts of the C that are plain C. Says of which of the kernel's
//! types the programs ask.

#[allow(dead_code, reason = "most of it is for the kernel's types")]
#[path = "src/types/btf.rs"]
mod btf;
#[path = "build/relocations.rs"]
mod relocations;

use std::path::{Path, PathBuf};
use std::{env, fs};

use libbpf_cargo::SkeletonBuilder;

const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"];

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets the target's architecture");
    assert!(["x86_64", "aarch64"].contains(&arch.as_str()), "the registers of {arch} are not known (src/bpf/arch.h)");
    let sources =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets the crate's directory")).join("src");
    list_probes(&sources, "probe.bpf.h", &out.join("probes.h"));
    list_probes(&sources, "host.h", &out.join("host_probes.h"));
    let generated = format!("-I{}", out.display());
    let warnings = WARNINGS.map(str::to_owned);
    let object = out.join("inodyne.bpf.o");
    SkeletonBuilder::new()
        .source("src/bpf/inodyne.bpf.c")
        // v3: 32-bit jumps and atomic fetch-and-add; clang 14 crashes on the latter without it.
        .clang_args(
            ["-mcpu=v3", &generated].into_iter().map(str::to_owned).chain(kernel_headers(&arch)).chain(warnings),
        )
        .obj(&object)
        // Nobody reads the skeleton, and a Rust without its rustfmt component may have a rustfmt that only fails.
        .rustfmt(out.join("no-rustfmt"))
        .build_and_generate(out.join("inodyne.skel.rs"))
        .expect("the BPF programs compile (needs clang 14 or newer and the kernel's user headers)");
    let compiled = fs::read(&object).expect("the object was just made");
    fs::write(out.join("types.rs"), relocations::table(&compiled)).expect("cargo's output directory can be written");
    cc::Build::new().file("src/bpf/host.c").include(&out).warnings(true).compile("inodyne_host");
    println!("cargo:rerun-if-changed=src/bpf");
    println!("cargo:rerun-if-changed=src/probes");
    println!("cargo:rerun-if-changed=src/types/btf.rs");
    println!("cargo:rerun-if-changed=build");
}

/// Where Debian and its children keep the kernel's user headers that differ between processors: those of this machine, and those for
/// cross compilers. Elsewhere all lie in /usr/include.
fn kernel_headers(arch: &str) -> [String; 2] {
    [format!("-I/usr/include/{arch}-linux-gnu"), format!("-I/usr/{arch}-linux-gnu/include")]
}

/// Writes a header that includes this file of every folder below `probes/` that has it.
fn list_probes(sources: &Path, file: &str, list: &Path) {
    let folders = fs::read_dir(sources.join("probes")).expect("the folder of probes").flatten();
    let mut headers: Vec<PathBuf> =
        folders.map(|folder| folder.path().join(file)).filter(|path| path.is_file()).collect();
    headers.sort();
    let includes: String = headers.iter().map(|path| format!("#include \"{}\"\n", path.display())).collect();
    fs::write(list, includes).expect("cargo's output directory can be written");
}
