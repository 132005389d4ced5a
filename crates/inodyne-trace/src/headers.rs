//! Each header of the kernel side compiles alone: it includes what it needs, and no order of inclusion matters.

use std::path::{Path, PathBuf};

use libbpf_cargo::SkeletonBuilder;

fn headers(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a directory of this crate").flatten() {
        let path = entry.path();
        if path.is_dir() {
            headers(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "h") {
            found.push(path);
        }
    }
}

#[test]
fn every_header_compiles_alone_and_twice() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    headers(&source, &mut all);
    assert!(all.len() > 20, "{all:?}");
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let (program, object) = (scratch.path().join("alone.bpf.c"), scratch.path().join("alone.bpf.o"));
    // A host.h is for the host; clang takes its functions for programs, and only looks at them.
    for header in all.iter().filter(|header| header.file_name() != Some("host.h".as_ref())) {
        let include = format!("#include \"{}\"\n", header.display());
        std::fs::write(&program, include.repeat(2)).expect("a scratch file");
        let arguments = [
            "-mcpu=v3",
            "-I/usr/include/x86_64-linux-gnu",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-unused-parameter",
            "-Wno-unused-function",
        ];
        let built = SkeletonBuilder::new().source(&program).obj(&object).clang_args(arguments).build();
        if let Err(error) = built {
            panic!("{} does not compile alone: {error:#}", header.display());
        }
    }
}
