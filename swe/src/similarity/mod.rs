//! How alike two changes are: the reward of SWE-RL (arXiv 2502.18449), which needs no sandbox.
//!
//! The change to each file is a unified diff with three lines of context; two of them are as alike as Python's
//! `difflib.SequenceMatcher(None, predicted, oracle, autojunk=False).ratio()` says, and the reward is the mean over all files
//! that either side changes.
//!
//! ```
//! use std::collections::BTreeMap;
//! use spar_swe::similarity::search_replace_reward;
//!
//! let code = BTreeMap::from([("a.py".to_owned(), "x = 1\ny = 2\n".to_owned())]);
//! let oracle = BTreeMap::from([("a.py".to_owned(), "x = 1\ny = 3\n".to_owned())]);
//! let output = "<think>Two is wrong.</think><solution>```python\n### a.py\n<<<<<<< SEARCH\ny = 2\n=======\ny = 3\n\
//!               >>>>>>> REPLACE\n```</solution>";
//! let reward = search_replace_reward(&code, &oracle, output).unwrap();
//! assert_eq!(reward.value, 1.0);
//! ```

mod patch_files;
mod reversed;
mod search_replace;
mod sequence_matcher;
mod unified_diff;

use std::collections::BTreeMap;

pub use patch_files::changes_of_patch;
pub use reversed::reversed_patch;
pub use search_replace::{FormatError, apply_edits, parse_edits, split_output};
pub use sequence_matcher::{IndexedSequence, MAX_STEPS, SequenceMatcher};
pub use unified_diff::unified_diff;

/// Contents by path.
pub type Files = BTreeMap<String, String>;

/// Bytes of a text that is compared, and that edits may make of a file: 4 MiB.
pub const MAX_TEXT_BYTES: usize = 1 << 22;

/// A comparison that is not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SimilarityError {
    /// The matcher of sequences would take more steps than it may.
    #[error(
        "compare changes: more than {MAX_STEPS} steps, as the texts are long and repeat themselves"
    )]
    TooManySteps,
    /// A text is larger than what is compared, or edits make a file so.
    #[error("compare changes: a text of more than {MAX_TEXT_BYTES} bytes")]
    TooLarge,
}

/// How alike the changes to one file are.
#[derive(Clone, Debug, PartialEq)]
pub struct FileSimilarity {
    /// Path of the file.
    pub path: String,
    /// The predicted change, empty when there is none.
    pub predicted: String,
    /// The change of the oracle, empty when there is none.
    pub oracle: String,
    /// From 0 to 1; 0 where one of the changes is empty.
    pub similarity: f64,
}

/// What a prediction is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct SimilarityReward {
    /// From 0 to 1, or -1 for an output that is not formed as it has to be.
    pub value: f64,
    /// Every file that either side changes, by path.
    pub files: Vec<FileSimilarity>,
    /// What was wrong with the output.
    pub problem: Option<FormatError>,
}

/// The reward of files that were changed to `predicted`, which should have been changed to `oracle`.
///
/// Files that `code` does not have were empty before. Two sides that change nothing are alike.
///
/// # Errors
///
/// [`SimilarityError`] for texts that cannot be compared in bounded time and space.
pub fn similarity_reward(
    code: &Files,
    oracle: &Files,
    predicted: &Files,
) -> Result<SimilarityReward, SimilarityError> {
    let changes = |files: &Files| -> Result<BTreeMap<String, String>, SimilarityError> {
        let mut changes = BTreeMap::new();
        for (path, new) in files {
            let change = unified_diff(code.get(path).map_or("", String::as_str), new)?;
            if !change.is_empty() {
                changes.insert(path.clone(), change);
            }
        }
        Ok(changes)
    };
    compare(changes(oracle)?, changes(predicted)?)
}

