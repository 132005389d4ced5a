//! What each field means, shown through the decoder that reads it.
//!
//! `probes/*/host.h` are compiled for the host with the kernel side's own headers: C code plants a different number in each field
//! of a structure. The tests of a decoder say what must come out of it. [`every_field_counts`] then shows that no two fields
//! can be taken for each other: it changes each field, and swaps every two of the same type, and the decoder's output must
//! change; except for fields that the user side never reads, which the test has to name.

use std::fmt::Debug;

use bytemuck::AnyBitPattern;

use super::layout::{Contract, Field};

/// A structure as C planted it.
pub fn planted<T: AnyBitPattern>(plant: unsafe extern "C" fn(*mut T)) -> T {
    let mut value = T::zeroed();
    // SAFETY: the function writes a structure of this type (its name in the skeleton is that of C), and nothing else.
    unsafe { plant(&mut value) };
    value
}

/// Checks that what `decode` makes of a `structure` depends on each field, except those in `unread`.
pub fn every_field_counts<T: AnyBitPattern, R: Debug>(
    structure: &str,
    value: T,
    unread: &[&str],
    decode: impl Fn(&T) -> R,
) {
    let (size, fields) = Contract::read().structures[structure].clone();
    assert_eq!(size, size_of::<T>());
    let decoded = |bytes: &[u8]| format!("{:?}", decode(&bytemuck::pod_read_unaligned(bytes)));
    let bytes = bytes_of(&value);
    let as_planted = decoded(&bytes);
    let unread_fields: Vec<&str> =
        fields.iter().map(|f| f.name.as_str()).filter(|name| unread.contains(name)).collect();
    assert_eq!(unread_fields.len(), unread.len(), "{structure} has no more than {unread_fields:?} of {unread:?}");
    for field in &fields {
        // Of an array, the first element. Not every flag counts.
        let is_read = [1, 0xff].into_iter().any(|flip| {
            let mut changed = bytes.clone();
            changed[field.offset] ^= flip;
            decoded(&changed) != as_planted
        });
        assert_eq!(is_read, !unread.contains(&field.name.as_str()), "{structure}.{}: read or not", field.name);
    }
    for (at, a) in fields.iter().enumerate() {
        for b in fields[at + 1..].iter().filter(|b| b.kind == a.kind) {
            let both_unread = [a, b].iter().all(|field| unread.contains(&field.name.as_str()));
            let told_apart = decoded(&exchanged(&bytes, a, b)) != as_planted;
            assert!(told_apart || both_unread, "{structure}: {} and {} can be exchanged unseen", a.name, b.name);
        }
    }
}

fn bytes_of<T: AnyBitPattern>(value: &T) -> Vec<u8> {
    // SAFETY: readable for its size; the generated structures name their padding, so each byte was written.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast::<u8>(), size_of::<T>()) }.to_vec()
}

fn exchanged(bytes: &[u8], a: &Field, b: &Field) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    changed[a.offset..a.offset + a.size].copy_from_slice(&bytes[b.offset..b.offset + b.size]);
    changed[b.offset..b.offset + b.size].copy_from_slice(&bytes[a.offset..a.offset + a.size]);
    changed
}
