//! What becomes of a trace if the kernel refuses a part of it: everything that it accepts is kept.

/// What was started, and the features that were refused, each with the reason.
pub(crate) type Most<'f, T, E> = (T, Vec<(&'f str, E)>);

/// Starts with everything. If that is refused, starts without any of the optional features, and then adds them back one after
/// the other: so whatever the reason, there is no need to guess from what the kernel said which of them it is.
///
/// Only one is started at a time, since each takes its memory.
///
/// # Errors
/// It cannot be started even without any of them.
pub(crate) fn with_most<'f, T, E>(
    optional: &[&'f str],
    mut start: impl FnMut(&[&'f str]) -> Result<T, E>,
) -> Result<Most<'f, T, E>, E> {
    match start(&[]) {
        Ok(started) => return Ok((started, Vec::new())),
        Err(error) if optional.is_empty() => return Err(error),
        Err(_) => {}
    }
    let mut left_out = optional.to_vec();
    let mut started = start(&left_out)?;
    let mut refused = Vec::new();
    for feature in optional {
        drop(started);
        let fewer: Vec<&str> = left_out.iter().copied().filter(|other| other != feature).collect();
        started = match start(&fewer) {
            Ok(more) => {
                left_out = fewer;
                more
            }
            Err(error) => {
                refused.push((*feature, error));
                start(&left_out)?
            }
        };
    }
    Ok((started, refused))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [&str; 3] = ["samples", "paths", "types"];

    /// Starts on a kernel that refuses some; what is started is the list of what it has.
    fn by_kernel(refuses: &[&str]) -> (Result<Most<'static, Vec<&'static str>, String>, String>, usize) {
        let mut starts = 0;
        let result = with_most(&ALL, |left_out| {
            starts += 1;
            let has: Vec<&str> = ALL.into_iter().filter(|feature| !left_out.contains(feature)).collect();
            match ["calls"].iter().chain(&has).find(|feature| refuses.contains(feature)) {
                Some(feature) => Err(format!("no {feature}")),
                None => Ok(has),
            }
        });
        (result, starts)
    }

    #[test]
    fn where_nothing_is_refused_it_is_started_once() {
        assert_eq!(by_kernel(&[]), (Ok((ALL.to_vec(), Vec::new())), 1));
    }

    #[test]
    fn what_is_refused_is_left_out_and_the_rest_kept() {
        let (result, _) = by_kernel(&["paths"]);
        assert_eq!(result.unwrap(), (vec!["samples", "types"], vec![("paths", "no paths".to_owned())]));
        let (result, _) = by_kernel(&ALL);
        let (has, refused) = result.unwrap();
        assert_eq!((has.len(), refused.len()), (0, 3));
    }

    #[test]
    fn what_nothing_works_without_is_an_error() {
        assert_eq!(by_kernel(&["calls", "types"]).0.unwrap_err(), "no calls");
    }
}
