//! The advantage estimators that have a name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{Axis, Given, OptionSet, Options, Row, Table};

use super::{
    Ace, AceConfig, AdvantageEstimator, Archer, ArcherConfig, Arpo, ArpoConfig, ByHint,
    ByHintConfig, Copo, CopoConfig, CreditError, Duration, DurationConfig, FusedPrior,
    FusedPriorConfig, Gae, GaeConfig, Gdpo, GdpoConfig, Gigpo, GigpoConfig, Gpg, GpgConfig, Graft,
    GraftConfig, GraphGpo, GraphGpoConfig, Grpo, GrpoConfig, GrpoPassk, GrpoPasskConfig, Hgpo,
    HgpoConfig, Mars, MarsConfig, McGrpo, McGrpoConfig, Opo, OpoConfig, OptimalTokenBaseline,
    OptimalTokenBaselineConfig, Polychromic, PolychromicConfig, PsrNsr, PsrNsrConfig, R3l,
    R3lConfig, ReinforcePp, ReinforcePpConfig, Remax, Rloo, RlooConfig, Rtmc, RtmcConfig, Salt,
    SaltConfig, Spa, SpaConfig, SpaReleased, SpaReleasedConfig, TreePs, TreePsConfig, UiS1,
    UiS1Config, Xrpo, XrpoConfig,
};

/// Which estimator, with which options.
///
/// ```
/// use spar_agent::credit::{CreditConfig, open_estimator};
///
/// let config: CreditConfig = serde_json::from_str(r#"{ "kind": "gigpo", "discount": 0.9 }"#)?;
/// assert_eq!(open_estimator(&config).unwrap().name(), "gigpo");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CreditConfig {
    /// The estimator's name.
    pub kind: String,
    /// Its options; those left out have the defaults its config documents.
    #[serde(flatten)]
    pub options: Options,
}

impl CreditConfig {
    /// The estimator `kind` with its default options.
    pub fn new(kind: impl Into<String>) -> Self {
        Self { kind: kind.into(), options: Options::new() }
    }
}

impl Default for CreditConfig {
    /// `grpo` with its default options.
    fn default() -> Self {
        Self::new("grpo")
    }
}

