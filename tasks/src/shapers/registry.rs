//! The reward shapers that have a name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{Axis, Given, OptionSet, Options, Row, Table, to_options};

use super::{
    Agreement, AgreementOptions, Calibration, CalibrationOptions, Completion, CompletionOptions,
    Consensus, ConsensusOptions, Ensemble, EnsembleOptions, Flawed, FlawedOptions, Gated,
    GatedOptions, Hypervolume, HypervolumeOptions, LengthDiscount, LengthDiscountOptions,
    LikelihoodBonus, LikelihoodBonusOptions, Normalized, NormalizedOptions, Overlong,
    OverlongOptions, Partial, PartialOptions, Process, ProcessOptions, ProgressWeighted,
    ProgressWeightedOptions, Repetition, RepetitionOptions, RewardShaper, SkillCredit, ToolCost,
    ToolCostOptions, Verpo, VerpoOptions, Weighted, WeightedOptions,
};
use crate::ShaperError;

/// Which reward shaper, with which options.
///
/// ```
/// use spar_tasks::{ShaperConfig, open_shaper};
///
/// let config: ShaperConfig = toml::from_str(
///     r#"
///     name = "length_discount"
///     options = { factor = 0.9 }
///     "#,
/// )?;
/// assert_eq!(open_shaper(&config).unwrap().name(), "length_discount");
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShaperConfig {
    /// The shaper's name.
    pub name: String,
    /// Its options; those left out have the defaults that the shaper documents. Default empty.
    #[serde(default)]
    #[schemars(with = "Options")]
    pub options: toml::Table,
}

impl ShaperConfig {
    /// The shaper `name` with its default options.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), options: toml::Table::new() }
    }
}

