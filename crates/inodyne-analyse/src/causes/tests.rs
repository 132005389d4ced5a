//! Real stacks and what they mean.

use super::table::{Means, RULES, Rule};

#[test]
fn every_rule_stands_once_and_says_how_it_is_known() {
    for (at, rule) in RULES.iter().enumerate() {
        let way = |rule: &Rule| match rule.means {
            Means::When(way, _) => Some(way),
            Means::Is(_) | Means::Waits(_) => None,
        };
        let again = RULES[..at].iter().any(|other| other.symbol == rule.symbol && way(other) == way(rule));
        assert!(!again, "{} twice", rule.symbol);
        let known = rule.seen == "6.18" || rule.seen.contains(".c") || rule.seen.contains(".h");
        assert!(known, "{}: {}", rule.symbol, rule.seen);
    }
}
