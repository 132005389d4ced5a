//! What a file holds: bytes that follow from the seed and the file's place in the tree, and from nothing else.
//!
//! The checker can therefore verify each byte without a copy of the tree. Each eight bytes are [`mix`] of a
//! counter, without other state, so any part can be made on any thread.

use inodyne_model::random::mix;

/// Fills `buffer` with the bytes at `offset` (a multiple of eight) of the content that belongs to `key`.
pub(crate) fn fill(key: u64, offset: u64, buffer: &mut [u8]) {
    debug_assert_eq!(offset % 8, 0);
    for (word, chunk) in buffer.chunks_mut(8).enumerate() {
        let bytes = mix(key.wrapping_add(offset / 8 + word as u64)).to_le_bytes();
        chunk.copy_from_slice(&bytes[..chunk.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_equals_that_part_of_the_whole() {
        let mut whole = [0; 100];
        fill(7, 0, &mut whole);
        let mut part = [0; 52];
        fill(7, 48, &mut part);
        assert_eq!(whole[48..], part);
        let mut other = [0; 100];
        fill(8, 0, &mut other);
        assert_ne!(whole[..8], other[..8]);
    }
}
