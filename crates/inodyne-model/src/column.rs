//! Lists of possibly millions of entries.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};

/// Appends to a list that grows by a quarter at a time: by doubling, it might take twice the memory that it needs.
pub fn push<T>(list: &mut Vec<T>, one: T) {
    if list.len() == list.capacity() {
        list.reserve_exact(list.len() / 4 + 64);
    }
    list.push(one);
}

/// Reads a list for serde's `deserialize_with`, using only the memory that it needs.
///
/// # Errors
/// What is read is not a list, or is a list of something else.
pub fn read<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    struct List<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Vec<T>, A::Error> {
            let mut list = Vec::new();
            while let Some(one) = from.next_element()? {
                push(&mut list, one);
            }
            list.shrink_to_fit();
            Ok(list)
        }
    }

    from.deserialize_seq(List(PhantomData))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_into_what_it_needs() {
        let text = serde_json::to_string(&(0..1025u32).collect::<Vec<_>>()).unwrap();
        let list: Vec<u32> = read(&mut serde_json::Deserializer::from_str(&text)).unwrap();
        assert_eq!((list.len(), list.capacity()), (1025, 1025));
        assert!(read::<u32, _>(&mut serde_json::Deserializer::from_str("{}")).is_err());
    }

    #[test]
    fn a_long_list_takes_little_more_than_it_holds() {
        let mut list = Vec::new();
        (0..100_000u32).for_each(|number| push(&mut list, number));
        assert!(list.iter().copied().eq(0..100_000));
        assert!(list.capacity() < 130_000, "{}", list.capacity());
    }
}
