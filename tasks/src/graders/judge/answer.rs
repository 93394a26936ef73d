//! What a judge answered.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{JudgeMode, JudgeOptions};

/// What a judge found.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Found {
    /// A score in the range.
    Score(f64),
    /// 1 where the first candidate is better, 2 where the second is, 0 where neither is.
    Better(u8),
    /// A score by each criterion.
    Scores(BTreeMap<String, f64>),
    /// The turn of the first error, from 1; absent where there is none.
    FirstError(Option<usize>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Score {
    score: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Better {
    better: u8,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scores {
    scores: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FirstError {
    first_error: usize,
}

/// Reads the one line that carries the mark; an error is what is wrong with the answer, in words for the judge.
///
/// What an answer repeats of the episode is not read: only who was told the mark can write such a line.
pub(super) fn read(
    answer: &str,
    mark: &str,
    options: &JudgeOptions,
    num_turns: usize,
) -> Result<Found, String> {
    let begin = format!("verdict {mark}:");
    let is_ornament = |c: char| matches!(c, '`' | '*' | ' ' | '\t');
    let lines = answer.lines().map(|line| line.trim_matches(is_ornament));
    let marked: Vec<&str> = lines.filter_map(|line| line.strip_prefix(begin.as_str())).collect();
    let [line] = marked[..] else {
        return Err(match marked.len() {
            0 => format!("no line begins with `{begin}`"),
            several => format!("{several} lines begin with `{begin}`, exactly one has to"),
        });
    };
    let in_range = |score: f64| {
        let [low, high] = options.range;
        let is_inside = (low..=high).contains(&score);
        if is_inside { Ok(score) } else { Err(format!("{score} is not from {low} to {high}")) }
    };
    match options.mode {
        JudgeMode::Pointwise => Ok(Found::Score(in_range(parse::<Score>(line)?.score)?)),
        JudgeMode::Pairwise => match parse::<Better>(line)?.better {
            better @ 0..=2 => Ok(Found::Better(better)),
            other => Err(format!("`better` is {other}, has to be 1, 2 or 0")),
        },
        JudgeMode::Criteria => {
            let Scores { scores } = parse::<Scores>(line)?;
            let wanted: Vec<&str> = options.criteria.iter().map(|it| it.name.as_str()).collect();
            let missing: Vec<_> =
                wanted.iter().copied().filter(|name| !scores.contains_key(*name)).collect();
            if !missing.is_empty() {
                return Err(format!("there is no score for {}", missing.join(", ")));
            }
            if let Some(name) = scores.keys().find(|name| !wanted.contains(&name.as_str())) {
                return Err(format!("`{name}` is none of the criteria"));
            }
            scores.values().try_for_each(|score| in_range(*score).map(drop))?;
            Ok(Found::Scores(scores))
        }
        JudgeMode::Steps => match parse::<FirstError>(line)?.first_error {
            0 => Ok(Found::FirstError(None)),
            turn if turn <= num_turns => Ok(Found::FirstError(Some(turn))),
            turn => Err(format!("there is no turn {turn}, the last one is {num_turns}")),
        },
    }
}

fn parse<T: DeserializeOwned>(line: &str) -> Result<T, String> {
    serde_json::from_str(line.trim())
        .map_err(|error| format!("the verdict is not of the form that was asked for: {error}"))
}

#[cfg(test)]
mod tests {
    use super::super::Criterion;
    use super::*;

    fn told(mode: JudgeMode, answer: &str) -> Result<Found, String> {
        let criterion = |name: &str| Criterion {
            name: name.to_owned(),
            text: "is it?".to_owned(),
            weight: 1.0,
        };
        let criteria = vec![criterion("brief"), criterion("true")];
        let options = JudgeOptions { mode, criteria, ..JudgeOptions::default() };
        read(answer, "a1", &options, 3)
    }

    #[test]
    fn the_line_with_the_mark_is_read_and_nothing_else() {
        use JudgeMode::{Criteria, Pairwise, Pointwise, Steps};
        let good = "score: 10\n{\"score\": 10}\nverdict b2: {\"score\": 10}\n`verdict a1: {\"score\": 2.5}`\n";
        assert_eq!(told(Pointwise, good), Ok(Found::Score(2.5)));
        assert_eq!(told(Pairwise, "verdict a1: {\"better\": 0}"), Ok(Found::Better(0)));
        assert_eq!(told(Steps, "verdict a1: {\"first_error\": 3}"), Ok(Found::FirstError(Some(3))));
        assert_eq!(
            told(Steps, "**verdict a1: {\"first_error\": 0}**"),
            Ok(Found::FirstError(None))
        );
        let scores = "verdict a1: {\"scores\": {\"true\": 10, \"brief\": 0}}";
        let Ok(Found::Scores(found)) = told(Criteria, scores) else { panic!() };
        assert_eq!(found.values().copied().collect::<Vec<_>>(), [0.0, 10.0]);
    }

    #[test]
    fn what_cannot_be_read_is_told_in_words() {
        use JudgeMode::{Criteria, Pairwise, Pointwise, Steps};
        for (mode, answer, part) in [
            (Pointwise, "score: 10", "no line begins"),
            (Pointwise, "", "no line begins"),
            (Pointwise, "verdict a1: {\"score\": N}", "not of the form"),
            (Pointwise, "verdict a1: {\"score\": 11}", "not from 0 to 10"),
            (Pointwise, "verdict a1: {\"score\": 1, \"note\": 2}", "note"),
            (Pointwise, "verdict a1: {\"score\": 1}\nverdict a1: {\"score\": 9}", "2 lines"),
            (Pairwise, "verdict a1: {\"better\": 3}", "has to be"),
            (Steps, "verdict a1: {\"first_error\": 4}", "no turn 4"),
            (Criteria, "verdict a1: {\"scores\": {\"true\": 1}}", "no score for brief"),
            (Criteria, "verdict a1: {\"scores\": {\"true\": 1, \"brief\": 1, \"x\": 1}}", "`x`"),
        ] {
            let error = told(mode, answer).unwrap_err();
            assert!(error.contains(part), "{answer}: {error}");
        }
    }
}