/// Makes a reward shaper from its options.
pub type OpenShaper = fn(&Given<'_>) -> Result<Box<dyn RewardShaper>, ShaperError>;

/// A reward shaper that has a name.
pub type ShaperRow = Row<OpenShaper>;

pub(super) const AXIS: Axis = Axis {
    name: "shapers",
    what: "reward shaper",
    about: "What changes rewards before credit sees them.",
};

const ROWS: &[ShaperRow] = &[
    Row {
        name: "gated",
        about: "What is earned on the way counts only where the outcome is good enough.",
        source: "G-RA of \"Stabilizing Long-term Multi-turn Reinforcement Learning with Gated Rewards\", reconstructed \
                 from its abstract; assumed: the thresholds, more than two levels, and parts that always count",
        formula: "R = R_0 + sum_{l > 0} 1[R_k >= tau_k for all k < l] R_l",
        options: OptionSet::of::<GatedOptions>(),
        open: |given| Ok(Box::new(Gated::new(&given.read()?)?)),
    },
    Row {
        name: "length_discount",
        about: "Success is worth less by a factor per turn of the episode; penalties are not.",
        source: "Sutton and Barto, Reinforcement Learning, 2nd edition, equation 3.8, given to the whole episode",
        formula: "r' = r factor^T for every part r > 0 of an episode of T turns",
        options: OptionSet::of::<LengthDiscountOptions>(),
        open: |given| Ok(Box::new(LengthDiscount::new(&given.read()?)?)),
    },
    Row {
        name: "overlong",
        about: "An episode whose answers are longer than they should be costs something.",
        source: "DAPO, arXiv 2503.14476, equation 13, as its code has it",
        formula: "r += min(-(n - (max_tokens - buffer)) / buffer * penalty, 0), n the sampled tokens of the episode",
        options: OptionSet::of::<OverlongOptions>(),
        open: |given| Ok(Box::new(Overlong::new(&given.read()?)?)),
    },
    Row {
        name: "weighted",
        about: "Parts of the reward count as much as they are said to, by their names.",
        source: "own",
        formula: "r = sum_k w_k r_k",
        options: OptionSet::of::<WeightedOptions>(),
        open: |given| Ok(Box::new(Weighted::new(&given.read()?)?)),
    },
    Row {
        name: "ensemble",
        about: "Several rewards for the same thing become their least, or their mean less their variance.",
        source: "WCO and UWO, arXiv 2310.02743, equations 4 and 5",
        formula: "min_k R_k, or mean_k R_k - uncertainty_weight var_k R_k, in place of the members",
        options: OptionSet::of::<EnsembleOptions>(),
        open: |given| Ok(Box::new(Ensemble::new(&given.read()?)?)),
    },
    Row {
        name: "calibration",
        about: "Who states how sure he is has to be right as often.",
        source: "RLCR, arXiv 2507.16806, equation 2",
        formula: "r += -weight (q - 1[success])^2, q the stated confidence, the difference 1 where there is none",
        options: OptionSet::of::<CalibrationOptions>(),
        open: |given| Ok(Box::new(Calibration::new(&given.read()?)?)),
    },
    Row {
        name: "agreement",
        about: "Answers that are like those to other paraphrases of the task are worth more, without labels.",
        source: "PS-GRPO, arXiv 2510.04392, reconstructed from its abstract; assumed: BLEU as the similarity",
        formula: "r_i += weight mean_{j : paraphrase(j) != paraphrase(i)} BLEU(a_i, a_j)",
        options: OptionSet::of::<AgreementOptions>(),
        open: |given| Ok(Box::new(Agreement::new(&given.read()?)?)),
    },
    Row {
        name: "consensus",
        about: "What most of a group answer is taken to be right, without labels.",
        source: "TTRL, arXiv 2504.16084; regions: GUI-RC, arXiv 2508.05615, reconstructed from its abstract and a summary",
        formula: "1[answer = majority of the group], or the mean votes of the cells that a prediction covers, over the most",
        options: OptionSet::of::<ConsensusOptions>(),
        open: |given| Ok(Box::new(Consensus::new(&given.read()?)?)),
    },
    Row {
        name: "flawed",
        about: "A success with an error on the way is worth less, and a failure costs something.",
        source: "FAPO, arXiv 2510.22543, and its code",
        formula: "1 where right without an error, 1 - penalty with one, -wrong where wrong",
        options: OptionSet::of::<FlawedOptions>(),
        open: |given| Ok(Box::new(Flawed::new(&given.read()?)?)),
    },
    Row {
        name: "hypervolume",
        about: "Episodes that extend the Pareto front of several objectives count more.",
        source: "arXiv 2509.11452, hypervolume-guided weights, reconstructed from its abstract",
        formula: "r += weight (HV(front and it) - HV(front)) / HV(best of each) sum_k r_k",
        options: OptionSet::of::<HypervolumeOptions>(),
        open: |given| Ok(Box::new(Hypervolume::new(&given.read()?)?)),
    },
    Row {
        name: "likelihood_bonus",
        about: "Right episodes whose reasoning makes the answer likelier than in their group earn more.",
        source: "GRPO-CARE, arXiv 2506.16141, reconstructed from its abstract",
        formula: "r += bonus 1[success and l > mean l of the group's successes]",
        options: OptionSet::of::<LikelihoodBonusOptions>(),
        open: |given| Ok(Box::new(LikelihoodBonus::new(&given.read()?)?)),
    },
    Row {
        name: "normalized",
        about: "Returns are brought to mean 0 and deviation 1 by those of earlier iterations, and clipped.",
        source: "PPO-max, arXiv 2307.04964, section 5.3.1",
        formula: "clip((R - mean) / std, -clip, clip)",
        options: OptionSet::of::<NormalizedOptions>(),
        open: |given| Ok(Box::new(Normalized::new(&given.read()?)?)),
    },
    Row {
        name: "process",
        about: "Rewards of steps are clipped, or become differences, so that more steps never pay.",
        source: "arXiv 2410.15115, section 4.2, reconstructed from a summary",
        formula: "min(r_k - clip, 0); r_k - r_{k+1}, the last one as it is",
        options: OptionSet::of::<ProcessOptions>(),
        open: |given| Ok(Box::new(Process::new(&given.read()?)?)),
    },
    Row {
        name: "progress_weighted",
        about: "Objectives count less the better they are learned, and more the more they waver.",
        source: "RECAP, reconstructed from its abstract; assumed: the formula",
        formula: "w_k = K softmax((1 - m_k / best + instability v_k / best) / temperature), m and v running means of what was earned and of its change",
        options: OptionSet::of::<ProgressWeightedOptions>(),
        open: |given| Ok(Box::new(ProgressWeighted::new(&given.read()?)?)),
    },
    Row {
        name: "repetition",
        about: "Rows of tokens that an answer repeats cost something.",
        source: "CAMPO of MiroMind-M1, arXiv 2507.14683, reconstructed from its abstract",
        formula: "r += -penalty max(0, s - free) / (1 - free), s = 1 - distinct / all rows of `ngram` tokens",
        options: OptionSet::of::<RepetitionOptions>(),
        open: |given| Ok(Box::new(Repetition::new(&given.read()?)?)),
    },
    Row {
        name: "partial",
        about: "An instance that is not resolved is worth the fraction of its failing tests that pass now, if none broke.",
        source: "SWE-bench's RESOLVED_PARTIAL, arXiv 2310.06770; the fraction as a reward is common to SWE-Gym and others",
        formula: "r += weight |passed fail-to-pass| / |fail-to-pass| where the outcome is partial",
        options: OptionSet::of::<PartialOptions>(),
        open: |given| Ok(Box::new(Partial::new(&given.read()?)?)),
    },
    Row {
        name: "verpo",
        about: "Tests that few of a group pass weigh more than those that many do.",
        source: "VeRPO, reconstructed from its abstract; assumed: weights by the passes of the group, and the share of the outcome",
        formula: "R = (1 - dense) outcome + dense sum_j w_j pass_j, w_j = (1 - p_j) / sum_k (1 - p_k)",
        options: OptionSet::of::<VerpoOptions>(),
        open: |given| Ok(Box::new(Verpo::new(&given.read()?)?)),
    },
    Row {
        name: "completion",
        about: "Handing in earns something, and so does having changed the repository.",
        source: "completion and modification rates of G-RA, arXiv 2508.10548; that they are rewards is own",
        formula: "r += completed 1[handed in] + modified 1[patch is not empty]",
        options: OptionSet::of::<CompletionOptions>(),
        open: |given| Ok(Box::new(Completion::new(&given.read()?)?)),
    },
    Row {
        name: "skill_credit",
        about: "What a skill of a chain of tasks has earned is told to the turn that saved it.",
        source: "SAGE, arXiv 2512.17102, reconstructed from its abstract; assumed: the step that created a skill has the bonus",
        formula: "r'_t = r_t + the bonuses of the skills that were saved at t",
        options: OptionSet::NONE,
        open: |_| Ok(Box::new(SkillCredit)),
    },
    Row {
        name: "tool_cost",
        about: "Calls of tools beyond some cost something.",
        source: "own, after arXiv 2510.11701",
        formula: "r += -min(cost max(0, calls - free), most)",
        options: OptionSet::of::<ToolCostOptions>(),
        open: |given| Ok(Box::new(ToolCost::new(&given.read()?)?)),
    },
];

static TABLE: Table<OpenShaper> = Table::new(AXIS, ROWS);

/// All reward shapers that have a name; a new one is one file and one row here.
pub fn shaper_registry() -> &'static Table<OpenShaper> {
    &TABLE
}

