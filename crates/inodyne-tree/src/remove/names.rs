//! Names of one directory's entries on their way from the thread that read them to one that removes them.
//!
//! One allocation holds them all, each ending in a zero byte, as the kernel wants them: a copy of twenty bytes is
//! nothing compared with an unlink.

use std::{ffi::CStr, sync::Arc};

use super::node::Node;

/// Some entries of a directory, none of them known to be a directory.
pub(super) struct Names {
    pub directory: Arc<Node>,
    text: Vec<u8>,
    pub count: usize,
}

impl Names {
    pub fn of(directory: &Arc<Node>) -> Self {
        Self { directory: directory.clone(), text: Vec::new(), count: 0 }
    }

    pub fn push(&mut self, name: &CStr) {
        self.text.extend_from_slice(name.to_bytes_with_nul());
        self.count += 1;
    }

    pub fn iter(&self) -> impl Iterator<Item = &CStr> {
        self.text.split_inclusive(|&byte| byte == 0).filter_map(|name| CStr::from_bytes_with_nul(name).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_out_as_they_went_in() {
        let mut names = Names::of(&Node::base(b""));
        let all = [c"a", c"\xff\n", c"-rf", c" "];
        all.iter().for_each(|name| names.push(name));
        assert_eq!((names.iter().collect::<Vec<_>>(), names.count), (all.to_vec(), 4));
    }
}
