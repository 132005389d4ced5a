//! Lists of perhaps millions.

/// Adds to a list that grows by a quarter: by doubling it may take twice the memory that it needs.
pub fn push<T>(list: &mut Vec<T>, one: T) {
    if list.len() == list.capacity() {
        list.reserve_exact(list.len() / 4 + 64);
    }
    list.push(one);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_takes_little_more_than_it_holds() {
        let mut list = Vec::new();
        (0..100_000u32).for_each(|number| push(&mut list, number));
        assert!(list.iter().copied().eq(0..100_000));
        assert!(list.capacity() < 130_000, "{}", list.capacity());
    }
}