/// Makes an estimator from its options.
pub type OpenEstimator = fn(&Given<'_>) -> Result<Box<dyn AdvantageEstimator>, CreditError>;

/// An estimator that has a name.
pub type EstimatorRow = Row<OpenEstimator>;

pub(super) const AXIS: Axis = Axis {
    name: "credit",
    what: "advantage estimator",
    about: "How advantages are assigned to steps.",
};

const ROWS: &[EstimatorRow] = &[
    Row {
        name: "grpo",
        about: "Every step takes its trajectory's advantage among the group.",
        source: "DeepSeekMath, arXiv 2402.03300, section 4.1.2; `mean_norm`: Dr.GRPO, arXiv 2503.20783; deviation of the \
                 batch: arXiv 2508.08221, TRL",
        formula: "A_i = (R_i - mean R) / (std R + epsilon), the same for every step of trajectory i; \
                  with `mean_norm` A_i = R_i - mean R",
        options: OptionSet::of::<GrpoConfig>(),
        open: |given| Ok(Box::new(Grpo::new(given.read()?)?)),
    },
    Row {
        name: "gigpo",
        about: "Adds the advantage among all steps that were taken in the same state.",
        source: "GiGPO, arXiv 2505.10978",
        formula: "A = A_episode + step_weight * A_step; A_step compares ret_t = r_t + discount * ret_{t+1} \
                  with those of all steps of the group from the same state",
        options: OptionSet::of::<GigpoConfig>(),
        open: |given| Ok(Box::new(Gigpo::new(given.read()?)?)),
    },
    Row {
        name: "salt",
        about: "Equal transitions share their advantage: SALT reconstructed from summaries of it.",
        source: "SALT, arXiv 2510.20022, reconstructed from GRAFT's appendix on it; assumed: the base is GRPO, \
                 `history_window`, and that the mean runs over occurrences",
        formula: "A_t = mean of A_grpo over all steps of the group with the same (state, action, next state)",
        options: OptionSet::of::<SaltConfig>(),
        open: |given| Ok(Box::new(Salt::new(given.read()?)?)),
    },
    Row {
        name: "gae",
        about: "What was earned over what a value head expected, by token or by turn.",
        source: "GAE, arXiv 1506.02438, equation 16; `bi_level`: RAGEN's code, arXiv 2504.20073",
        formula: "delta_t = r_t + discount * V_{t+1} - V_t; A_t = delta_t + discount * lambda * A_{t+1}; \
                  return_t = A_t + V_t",
        options: OptionSet::of::<GaeConfig>(),
        open: |given| Ok(Box::new(Gae::new(given.read()?)?)),
    },
    Row {
        name: "reinforce_pp",
        about: "Every token takes what was earned from it on, normalised over the batch.",
        source: "REINFORCE++, arXiv 2501.03262",
        formula: "G_k = r_k + discount * G_{k+1}, or R_i - mean R with baseline `group`; \
                  A = (G - mean G) / std G over the tokens of the batch",
        options: OptionSet::of::<ReinforcePpConfig>(),
        open: |given| Ok(Box::new(ReinforcePp::new(given.read()?)?)),
    },
    Row {
        name: "spa",
        about: "What a turn contributed to the outcome, as a predictor of progress sees it.",
        source: "SPA-RL, arXiv 2505.20732, section 3; reconstructed, assumed: sums to come are compared over the batch \
                 in place of PPO's baseline per step",
        formula: "r_t = progress_weight * c_t + grounding_weight * g_t; G_t = r_t + discount * G_{t+1}; \
                  A = (G - mean G) / std G over the turns of the batch",
        options: OptionSet::of::<SpaConfig>(),
        open: |given| Ok(Box::new(Spa::new(given.read()?)?)),
    },
    Row {
        name: "archer",
        about: "How much better a turn is than the situation before it, by a critic of turns.",
        source: "ArCHer, arXiv 2402.19446, and its code (`archer/algorithms/archer/trainer.py`); reconstructed, assumed: \
                 turns that were played are judged, not fresh ones",
        formula: "A_t = min(Q_1, Q_2)(s_t, a_t) - min(V_1, V_2)(s_t)",
        options: OptionSet::of::<ArcherConfig>(),
        open: |given| Ok(Box::new(Archer::new(given.read()?))),
    },
    Row {
        name: "grpo_passk",
        about: "The best of a group takes what it is ahead of the second; the others nothing.",
        source: "arXiv 2503.19595, and verl's `compute_grpo_passk_outcome_advantage`",
        formula: "A = (R_first - R_second) / (std R + epsilon) for the best trajectory of a group, 0 for the others",
        options: OptionSet::of::<GrpoPasskConfig>(),
        open: |given| Ok(Box::new(GrpoPassk::new(given.read()?)?)),
    },
    Row {
        name: "rloo",
        about: "Every step takes what its trajectory earned over the mean of the others.",
        source: "RLOO, arXiv 2402.14740, equation 8",
        formula: "A_i = R_i - 1 / (n - 1) sum over the others of R_j",
        options: OptionSet::of::<RlooConfig>(),
        open: |given| Ok(Box::new(Rloo::new(given.read()?))),
    },
    Row {
        name: "remax",
        about: "What is still to come, over what the greedy episode of the task earned.",
        source: "ReMax, arXiv 2310.10505, algorithm 2, in verl's form",
        formula: "A_t = sum_{s >= t} r_s - R(greedy)",
        options: OptionSet::NONE,
        open: |_| Ok(Box::new(Remax::default())),
    },
    Row {
        name: "opo",
        about: "Returns over a mean in which long trajectories weigh more.",
        source: "OPO, arXiv 2505.23585, in verl's form",
        formula: "A_i = R_i - sum_j len_j R_j / sum_j len_j over the group",
        options: OptionSet::of::<OpoConfig>(),
        open: |given| Ok(Box::new(Opo::new(given.read()?))),
    },
    Row {
        name: "gpg",
        about: "Returns over the group's mean, scaled up where few trajectories earned anything.",
        source: "GPG, arXiv 2504.02546, in verl's form",
        formula: "A_i = alpha (R_i - mean R) / norm, alpha = trajectories / trajectories whose return is not 0",
        options: OptionSet::of::<GpgConfig>(),
        open: |given| Ok(Box::new(Gpg::new(given.read()?)?)),
    },
    Row {
        name: "gdpo",
        about: "Every part of the reward is normalised by itself before they are added.",
        source: "GDPO, arXiv 2601.05242; over tokens as verl, over trajectories as TRL",
        formula: "A_i = N(sum_k w_k (R_ik - mean R_k) / (std R_k + epsilon)), N over the batch",
        options: OptionSet::of::<GdpoConfig>(),
        open: |given| Ok(Box::new(Gdpo::new(given.read()?)?)),
    },
    Row {
        name: "mc_grpo",
        about: "Returns over the group's median, whose own trajectory is left out.",
        source: "MC-GRPO, arXiv 2601.22582, and its code (`grpo_trainer_gsm.py`)",
        formula: "A_i = (R_i - median R) / (scale + epsilon) * n / (advantages that are not 0)",
        options: OptionSet::of::<McGrpoConfig>(),
        open: |given| Ok(Box::new(McGrpo::new(given.read()?)?)),
    },
    Row {
        name: "hgpo",
        about: "Compares steps within groups of ever longer equal histories.",
        source: "HGPO, ICLR 2026, and its code (`recipe/hgpo/core_hgpo.py`)",
        formula: "A = sum_k w_k a_k / (sum_k w_k + epsilon), w_k = (k + 1)^alpha, over the levels with a_k other than 0; a_k compares \
                  discounted returns of the steps whose last k situations are the same",
        options: OptionSet::of::<HgpoConfig>(),
        open: |given| Ok(Box::new(Hgpo::new(given.read()?)?)),
    },
    Row {
        name: "mars",
        about: "Rewards of turns are normalised seat by seat, and a token takes what is still to come.",
        source: "MARS, arXiv 2510.15414, and its code (`roll/utils/functionals.py`)",
        formula: "r' = (r - mean) / (std + 1e-6) over all turns of a seat; A_k = r'_k + discount * A_{k+1} over tokens",
        options: OptionSet::of::<MarsConfig>(),
        open: |given| Ok(Box::new(Mars::new(given.read()?)?)),
    },
    Row {
        name: "r3l",
        about: "What succeeded counts more than what did not: positive amplification.",
        source: "R3L, arXiv 2601.03715, and its code (`multi_step_grpo_advantage.py`)",
        formula: "A_i = 1 where R_i >= success; amplification (R_i - b) where that is not negative; otherwise R_i - b",
        options: OptionSet::of::<R3lConfig>(),
        open: |given| Ok(Box::new(R3l::new(given.read()?)?)),
    },
    Row {
        name: "ui_s1",
        about: "Compares steps at the same place of a demonstration; what follows a mismatch does not count for it.",
        source: "UI-S1, arXiv 2509.11543, and its code (`uis1/core_uis1.py`)",
        formula: "A = episode_weight A_episode + step_weight A_step; A_step compares ret_t = r_t + discount * ret_{t+1}, cut at mismatches, \
                  among the steps of number t",
        options: OptionSet::of::<UiS1Config>(),
        open: |given| Ok(Box::new(UiS1::new(given.read()?)?)),
    },
    Row {
        name: "psr_nsr",
        about: "What samples that succeeded and what those that failed teach, apart or weighed.",
        source: "PSR, NSR and W-REINFORCE, arXiv 2506.01347, and its code (`core_algos.py`)",
        formula: "positive: G_t; negative: G_t - 1; weighted: positive_weight G_t of what earned something, otherwise G_t - 1",
        options: OptionSet::of::<PsrNsrConfig>(),
        open: |given| Ok(Box::new(PsrNsr::new(given.read()?)?)),
    },
    Row {
        name: "optimal_token_baseline",
        about: "Every token takes what is still earned, over the baseline of least variance.",
        source: "the optimal token baseline, in the form of verl's `compute_multi_turn_optimal_token_baseline_advantage`",
        formula: "w_t = 1 - 2 pi_t + sum_v pi_v^2, W_t = w_1 + ... + w_t; A_t = G_t - sum_i G_it W_it / (sum_i W_it + epsilon)",
        options: OptionSet::of::<OptimalTokenBaselineConfig>(),
        open: |given| Ok(Box::new(OptimalTokenBaseline::new(given.read()?)?)),
    },
    Row {
        name: "spa_released",
        about: "What SPA-RL's released script computes in place of predicted progress.",
        source: "SPA-RL's code (`prm/rl_data_org.py`), which leaves out what arXiv 2505.20732 says",
        formula: "A_t = R_i - mean of the other R of the group + grounding where the action was executed or the step is the last",
        options: OptionSet::of::<SpaReleasedConfig>(),
        open: |given| Ok(Box::new(SpaReleased::new(given.read()?)?)),
    },
    Row {
        name: "arpo",
        about: "Branches have GRPO's advantage, and turns that they have in common all of theirs or their mean.",
        source: "ARPO, arXiv 2507.19849, section 3.3",
        formula: "soft: A_leaf in all of its turns; hard: 1/d sum of A_leaf over the d leaves behind a turn",
        options: OptionSet::of::<ArpoConfig>(),
        open: |given| Ok(Box::new(Arpo::new(given.read()?)?)),
    },
    Row {
        name: "tree_ps",
        about: "A step is worth how much better the leaves behind it are than those behind the step before.",
        source: "TreePS-RAG, arXiv 2601.06922, reconstructed; assumed: the formula of advantages, after TreeRL",
        formula: "V(n) = mean return of the leaves behind n; A(n) = local_weight (V(n) - V(parent)) + global_weight (V(n) - V(root))",
        options: OptionSet::of::<TreePsConfig>(),
        open: |given| Ok(Box::new(TreePs::new(given.read()?)?)),
    },
    Row {
        name: "graph_gpo",
        about: "A step is worth how much nearer to success it leads than others from the same situation.",
        source: "GraphGPO, reconstructed from GRAFT's appendix on it; assumed: that steps are compared by where they lead, and the defaults",
        formula: "r(s, s') = success_reward * decay^d(s'), d the fewest steps to a success; A = (r - mean) / (std + epsilon) over steps from s",
        options: OptionSet::of::<GraphGpoConfig>(),
        open: |given| Ok(Box::new(GraphGpo::new(given.read()?)?)),
    },
    Row {
        name: "rtmc",
        about: "A step is worth the mean return of its like over that of its situation.",
        source: "RTMC, reconstructed from GRAFT's appendix on it; assumed: the default discount",
        formula: "A(s, a) = Q(s, a) - V(s), means of ret_t = r_t + discount * ret_{t+1} over the group's steps of (s, a) and of s",
        options: OptionSet::of::<RtmcConfig>(),
        open: |given| Ok(Box::new(Rtmc::new(given.read()?)?)),
    },
    Row {
        name: "graft",
        about: "Values by Bellman's equation on the graph that a group has walked, and steps by what they change of them.",
        source: "GRAFT, reconstructed from summaries of it; assumed: the default discount, and no averaging over several steps ahead",
        formula: "V(s) = mean of r + discount * V(s') over the group's steps from s; A = r + discount * V(s') - V(s)",
        options: OptionSet::of::<GraftConfig>(),
        open: |given| Ok(Box::new(Graft::new(given.read()?)?)),
    },
    Row {
        name: "ace",
        about: "Errors that the policy has become sure of weigh more.",
        source: "ACE, arXiv 2602.21420, reconstructed from its abstract; assumed: the form of the factor, and confidence per token",
        formula: "A_i (1 + strength softplus(c_i)) where A_i < 0, c_i = mean of log pi - log pi_ref over tokens; otherwise A_i of GRPO",
        options: OptionSet::of::<AceConfig>(),
        open: |given| Ok(Box::new(Ace::new(given.read()?)?)),
    },
    Row {
        name: "xrpo",
        about: "Successes that the policy finds unlikely weigh more.",
        source: "XRPO, arXiv 2510.06672, its sharpening, reconstructed from its abstract and a summary",
        formula: "A_i (1 + min(max(strength (e^{mean s - s_i} - 1), 0), most)) where A_i > 0, s_i = mean log pi over tokens; otherwise A_i of GRPO",
        options: OptionSet::of::<XrpoConfig>(),
        open: |given| Ok(Box::new(Xrpo::new(given.read()?)?)),
    },
    Row {
        name: "by_hint",
        about: "Trajectories that were helped, and those that were not, are compared among themselves.",
        source: "ADHint, reconstructed from its abstract; assumed: a constant weight of helped ones",
        formula: "A_i = (R_i - mean) / std over the helped, or over the others, of its group; helped ones weigh hinted_weight",
        options: OptionSet::of::<ByHintConfig>(),
        open: |given| Ok(Box::new(ByHint::new(given.read()?)?)),
    },
    Row {
        name: "copo",
        about: "A group whose outcomes are all alike learns from how it stands in the batch.",
        source: "COPO, arXiv 2508.04138, reconstructed from its abstract; assumed: both parts, the sigmoid and its defaults",
        formula: "A = w A_local + (1 - w) A_global, w = sigmoid(steepness (entropy of outcomes - middle))",
        options: OptionSet::of::<CopoConfig>(),
        open: |given| Ok(Box::new(Copo::new(given.read()?)?)),
    },
    Row {
        name: "polychromic",
        about: "By the sets that a trajectory is in: what they earn, times how different they are.",
        source: "Polychromic objectives, arXiv 2509.25424, reconstructed from its abstract; assumed: the share of distinct trajectories, over all sets",
        formula: "A_i = E[f(S) | i in S] - mean_k E[f(S) | k in S], f(S) = mean R * distinct / n",
        options: OptionSet::of::<PolychromicConfig>(),
        open: |given| Ok(Box::new(Polychromic::new(given.read()?)?)),
    },
    Row {
        name: "v0_5",
        about: "Over a baseline that weighs a prior of success against the mean of few rollouts.",
        source: "V_0.5, arXiv 2603.10848, reconstructed from its abstract and a summary; assumed: how far the prior is off is told by the batch",
        formula: "A = R - (w v + (1 - w) m), w = noise / (noise + bias^2), noise = v (1 - v) / n, bias^2 = max(0, mean((m - v)^2 - noise))",
        options: OptionSet::of::<FusedPriorConfig>(),
        open: |given| Ok(Box::new(FusedPrior::new(given.read()?))),
    },
    Row {
        name: "duration",
        about: "Trajectories weigh as long as they took, so that what is quick is not learned for being quick.",
        source: "arXiv 2509.01684, reconstructed from its abstract; assumed: weights of whole trajectories by wall time, and their bound",
        formula: "weight_i = min(dt_i / mean dt, max_weight), with GRPO's advantage",
        options: OptionSet::of::<DurationConfig>(),
        open: |given| Ok(Box::new(Duration::new(given.read()?)?)),
    },
];

static TABLE: Table<OpenEstimator> = Table::new(AXIS, ROWS);

/// All estimators that have a name; a new one is one file and one row here.
pub fn credit_registry() -> &'static Table<OpenEstimator> {
    &TABLE
}