/// Makes a reward shaper.
///
/// # Errors
///
/// [`ShaperError::Row`] when none has the name, it does not have the options, or one is out of range.
pub fn open_shaper(config: &ShaperConfig) -> Result<Box<dyn RewardShaper>, ShaperError> {
    let options = to_options(&config.options);
    let (row, given) = shaper_registry().choose(&config.name, &options)?;
    (row.open)(&given)
}

#[cfg(test)]
mod tests {
    use super::super::RewardShapers;
    use super::super::tests::episode;
    use super::*;

    #[test]
    fn every_shaper_opens_and_keeps_one_list_per_turn() {
        let episodes =
            [episode(&[&[("success", 1.0)], &[], &[("invalid_action", -1.0)]]), episode(&[])];
        for entry in shaper_registry() {
            let config = ShaperConfig::new(entry.name);
            assert_eq!(open_shaper(&config).unwrap().name(), entry.name);
            let shapers = RewardShapers::open(&[config.clone(), config]).unwrap();
            for episode in &episodes {
                let rewards = shapers.rewards(episode);
                assert_eq!(rewards.len(), episode.turns.len());
                assert!(rewards.iter().all(|reward| reward.is_finite()));
            }
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let error = open_shaper(&ShaperConfig::new("potential")).unwrap_err();
        let told = error.to_string();
        assert!(told.starts_with("find reward shaper `potential`: known are "), "{told}");
        let mut config = ShaperConfig::new("length_discount");
        config.options.insert("facto".to_owned(), 0.9.into());
        let error = open_shaper(&config).unwrap_err();
        assert_eq!(
            error.to_string(),
            "use reward shaper `length_discount`: there is no option `facto`: options are `factor`"
        );
    }
}
