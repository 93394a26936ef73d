//! The graders that have a name.

use serde::{Deserialize, Serialize};
use spar_core::registry::{Axis, Given, OptionSet, Options, Row, Table};

use super::{
    Bleu, BleuOptions, ChoiceAnswer, ChoiceAnswerOptions, Evidence, EvidenceOptions, Exact,
    ExactOptions, FreshSandboxOptions, Grader, Judge, JudgeOptions, Likelihood, LikelihoodOptions,
    MathAnswer, MathAnswerOptions, OwnVerdict, PatchSimilarity, PatchSimilarityOptions,
    ProgramTests, ReasoningSql, ReasoningSqlOptions, Region, RegionOptions, Rubric, RubricOptions,
    Script, ScriptOptions, Squad, SquadOptions, Structured, Tau2Options, Tau2Reward,
    UnitTestsOptions,
};
use crate::GraderError;

/// Which grader, with which options, and what its verdict counts.
///
/// ```
/// use spar_tasks::graders::{GraderConfig, open_grader};
///
/// let config: GraderConfig = toml::from_str("kind = 'exact'\nweight = 0.5\nignore_case = true")?;
/// assert_eq!(open_grader(&config).unwrap().name(), "exact");
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraderConfig {
    /// The grader's name.
    pub kind: String,
    /// What it is called in verdicts, and its part of the reward. Default absent: its kind, the parts being called as it calls
    /// them; two of a kind need a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What its reward is multiplied by; 0 has it judge for the record alone. At least 0. Default 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub weight: f64,
    /// Whether success is what it says; true of one among several. Default false: of one alone it is true.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decides: bool,
    /// Its options; those left out have the defaults that it documents.
    #[serde(flatten)]
    pub options: Options,
}

fn one() -> f64 {
    1.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_one(weight: &f64) -> bool {
    *weight == 1.0
}

impl GraderConfig {
    /// A grader with its default options.
    pub fn new(kind: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            name: None,
            weight: one(),
            decides: false,
            options: Options::new(),
        }
    }

    /// What it is called.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.kind)
    }
}