/// Makes an estimator.
///
/// # Errors
///
/// [`CreditError::Row`] when no estimator has the name, or it does not have the options.
pub fn open_estimator(config: &CreditConfig) -> Result<Box<dyn AdvantageEstimator>, CreditError> {
    let (row, given) = credit_registry().choose(&config.kind, &config.options)?;
    (row.open)(&given)
}

#[cfg(test)]
mod tests {
    use spar_core::registry::AnyTable;
    use spar_core::{Signal, SignalError, Signals};

    use super::super::BatchView;
    use super::super::test_vectors::{signals_of, small_group, to_view};
    use super::*;

    fn error(config: &str) -> String {
        open_estimator(&serde_json::from_str(config).unwrap()).err().unwrap().to_string()
    }

    #[test]
    fn every_row_says_what_it_has_to() {
        assert_eq!(AnyTable::problems(credit_registry()), [""; 0]);
    }

    #[test]
    fn every_estimator_opens_and_keeps_the_shape() {
        let first = small_group(vec![vec![(0, 0, 1.0), (1, 0, 0.0)], vec![], vec![(0, 1, 0.5)]]);
        let second = small_group(vec![vec![(2, 0, 1.0)], vec![(2, 0, 0.0)]]);
        let batch: BatchView<'_> = [&first, &second].into_iter().map(to_view).collect();
        for entry in credit_registry() {
            let estimator = open_estimator(&CreditConfig::new(entry.name)).unwrap();
            assert_eq!(estimator.name(), entry.name);
            let signals = signals_of(estimator.as_ref(), &batch);
            let credit = estimator.estimate(&batch, &signals).unwrap();
            assert_eq!(credit.check(&batch.num_tokens()), Ok(()), "{}", entry.name);
            assert_eq!(credit.returns.is_some(), estimator.gives_returns(), "{}", entry.name);
            let nothing = estimator.estimate(&BatchView::default(), &signals_of_nothing());
            assert_eq!(nothing.unwrap().check(&[]), Ok(()), "{}", entry.name);
            if let Some(&signal) = estimator.needs().first() {
                let error = estimator.estimate(&batch, &Signals::default()).unwrap_err();
                assert!(matches!(
                    error,
                    CreditError::Signal(SignalError::Absent { signal: absent }) if absent == signal
                ));
            }
        }
    }

