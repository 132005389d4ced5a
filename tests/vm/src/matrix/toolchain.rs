//! How programs for a guest are built: for this machine's own processor as always, for another one with Debian's cross compiler.
//!
//! Another one needs its Rust target, its gcc, and libelf and zlib of its architecture, as `scripts/dist` does.

use std::env::consts::ARCH;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;

/// The tools for one architecture.
pub(super) struct Toolchain {
    /// The compiler's name for it; none for this machine's own.
    processor: Option<&'static str>,
}

impl Toolchain {
    /// For an architecture by Debian's name.
    ///
    /// # Errors
    /// Nothing is known about it.
    pub(super) fn of(arch: &str) -> Result<Toolchain, Failure> {
        let processor = match arch {
            "amd64" => "x86_64",
            "arm64" => "aarch64",
            other => return Err(Failure::new(format_args!("no compiler is known for {other}"))),
        };
        Ok(Toolchain { processor: (processor != ARCH).then_some(processor) })
    }

    /// Whether what is built runs on this machine.
    pub(super) fn is_native(&self) -> bool {
        self.processor.is_none()
    }

    /// `cargo` with what comes after the name of its command.
    pub(super) fn cargo(&self, command: &[&str], workspace: &Path) -> Command {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(command).args(["--locked", "--message-format=json"]).current_dir(workspace);
        let Some(processor) = self.processor else { return cargo };
        cargo.args(["--target", &format!("{processor}-unknown-linux-gnu")]);
        let linker = format!("CARGO_TARGET_{}_UNKNOWN_LINUX_GNU_LINKER", processor.to_uppercase());
        cargo.env(linker, self.tool("gcc", "cc"));
        // With one path set, the one for what runs during the build must be, too.
        for processor in [processor, ARCH] {
            let libraries = PathBuf::from("/usr/lib").join(format!("{processor}-linux-gnu"));
            cargo.env(format!("LIBBPF_SYS_LIBRARY_PATH_{processor}_unknown_linux_gnu"), libraries);
        }
        cargo
    }

    /// The compiler of C.
    pub(super) fn cc(&self) -> Command {
        Command::new(self.tool("gcc", "cc"))
    }

    /// The program that leaves parts of other programs out.
    pub(super) fn objcopy(&self) -> Command {
        Command::new(self.tool("objcopy", "objcopy"))
    }

    fn tool(&self, name: &str, own: &str) -> String {
        self.processor.map_or_else(|| own.to_owned(), |processor| format!("{processor}-linux-gnu-{name}"))
    }
}
