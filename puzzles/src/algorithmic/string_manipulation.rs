//! Strings that rules change.

use std::collections::HashSet;

use crate::prelude::*;

/// Steps after which a string is taken to grow for ever; the package goes on without a bound.
const MOST_STEPS: u64 = 20_000;

options! {
    /// Options of `string_manipulation`.
    StringManipulationOptions {
        /// Fewest letters, at least 5. Default 5.
        min_string_length: i64 = 5,
        /// Most letters, up to 1000. Default 20.
        max_string_length: i64 = 20,
        /// Fewest rules, at least 3. Default 3.
        min_num_rules: i64 = 3,
        /// Most rules, up to 20. Default 8.
        max_num_rules: i64 = 8,
    }
    |given, problems| {
        let lengths = (given.min_string_length, given.max_string_length);
        problems.span(("min_string_length", "max_string_length"), lengths, (5, 1_000));
        problems.span(("min_num_rules", "max_num_rules"), (given.min_num_rules, given.max_num_rules), (3, 20));
    }
}

/// What a rule makes of a string; absent where it does not apply.
type Rule = fn(&str) -> Option<String>;

const RULES: [(&str, Rule); 20] = [
    ("If the string prefix is 'ab', replace it with 'ca'.", |s| {
        Some(format!("ca{}", s.strip_prefix("ab")?))
    }),
    ("If the string suffix is 'ac', replace it with 'cb'.", |s| {
        Some(format!("{}cb", s.strip_suffix("ac")?))
    }),
    (
        "If the string prefix is 'bc', delete the first two characters and append 'aa' to the end.",
        |s| Some(format!("{}aa", s.strip_prefix("bc")?)),
    ),
    ("If the string suffix is 'bb', delete the last two characters.", |s| {
        Some(s.strip_suffix("bb")?.to_owned())
    }),
    ("If the string prefix is 'cb', replace it with 'aa' and delete the last character.", |s| {
        let rest = s.strip_prefix("cb")?;
        Some(format!("aa{}", &rest[..rest.len().saturating_sub(1)]))
    }),
    ("If the string prefix is 'ca', replace it with 'bb' and append 'c' to the end.", |s| {
        Some(format!("bb{}c", s.strip_prefix("ca")?))
    }),
    ("If the string suffix is 'cc', replace it with 'b' and prepend 'a' to the start.", |s| {
        Some(format!("a{}b", s.strip_suffix("cc")?))
    }),
    ("If the string prefix is 'aa', remove the first character.", |s| {
        s.starts_with("aa").then(|| s[1..].to_owned())
    }),
    ("If the string contains 'abc', replace the first occurrence with 'cab'.", |s| {
        replaced(s, "abc", "cab")
    }),
    ("If the string contains 'bca', delete the first occurrence entirely.", |s| {
        replaced(s, "bca", "")
    }),
    ("If the string ends with 'ba', replace it with 'ab'.", |s| {
        Some(format!("{}ab", s.strip_suffix("ba")?))
    }),
    ("If the string starts with 'cc', remove the first two characters.", |s| {
        Some(s.strip_prefix("cc")?.to_owned())
    }),
    ("If the string contains 'acb', replace the first occurrence with its reverse ('bca').", |s| {
        replaced(s, "acb", "bca")
    }),
    ("If the string ends with 'ca', remove the last character.", |s| {
        s.ends_with("ca").then(|| s[..s.len() - 1].to_owned())
    }),
    ("If the string starts with 'bb', remove the second character.", |s| {
        Some(format!("b{}", s.strip_prefix("bb")?))
    }),
    ("If the string ends with 'aa', replace it with 'cc'.", |s| {
        Some(format!("{}cc", s.strip_suffix("aa")?))
    }),
    (
        "If the string contains 'ca' (not at the start), remove the first occurrence found after the first character.",
        |s| {
            let at = 1 + s.get(1..)?.find("ca")?;
            Some(format!("{}{}", &s[..at], &s[at + 2..]))
        },
    ),
    (
        "If the string contains an even number of 'b's (and at least one 'b'), append 'ab' at the end.",
        |s| {
            let count = s.matches('b').count();
            (count > 0 && count % 2 == 0).then(|| format!("{s}ab"))
        },
    ),
    ("If the string length is greater than 15, remove the middle character.", |s| {
        let middle = s.len() / 2;
        (s.len() > 15).then(|| format!("{}{}", &s[..middle], &s[middle + 1..]))
    }),
    ("If the string starts with 'ac', replace the first two characters with 'zz'.", |s| {
        Some(format!("zz{}", s.strip_prefix("ac")?))
    }),
];

/// A string to be changed by rules until none applies or it comes up again.
pub(crate) struct StringManipulation;

impl Generator for StringManipulation {
    type Options = StringManipulationOptions;

    fn item(options: &StringManipulationOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let length = rng.int(options.min_string_length, options.max_string_length)?;
        let mut string = String::new();
        for _ in 0..length {
            string.push(*rng.choice(&['a', 'b', 'c'])?);
        }
        let count = rng.int(options.min_num_rules, options.max_num_rules)? as usize;
        let places: Vec<usize> = (0..RULES.len()).collect();
        let rules: Vec<(&str, Rule)> =
            rng.sample(&places, count)?.into_iter().map(|at| RULES[at]).collect();
        let told = joined(
            rules.iter().enumerate().map(|(place, (told, _))| format!("{}. {told}", place + 1)),
            "\n",
        );
        let question = format!(
            "Your job is to repeatedly transform a string according to a set of rules until no further transformations can be performed, or a state is repeated.\n\nEvaluate the following rules in order, and apply the first applicable rule to the string:\n{told}\n\nOnce you have applied a rule, repeat the process with the new string until no further transformations can be performed (i.e. the string doesn't change), or a state is repeated.\nIf a state is repeated, the process is terminated, and the repeated state is discarded (i.e. is not considered as the final answer) and the state before the repeated state is considered as the final answer.\n\nYour output should be the final transformed string after applying all the rules.\n\nTransform the following string according to the above list of rules:\n{string}\n"
        );
        Ok(Item::new(question, last_state(string, &rules)?))
    }
}

fn replaced(string: &str, part: &str, other: &str) -> Option<String> {
    string.contains(part).then(|| string.replacen(part, other, 1))
}

fn last_state(string: String, rules: &[(&str, Rule)]) -> Result<String, ItemError> {
    let mut seen = HashSet::from([string.clone()]);
    let mut state = string;
    for _ in 0..MOST_STEPS {
        match rules.iter().find_map(|(_, rule)| rule(&state)) {
            Some(next) if seen.insert(next.clone()) => state = next,
            _ => return Ok(state),
        }
    }
    Err(ItemError::TooManyTries { tries: MOST_STEPS })
}