/// Makes a grader from its options.
pub type OpenGrader = fn(&Given<'_>) -> Result<Box<dyn Grader>, GraderError>;

/// A grader that has a name.
pub type GraderRow = Row<OpenGrader>;

pub(super) const AXIS: Axis =
    Axis { name: "graders", what: "grader", about: "Who judges an episode when it is over." };

const ROWS: &[GraderRow] = &[
    Row {
        name: "environment",
        about: "What the environment itself judges, as where no graders are named.",
        source: "own",
        formula: "",
        options: OptionSet::NONE,
        open: |_| Ok(Box::new(OwnVerdict)),
    },
    Row {
        name: "exact",
        about: "The answer has to be one that the task calls right, spaces aside, or a number equal to it.",
        source: "exact match, SQuAD, arXiv 1606.05250, without its removal of articles and punctuation",
        formula: "success = 1[normal(answer) in { normal(r) : r in reference }]",
        options: OptionSet::of::<ExactOptions>(),
        open: |given| Ok(Box::new(Exact::new(given.read()?))),
    },
    Row {
        name: "math",
        about: "The answer has to say what the task calls right, as mathematics.",
        source: "math-verify 0.9, with the differences that docs/answers.md judges",
        formula: "success = 1[exists r in reference: final(answer) = r as mathematics]",
        options: OptionSet::of::<MathAnswerOptions>(),
        open: |given| Ok(Box::new(MathAnswer::new(given.read()?))),
    },
    Row {
        name: "choice",
        about: "The answer has to name the letter of the right choice, and no other.",
        source: "own, after lm-evaluation-harness and simple-evals",
        formula: "success = 1[exists r in reference: choice(answer) = choice(r)]",
        options: OptionSet::of::<ChoiceAnswerOptions>(),
        open: |given| Ok(Box::new(ChoiceAnswer::new(given.read()?))),
    },
    Row {
        name: "structured",
        about: "The answer has to be the JSON value that the task calls right: grids, lists, objects.",
        source: "own, after Guru's logic and simulation rewards, arXiv 2506.14965",
        formula: "success = 1[exists r in reference: json(answer) = json(r)], numbers by value",
        options: OptionSet::NONE,
        open: |_| Ok(Box::new(Structured)),
    },
    Row {
        name: "region",
        about: "The answer has to name a point or a box on a screen that lies where the task says.",
        source: "after GUI-G1, arXiv 2505.15810: hit, IoU and size of boxes",
        formula: "1[middle in region] (hit + iou IoU + size 4 / sum max(a/b, b/a)) / (hit + iou + size)",
        options: OptionSet::of::<RegionOptions>(),
        open: |given| Ok(Box::new(Region::new(given.read()?))),
    },
    Row {
        name: "squad",
        about: "The answer has to be a right one, capitals, punctuation, articles and spaces aside; or its F1 is paid.",
        source: "SQuAD, arXiv 1606.05250, its evaluation script",
        formula: "exact_match 1[normal(answer) in { normal(r) }]; f1 max_r 2 P R / (P + R) over words",
        options: OptionSet::of::<SquadOptions>(),
        open: |given| Ok(Box::new(Squad::new(given.read()?))),
    },
    Row {
        name: "bleu",
        about: "How many rows of words the answer shares with what the task calls right.",
        source: "BLEUBERI, arXiv 2505.11080; BLEU as sacrebleu 2.6 has it for sentences, with its tokenizer 13a",
        formula: "min(1, exp(1 - r / c)) exp(mean_n log p_n), n from 1 to 4",
        options: OptionSet::of::<BleuOptions>(),
        open: |given| Ok(Box::new(Bleu::new(given.read()?)?)),
    },
    Row {
        name: "evidence",
        about: "The answer names the passages that it stands on; form, answer and passages are paid apart, all together more.",
        source: "ARENA, arXiv 2505.13258, and its code; deviation: the share of evidence that is not quite right",
        formula: "format + accuracy 1[exact match] + relevance (1 if exact, else precision recall / 2) + bonus 1[all]",
        options: OptionSet::of::<EvidenceOptions>(),
        open: |given| Ok(Box::new(Evidence::new(given.read()?)?)),
    },
    Row {
        name: "rubric",
        about: "The answer by the rubric of its task: the share of the points whose criteria it satisfies.",
        source: "RuscaRL, arXiv 2508.16949, and HealthBench, arXiv 2505.08775; deviation: criteria with phrases need no judge",
        formula: "max(0, sum_k points_k s_k) / sum_{points_k > 0} points_k",
        options: OptionSet::of::<RubricOptions>(),
        open: |given| Ok(Box::new(Rubric::new(given.read()?)?)),
    },
    Row {
        name: "script",
        about: "A script in the episode's own sandbox, once everything of the agent has ended.",
        source: "tests that run behind the agent, SWE-bench, arXiv 2310.06770",
        formula: "",
        options: OptionSet::of::<ScriptOptions>(),
        open: |given| Ok(Box::new(Script::in_same_sandbox(given.read()?)?)),
    },
    Row {
        name: "fresh_sandbox",
        about: "A script in a second sandbox, to which only the agreed files are carried.",
        source: "own",
        formula: "",
        options: OptionSet::of::<FreshSandboxOptions>(),
        open: |given| Ok(Box::new(Script::in_fresh_sandbox(given.read()?)?)),
    },
    Row {
        name: "unit_tests",
        about: "The program of the final answer against the task's tests, in a sandbox that never sees what is right.",
        source: "HumanEval, arXiv 2107.03374; APPS, arXiv 2105.09938; LiveCodeBench, arXiv 2403.07974",
        formula: "passed = 1[all tests passed]; fraction = passed tests / tests",
        options: OptionSet::of::<UnitTestsOptions>(),
        open: |given| Ok(Box::new(ProgramTests::new(given.read()?)?)),
    },
    Row {
        name: "judge",
        about: "A model judges: by a score, against a reference, by criteria, or step by step.",
        source: "LLM-as-a-judge, arXiv 2306.05685, sections 3.1 and 3.4; first error: ProcessBench, arXiv 2412.06559",
        formula: "pointwise (score - low) / (high - low); pairwise the mean over both orders of 1, 1/2 or 0; \
                  criteria sum_k w_k (score_k - low) / (high - low) / sum_k w_k; steps the share of turns before the first error",
        options: OptionSet::of::<JudgeOptions>(),
        open: |given| Ok(Box::new(Judge::new(given.read()?)?)),
    },
    Row {
        name: "tau2",
        about: "What the environment finds by rules, times whether a model finds sentences true of the conversation.",
        source: "tau2-bench, arXiv 2506.07982, its reward basis NL_ASSERTION",
        formula: "reward_rules * prod_k 1[sentence k is true]",
        options: OptionSet::of::<Tau2Options>(),
        open: |given| Ok(Box::new(Tau2Reward::new(given.read()?)?)),
    },
    Row {
        name: "likelihood",
        about: "How likely a model finds the reference answer behind the policy's reasoning.",
        source: "VeriFree, arXiv 2505.21493; RLPR, arXiv 2506.18254; NOVER, arXiv 2505.16022",
        formula: "m(log p(y*_t | x, z, y*_<t)), with `debias` max(0, that less m(log p(y*_t | x, y*_<t))); m is \
                  exp(mean), mean(exp) or exp(sum)",
        options: OptionSet::of::<LikelihoodOptions>(),
        open: |given| Ok(Box::new(Likelihood::new(given.read()?)?)),
    },
    Row {
        name: "reasoning_sql",
        about: "A query of environment `sql`, judged in parts: what it finds, reads and looks like.",
        source: "Reasoning-SQL, arXiv 2503.23157, without its model as a judge; weights of a reconstruction",
        formula: "sum_k w_k s_k / sum_k w_k over execution, syntax, schema_linking, ngram, format; all s_k = 1 where execution is",
        options: OptionSet::of::<ReasoningSqlOptions>(),
        open: |given| Ok(Box::new(ReasoningSql::new(given.read()?)?)),
    },
    Row {
        name: "patch_similarity",
        about: "A change is worth how like it is to the right one, and -1 where it is malformed; no test runs.",
        source: "SWE-RL, arXiv 2502.18449, as its code has it",
        formula: "mean_f ratio(predicted_f, oracle_f), ratio of difflib.SequenceMatcher(autojunk=False) over unified diffs; -1",
        options: OptionSet::of::<PatchSimilarityOptions>(),
        open: |given| Ok(Box::new(PatchSimilarity::new(given.read()?))),
    },
];

static TABLE: Table<OpenGrader> = Table::new(AXIS, ROWS);

/// All graders that have a name; a new one is one file and one row here.
pub fn grader_registry() -> &'static Table<OpenGrader> {
    &TABLE
}

