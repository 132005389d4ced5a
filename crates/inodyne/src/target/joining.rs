//! Joining processes while they start others. A process that was not followed yet when it forked has a child that is in no list read so
//! far: so the list is read again after each round, until all processes in it are followed.

use std::collections::BTreeSet;

use inodyne_trace::{LiveTracer, TraceError, Tracer, Whom};

use crate::failure::Failure;

/// Rounds after which processes that are still being started are left out.
const MOST_TIMES: usize = 50;

/// A tracer of processes that are already running.
pub trait Joins {
    /// As [`Tracer::join`].
    ///
    /// # Errors
    /// The kernel refuses to show its tasks.
    fn join(&mut self, whom: &Whom) -> Result<u32, TraceError>;

    /// As [`Tracer::processes`].
    fn processes(&self) -> BTreeSet<u32>;
}

impl Joins for Tracer {
    fn join(&mut self, whom: &Whom) -> Result<u32, TraceError> {
        Tracer::join(self, whom)
    }

    fn processes(&self) -> BTreeSet<u32> {
        Tracer::processes(self)
    }
}

impl Joins for LiveTracer {
    fn join(&mut self, whom: &Whom) -> Result<u32, TraceError> {
        LiveTracer::join(self, whom)
    }

    fn processes(&self) -> BTreeSet<u32> {
        LiveTracer::processes(self)
    }
}

/// Has the tracer follow all processes that `who` names, including those that it names only meanwhile. Returns how many threads these
/// are, and whom it named last.
///
/// # Errors
/// There is nobody to follow, or the kernel refuses to show its tasks.
pub fn join_all(
    tracer: &mut impl Joins,
    who: &mut dyn FnMut() -> Result<Whom, Failure>,
) -> Result<(u32, Whom), Failure> {
    let mut whom = who()?;
    let mut threads = tracer.join(&whom)?;
    for _ in 1..MOST_TIMES {
        // They may have ended meanwhile: then nobody is missed.
        let Ok(now) = who() else { break };
        // What it was asked to follow and does not, it cannot follow: inodyne itself, or a process that is ending.
        let is_missed = match (&whom, &now) {
            (Whom::Processes(asked), Whom::Processes(now)) => {
                let followed = tracer.processes();
                now.iter().any(|pid| !followed.contains(pid) && !asked.contains(pid))
            }
            _ => false,
        };
        whom = now;
        if !is_missed {
            break;
        }
        threads += tracer.join(&whom)?;
    }
    Ok((threads, whom))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes on a machine of which some are followed: a child is followed where its parent is.
    #[derive(Default)]
    struct Fake {
        followed: BTreeSet<u32>,
        joins: usize,
    }

    /// inodyne itself.
    const OWN: u32 = 99;

    impl Joins for Fake {
        fn join(&mut self, whom: &Whom) -> Result<u32, TraceError> {
            self.joins += 1;
            let Whom::Processes(pids) = whom else { return Ok(0) };
            let new = pids.iter().filter(|pid| **pid != OWN && self.followed.insert(**pid)).count();
            Ok(new as u32)
        }

        fn processes(&self) -> BTreeSet<u32> {
            self.followed.clone()
        }
    }

    fn named(lists: &[&[u32]]) -> (Fake, u32, Whom) {
        let mut fake = Fake::default();
        let mut lists = lists.iter();
        let mut who = || Ok(Whom::Processes(lists.next().expect("asked no more often").to_vec()));
        let (threads, whom) = join_all(&mut fake, &mut who).expect("somebody is there");
        (fake, threads, whom)
    }

    #[test]
    fn who_is_born_while_others_are_joined_is_not_missed() {
        // 2 was forked by 1 before 1 was followed, and so was 3 by 2.
        let (fake, threads, whom) = named(&[&[1, OWN], &[1, 2, OWN], &[1, 3, OWN], &[3, OWN]]);
        assert_eq!((fake.followed, fake.joins, threads), (BTreeSet::from([1, 2, 3]), 3, 3));
        assert_eq!(whom, Whom::Processes(vec![3, OWN]));
    }

    #[test]
    fn it_ends_where_all_are_followed_and_where_none_can_be() {
        assert_eq!(named(&[&[1], &[1]]).0.joins, 1);
        assert_eq!(named(&[&[OWN], &[OWN]]).0.joins, 1);
        let (mut fake, mut born) = (Fake::default(), 0);
        let mut who = || {
            born += 1;
            Ok(Whom::Processes(vec![born]))
        };
        join_all(&mut fake, &mut who).expect("somebody is there");
        assert_eq!(fake.joins, MOST_TIMES);
    }

    #[test]
    fn who_has_ended_meanwhile_is_no_error() {
        let gone = || Failure::new(crate::failure::ExitStatus::Usage, "no process is called that");
        let mut answers = vec![Err(gone()), Ok(Whom::Processes(vec![1]))];
        let mut who = || answers.pop().expect("asked no more often");
        assert_eq!(join_all(&mut Fake::default(), &mut who).expect("one was there").0, 1);
        assert!(join_all(&mut Fake::default(), &mut || Err(gone())).is_err());
    }
}
