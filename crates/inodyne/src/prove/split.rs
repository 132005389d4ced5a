//! A command that ends in a list of files becomes several that run side by side, each with its part of the list.
//!
//! Which words are files cannot be looked up, since the place does not exist yet. So a word counts as one if it contains a slash and does
//! not begin with a dash: `grep -i x a/1 a/2` has two, and keeps its pattern.

/// The kernel accepts no longer word on a command line (MAX_ARG_STRLEN in include/uapi/linux/binfmts.h).
const LONGEST_SCRIPT: usize = 131_071;

/// A shell command that runs this many parts.
pub fn over(argv: &[String], workers: usize) -> Result<Vec<String>, String> {
    let is_file = |word: &&String| word.contains('/') && !word.starts_with('-');
    let files = argv.iter().skip(1).rev().take_while(is_file).count();
    if files < workers * 2 {
        return Err("the command does not end in a list of files, so it cannot be split".to_owned());
    }
    let (head, files) = argv.split_at(argv.len() - files);
    let head = quoted(head);
    let parts = files.chunks(files.len().div_ceil(workers)).map(|part| format!("{head} {} &", quoted(part)));
    let script = parts.chain(["wait".to_owned()]).collect::<Vec<_>>().join("\n");
    if script.len() > LONGEST_SCRIPT {
        return Err("the command has too many files to be split by a shell".to_owned());
    }
    Ok(vec!["/bin/sh".to_owned(), "-c".to_owned(), script])
}

fn quoted(words: &[String]) -> String {
    words.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn each_worker_gets_its_part_and_the_rest_of_the_command() {
        let split = over(&words("grep -c it's a/1 a/2 a/3 a/4 a/5"), 2).unwrap();
        let expected = "'grep' '-c' 'it'\\''s' 'a/1' 'a/2' 'a/3' &\n'grep' '-c' 'it'\\''s' 'a/4' 'a/5' &\nwait";
        assert_eq!(split, ["/bin/sh", "-c", expected]);
    }

    #[test]
    fn what_ends_in_no_list_is_not_split() {
        for line in ["find .", "cat a/1 a/2", "tar cf x.tar ./a -v", "/bin/true"] {
            assert!(over(&words(line), 2).is_err(), "{line}");
        }
    }
}