    fn signals_of_nothing() -> Signals {
        let mut signals = Signals::default();
        Signal::ALL.into_iter().for_each(|signal| signals.insert(signal, Vec::new()));
        signals
    }

    /// A recorded group: the first trajectory walks, sums up under this key and wins; the second walks and loses.
    fn group_with_summary(key: &str) -> spar_core::Group {
        use crate::samples::test_trajectories::{sampled, trajectory, turn};
        use spar_core::{ParsedAction, RewardPart, TurnKind};
        let step = |state: &str, next: &str, text: &str, reward: f64| {
            let mut turn = turn(0, &[1], sampled(&[2, 3], &[]));
            (turn.state_key, turn.parsed) = (state.to_owned(), ParsedAction::of(text));
            turn.step.observation.state_key = next.to_owned();
            turn.step.rewards = vec![RewardPart { name: "success".to_owned(), value: reward }];
            turn
        };
        let mut summary = step(key, "yard", "", 0.0);
        summary.kind = TurnKind::Summary;
        summary.parsed = ParsedAction::Invalid { reason: "it is a summary".to_owned() };
        summary.step.rewards.clear();
        let won = vec![step("hall", "yard", "go", 0.0), summary, step("yard", "gate", "go", 1.0)];
        let lost = vec![step("hall", "yard", "go", 0.0), step("yard", "hall", "turn", 0.0)];
        let mut trajectories = vec![trajectory(won), trajectory(lost)];
        trajectories[1].episode += 1;
        spar_core::Group { task: "t".to_owned(), trajectories }
    }