/// The reward of a patch, which should have been `oracle`: hunk by hunk as the patches have them, with what context they have.
/// Two patches that change nothing, or that cannot be read, are alike.
///
/// # Errors
///
/// [`SimilarityError`] for patches that cannot be compared in bounded time and space.
pub fn patch_reward(oracle: &str, predicted: &str) -> Result<SimilarityReward, SimilarityError> {
    check_size(oracle)?;
    check_size(predicted)?;
    compare(changes_of_patch(oracle), changes_of_patch(predicted))
}

/// The mean over all files of how alike their changes are.
fn compare(oracle: Files, mut predicted: Files) -> Result<SimilarityReward, SimilarityError> {
    let mut files = Vec::new();
    for (path, oracle) in oracle {
        files.push((path.clone(), predicted.remove(&path).unwrap_or_default(), oracle));
    }
    files.extend(predicted.into_iter().map(|(path, change)| (path, change, String::new())));
    files.sort();
    let files = files
        .into_iter()
        .map(|(path, predicted, oracle)| {
            let similarity = match predicted.is_empty() || oracle.is_empty() {
                true => 0.0,
                false => text_ratio(&predicted, &oracle)?,
            };
            Ok(FileSimilarity { path, predicted, oracle, similarity })
        })
        .collect::<Result<Vec<_>, _>>()?;
    let value = match files.len() {
        0 => 1.0,
        count => files.iter().map(|file| file.similarity).sum::<f64>() / count as f64,
    };
    Ok(SimilarityReward { value, files, problem: None })
}

/// The reward of an output in the form `<think>...</think><solution>...</solution>` whose solution has SEARCH/REPLACE blocks;
/// -1 when it is not.
///
/// # Errors
///
/// [`SimilarityError`] for outputs that cannot be applied or compared in bounded time and space.
pub fn search_replace_reward(
    code: &Files,
    oracle: &Files,
    output: &str,
) -> Result<SimilarityReward, SimilarityError> {
    let malformed =
        |problem| Ok(SimilarityReward { value: -1.0, files: Vec::new(), problem: Some(problem) });
    let answer = match split_output(output) {
        Ok((_, answer)) => answer,
        Err(problem) => return malformed(problem),
    };
    let edits = parse_edits(answer);
    if edits.is_empty() {
        return malformed(FormatError::NoBlocks);
    }
    match apply_edits(code, &edits)? {
        Ok(predicted) => similarity_reward(code, oracle, &predicted),
        Err(problem) => malformed(problem),
    }
}

/// Python's `difflib.SequenceMatcher(None, a, b, autojunk=False).ratio()` of two texts, characters being Unicode's.
///
/// # Errors
///
/// [`SimilarityError`] for texts that cannot be compared in bounded time and space.
pub fn text_ratio(a: &str, b: &str) -> Result<f64, SimilarityError> {
    check_size(a)?;
    check_size(b)?;
    if a == b {
        return Ok(1.0);
    }
    let a: Vec<char> = a.chars().collect();
    let b = IndexedSequence::new(b.chars().collect(), false);
    SequenceMatcher::new(&a, &b).ratio()
}

