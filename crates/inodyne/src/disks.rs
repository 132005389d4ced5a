//! What disks can do, as measured earlier.

use inodyne_disk::{Kept, kept};
use inodyne_render::escaped;

/// Everything that is kept. Each file that is there but cannot be used is reported in one line.
pub fn known() -> Kept {
    let Some(directory) = kept::directory() else { return Kept::default() };
    let (kept, ignored) = Kept::load(&directory);
    for one in ignored {
        let (path, reason) = (one.path.display().to_string(), &one.reason);
        crate::say::say!("inodyne: {} is ignored: {}", escaped(&path), escaped(reason));
    }
    kept
}