    #[test]
    fn summaries_share_in_the_outcome_and_are_compared_with_no_action() {
        for entry in credit_registry() {
            let mut config = CreditConfig::new(entry.name);
            if entry.name == "gae" {
                config.options.insert("normalize".to_owned(), false.into());
            }
            let estimator = open_estimator(&config).unwrap();
            let estimate = |key: &str| {
                let groups = [group_with_summary(key)];
                let batch = BatchView::shaped(&groups, &spar_tasks::RewardShapers::default());
                let signals = signals_of(estimator.as_ref(), &batch);
                let credit = estimator.estimate(&batch, &signals).unwrap();
                credit.advantages.into_tokens(&batch.num_tokens())
            };
            let found = estimate(&spar_core::Turn::summary_key("yard"));
            assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [6, 4], "{}", entry.name);
            assert!(found.iter().flatten().all(|value| value.is_finite()), "{}", entry.name);
            // Where predictors say what turns were worth, the outcome itself is not asked, nor where only steps of one
            // situation are compared.
            let predicted = [Signal::Progress, Signal::ActionValues, Signal::StateValues];
            let by_state = ["hgpo", "graph_gpo", "rtmc", "graft"].contains(&entry.name);
            // All of a group of two is one set.
            let by_set = entry.name == "polychromic";
            // Nothing was played to compare with.
            let by_greedy = entry.name == "remax";
            if !by_state
                && !by_greedy
                && !by_set
                && !estimator.needs().iter().any(|signal| predicted.contains(signal))
            {
                let of_summary = &found[0][2..4];
                assert!(of_summary.iter().all(|it| *it > 0.0), "{}: {found:?}", entry.name);
            }
            assert_eq!(found, estimate("a situation that comes nowhere else"), "{}", entry.name);
        }
        // Were it an action in the yard, others would be compared with it.
        let gigpo = open_estimator(&CreditConfig::new("gigpo")).unwrap();
        let estimate = |key: &str| {
            let groups = [group_with_summary(key)];
            let batch = BatchView::shaped(&groups, &spar_tasks::RewardShapers::default());
            gigpo.estimate(&batch, &Signals::default()).unwrap().advantages
        };
        assert_ne!(estimate("yard"), estimate(&spar_core::Turn::summary_key("yard")));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let unknown = error(r#"{ "kind": "gigo" }"#);
        assert!(
            unknown.starts_with("find advantage estimator `gigo`: known are `gigpo`, "),
            "{unknown}"
        );
        assert!(unknown.contains("`salt`") && unknown.contains("`hgpo`"), "{unknown}");
        let told = error(r#"{ "kind": "grpo", "discount": 1, "epsilon": "small" }"#);
        assert!(told.contains("no option `discount`") && told.contains("epsilon: invalid type"));
        assert!(error(r#"{ "kind": "salt", "base": { "w": 1 } }"#).contains("unknown field `w`"));
        let range = error(r#"{ "kind": "gigpo", "discount": 2, "epsilon": 0 }"#);
        assert!(range.contains("discount is 2") && range.contains("epsilon is 0"));
    }
}
