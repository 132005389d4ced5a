//! Compiles the BPF programs and, for the tests, the parts of the C that are plain C; makes the Rust skeleton. Lists which of the kernel's
//! types the programs ask about.
//!
//! A package of this crate holds the compiled programs, so that whoever installs it needs no clang (scripts/package).

#[allow(dead_code, reason = "most of it is for the kernel's types")]
#[path = "src/types/btf.rs"]
mod btf;
#[path = "build/relocations.rs"]
mod relocations;
#[path = "build/slim.rs"]
mod slim;

use std::path::{Path, PathBuf};
use std::{env, fs};

use libbpf_cargo::SkeletonBuilder;

/// The processors whose registers are known, and what the headers of libbpf call them.
const ARCHITECTURES: [(&str, &str); 2] = [("x86_64", "x86"), ("aarch64", "arm64")];
/// A directory into which the programs are compiled for each of them.
const OBJECTS: &str = "INODYNE_BPF_OBJECTS";

const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"];

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets the target's architecture");
    let processor = ARCHITECTURES.iter().find(|(known, _)| *known == arch);
    let processor = processor.unwrap_or_else(|| panic!("the registers of {arch} are not known (src/bpf/arch.h)"));
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets the crate's directory"));
    let sources = manifest.join("src");
    list_probes(&sources, "probe.bpf.h", &out.join("probes.h"));
    list_probes(&sources, "host.h", &out.join("host_probes.h"));
    let object = out.join("inodyne.bpf.o");
    match packaged(&manifest, &arch) {
        Some(packaged) => drop(fs::copy(packaged, &object).expect("the package's object can be read")),
        None => compile(&manifest, &out, processor, &object),
    }
    // For whoever makes a package, or checks whether one holds what its sources say.
    if let Some(objects) = env::var_os(OBJECTS) {
        for processor in &ARCHITECTURES {
            compile(&manifest, &out, processor, &Path::new(&objects).join(format!("{}.bpf.o", processor.0)));
        }
    }
    SkeletonBuilder::new()
        .obj(&object)
        // Nobody reads the skeleton, and a Rust without its rustfmt component may have a rustfmt that only fails.
        .rustfmt(out.join("no-rustfmt"))
        .generate(out.join("inodyne.skel.rs"))
        .expect("the object is one of BPF programs");
    let compiled = fs::read(&object).expect("the object was just made");
    fs::write(out.join("types.rs"), relocations::table(&compiled)).expect("cargo's output directory can be written");
    cc::Build::new().file("src/bpf/host.c").include(&out).warnings(true).compile("inodyne_host");
    println!("cargo:rerun-if-changed=src/bpf");
    println!("cargo:rerun-if-changed=src/probes");
    println!("cargo:rerun-if-changed=src/types/btf.rs");
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-env-changed={OBJECTS}");
}

/// The compiled programs that a package of this crate holds; none if this is no package.
fn packaged(manifest: &Path, arch: &str) -> Option<PathBuf> {
    let is_package = manifest.join("Cargo.toml.orig").is_file();
    Some(manifest.join(format!("objects/{arch}.bpf.o"))).filter(|object| is_package && object.is_file())
}

/// Compiles the programs for a processor. The object is the same whichever directory that happens in.
fn compile(manifest: &Path, out: &Path, (arch, defined): &(&str, &str), object: &Path) {
    // v3: 32-bit jumps and atomic fetch-and-add; clang 14 crashes on the latter without it.
    let own = ["-mcpu=v3".to_owned(), format!("-D__TARGET_ARCH_{defined}"), format!("-I{}", out.display())];
    let nowhere = [(out, "generated"), (manifest, "inodyne-trace")];
    let nowhere = nowhere.map(|(path, name)| format!("-ffile-prefix-map={}={name}", path.display()));
    let warnings = WARNINGS.map(str::to_owned);
    SkeletonBuilder::new()
        .source(manifest.join("src/bpf/inodyne.bpf.c"))
        .clang_args(own.into_iter().chain(nowhere).chain(kernel_headers(arch)).chain(warnings))
        .obj(object)
        .build()
        .expect("the BPF programs compile (needs clang 14 or newer and the kernel's user headers)");
    let compiled = fs::read(object).expect("the object was just made");
    fs::write(object, slim::slim(&compiled)).expect("the object can be written again");
}

/// Where Debian and its derivatives keep the kernel's user headers that differ between processors: those of this machine, and those for
/// cross compilers. Elsewhere all are in /usr/include.
fn kernel_headers(arch: &str) -> [String; 2] {
    [format!("-I/usr/include/{arch}-linux-gnu"), format!("-I/usr/{arch}-linux-gnu/include")]
}

/// Writes a header that includes this file from every folder below `probes/` that has it.
fn list_probes(sources: &Path, file: &str, list: &Path) {
    let folders = fs::read_dir(sources.join("probes")).expect("the folder of probes").flatten();
    let mut headers: Vec<PathBuf> =
        folders.map(|folder| folder.path().join(file)).filter(|path| path.is_file()).collect();
    headers.sort();
    let includes: String = headers.iter().map(|path| format!("#include \"{}\"\n", path.display())).collect();
    fs::write(list, includes).expect("cargo's output directory can be written");
}