/// Makes a grader.
///
/// # Errors
///
/// [`GraderError::Row`] when none has the name, or it does not have the options.
pub fn open_grader(config: &GraderConfig) -> Result<Box<dyn Grader>, GraderError> {
    let (row, given) = grader_registry().choose(&config.kind, &config.options)?;
    (row.open)(&given)
}

#[cfg(test)]
mod tests {
    use spar_core::registry::AnyTable;

    use super::*;

    #[test]
    fn every_grader_opens_by_its_name_and_refuses_options_that_it_does_not_have() {
        assert_eq!(AnyTable::problems(grader_registry()), [""; 0]);
        for entry in grader_registry() {
            let mut config = GraderConfig::new(entry.name);
            if entry.name == "fresh_sandbox" {
                config.options.insert("carry".to_owned(), serde_json::json!(["out"]));
            }
            if entry.name == "tau2" {
                let sentences = serde_json::json!(["The agent was kind."]);
                config.options.insert("nl_assertions".to_owned(), sentences);
            }
            assert_eq!(open_grader(&config).unwrap().name(), entry.name);
            config.options.insert("no_such_option".to_owned(), serde_json::Value::Null);
            let told = open_grader(&config).unwrap_err().to_string();
            assert!(told.contains("`no_such_option`"), "{told}");
        }
        let told = open_grader(&GraderConfig::new("jugde")).unwrap_err().to_string();
        assert!(told.contains("`judge`") && told.contains("`exact`"), "{told}");
    }
}