fn check_size(text: &str) -> Result<(), SimilarityError> {
    if text.len() > MAX_TEXT_BYTES { Err(SimilarityError::TooLarge) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn files(value: &Value) -> Files {
        serde_json::from_value(value.clone()).unwrap()
    }

    /// Recorded rewards: those of the fixture, and those of the folder of vectors where it exists.
    fn recorded() -> Vec<Value> {
        let own = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = std::env::var_os("SPAR_VECTORS")
            .map_or_else(|| own.join("../../shared/vectors"), std::path::PathBuf::from);
        let mut texts = vec![include_str!("../../tests/fixtures/reward_swe_rl.json").to_owned()];
        match std::fs::read_to_string(folder.join("reward_swe_rl.json")) {
            Ok(text) => texts.push(text),
            Err(error) => println!("skipped: {}: {error}", folder.display()),
        }
        let cases = |text: &String| -> Vec<Value> {
            let mut file: Value = serde_json::from_str(text).unwrap();
            serde_json::from_value(file["cases"].take()).unwrap()
        };
        texts.iter().flat_map(cases).collect()
    }

    #[test]
    fn rewards_are_those_of_the_reference() {
        let cases = recorded();
        assert!(cases.len() >= 13);
        for case in &cases {
            let (inputs, outputs) = (&case["inputs"], &case["outputs"]);
            let (code, oracle) =
                (files(&inputs["code_context"]), files(&inputs["oracle_new_content"]));
            let reward = match inputs["output"].as_str() {
                Some(output) => search_replace_reward(&code, &oracle, output).unwrap(),
                None => {
                    similarity_reward(&code, &oracle, &files(&inputs["pred_new_content"])).unwrap()
                }
            };
            let expected = outputs["reward"].as_f64().unwrap();
            assert!((reward.value - expected).abs() < 1e-12, "{}: {}", case["tag"], reward.value);
            if let Some(error) = outputs["error"].as_str() {
                assert_eq!(reward.problem.unwrap().to_string(), error);
            }
            for expected in outputs["similarities"].as_array().into_iter().flatten() {
                let file = reward.files.iter().find(|file| file.path == expected["path"]).unwrap();
                assert_eq!(file.predicted, expected["pred_change"].as_str().unwrap());
                assert_eq!(file.oracle, expected["oracle_change"].as_str().unwrap());
                assert!((file.similarity - expected["similarity"].as_f64().unwrap()).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn pairs_are_as_alike_as_python_says() {
        let mut count = 0;
        for line in include_str!("../../tests/fixtures/similarity.jsonl").lines() {
            let pair: Value = serde_json::from_str(line).unwrap();
            let text = |key: &str| pair[key].as_str().unwrap();
            let ratio = text_ratio(text("a"), text("b")).unwrap();
            assert!((ratio - pair["ratio"].as_f64().unwrap()).abs() < 1e-12, "{line}");
            assert_eq!(unified_diff(text("a"), text("b")).unwrap(), text("diff"), "{line}");
            count += 1;
        }
        assert!(count >= 500);
    }

    #[test]
    fn patches_are_as_alike_as_the_reference_says() {
        let mut count = 0;
        for line in include_str!("../../tests/fixtures/patch_similarity.jsonl").lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            let text = |key: &str| case[key].as_str().unwrap();
            assert_eq!(changes_of_patch(text("oracle")), files(&case["changes"]), "{line}");
            let reward = patch_reward(text("oracle"), text("predicted")).unwrap();
            assert!((reward.value - case["reward"].as_f64().unwrap()).abs() < 1e-12, "{line}");
            count += 1;
        }
        assert_eq!(count, 60);
    }

    #[test]
    fn hostile_texts_end_in_an_error() {
        let (a, b) = ("a".repeat(200_000), format!("{}b", "a".repeat(200_000)));
        assert_eq!(text_ratio(&a, &b), Err(SimilarityError::TooManySteps));
        let lines = "\n".repeat(400_000);
        assert!(unified_diff(&lines, &format!("x{lines}y{lines}")).is_ok());
        let large = "a\n".repeat(MAX_TEXT_BYTES / 2 + 1);
        assert_eq!(unified_diff(&large, ""), Err(SimilarityError::TooLarge));
        assert_eq!(text_ratio("", &large), Err(SimilarityError::TooLarge));
        assert_eq!(patch_reward(&large, ""), Err(SimilarityError::TooLarge));
        let code = Files::from([("a".to_owned(), "x\n".repeat(64))]);
        let block = "```\n### a\n<<<<<<< SEARCH\nx\n=======\nx\nx\nx\nx\n>>>>>>> REPLACE\n```\n";
        let output = format!("<think>t</think><solution>{}</solution>", block.repeat(12));
        assert_eq!(search_replace_reward(&code, &code, &output), Err(SimilarityError::TooLarge));
    }
}
