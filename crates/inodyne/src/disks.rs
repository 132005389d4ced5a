//! What disks can do, as it was measured earlier.

use inodyne_disk::{Kept, kept};
use inodyne_render::escaped;

/// All that is kept. What is there and of no use is said in a line each.
pub fn known() -> Kept {
    let Some(directory) = kept::directory() else { return Kept::default() };
    let (kept, ignored) = Kept::load(&directory);
    for one in ignored {
        let (path, reason) = (one.path.display().to_string(), &one.reason);
        anstream::eprintln!("inodyne: {} is ignored: {}", escaped(&path), escaped(reason));
    }
    kept
}
