//! Which objective is minimised.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{Axis, Given, OptionSet, Options, Row, Table, to_options};

use super::policy_loss::{Beside, PolicyObjective};
use super::value_loss::WithValueLoss;
use super::{
    ALol, ALolOptions, Awr, AwrOptions, Cispo, CispoOptions, Clip, ClipCov, ClipCovOptions,
    ClipOptions, CorrectionOptions, Cpl, CplOptions, Denominator, DirectAdvantage,
    DirectAdvantageOptions, Disco, DiscoOptions, Dpo, DpoOptions, Dppo, DppoOptions, Dro,
    DroOptions, Drpo, DrpoOptions, EntropySmoothingOptions, FDpg, FDpgOptions, FiberPo,
    FiberPoOptions, Gmpo, GmpoOptions, Gspo, GspoOptions, Kdrl, KdrlOptions, Kimi, KimiOptions,
    KlCov, KlCovOptions, KlOptions, LossAggregation, MinPro, MinProOptions, Nft, NftOptions,
    Objective, Opmd, OpmdOptions, Pacs, PacsOptions, PolicyGradient, Rec, RecOptions, Refuel,
    RefuelOptions, ResamplingOptions, RlPlus, RlPlusOptions, SapoGate, SapoGateOptions,
    SelectionOptions, SignWeights, Sppo, SppoOptions, Supervised, Topr, ToprOptions,
    ValueLossOptions, ValuesAlone, Vespo, VespoOptions,
};
use crate::TrainerError;

/// Which objective is minimised, and how token losses become one number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ObjectiveConfig {
    /// Name of the objective; one in [`objective_registry`]. Default `clip`.
    pub name: String,
    /// How token losses become one number; `"token_mean"`, `"sample_mean"`, `"prompt_mean"`, `"token_sum"` or
    /// `{ sample_sum = { constant = 512.0 } }`. Default `"token_mean"`.
    pub aggregation: LossAggregation,
    /// Options of the named objective, such as those of [`ClipOptions`]. Default empty.
    #[schemars(with = "Options")]
    pub options: toml::Table,
    /// The loss of a value head, `{ weight = 0.5, clip = 0.2 }`, beside that of the named objective, where this trains a
    /// policy. Default absent: there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_loss: Option<ValueLossOptions>,
    /// What is done about the gap between the policy that sampled and the one that is trained, beside an objective of a
    /// policy. Default absent: ratios are relative to the policy that sampled, and nothing else is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correction: Option<CorrectionOptions>,
    /// A divergence from a reference model, `{ weight = 0.001, estimator = "k3" }`, beside an objective of a policy.
    /// Default absent: there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kl: Option<KlOptions>,
    /// Which tokens of an update are trained, `{ share = 0.2, by = "entropy" }`, beside an objective of a policy. Default
    /// absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection: Option<SelectionOptions>,
    /// An entropy bonus that keeps entropies near those of earlier rollouts (EPO), beside an objective of a policy. Default
    /// absent: there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entropy_smoothing: Option<EntropySmoothingOptions>,
    /// Draws the samples of an update again by how good or bad they are (PF-PPO), beside an objective of a policy. Default
    /// absent: they stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resampling: Option<ResamplingOptions>,
    /// What good and bad tokens weigh, `{ positive = 0.1, negative = 1.0 }` (NSR, W-REINFORCE), beside an objective of a
    /// policy. Default absent: the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sign_weights: Option<SignWeights>,
}

impl Default for ObjectiveConfig {
    fn default() -> Self {
        Self {
            name: "clip".to_owned(),
            aggregation: LossAggregation::default(),
            options: toml::Table::new(),
            value_loss: None,
            correction: None,
            kl: None,
            selection: None,
            entropy_smoothing: None,
            resampling: None,
            sign_weights: None,
        }
    }
}

/// Makes an objective from its options.
pub type OpenObjective = fn(&Given<'_>) -> Result<Box<dyn Objective>, TrainerError>;

/// An objective that has a name.
pub type ObjectiveRow = Row<OpenObjective>;

const AXIS: Axis =
    Axis { name: "objectives", what: "objective", about: "What training minimises." };

const ROWS: &[ObjectiveRow] = &[
    Row {
        name: "a_lol",
        about: "Offline: samples with a positive advantage, weighed by how likely they are beside a reference model.",
        source: "A-LoL, arXiv 2305.14718, equations 4 to 6",
        formula: "l = -sg[clip(pi / pi_ref)] A log pi where A > 0, else 0",
        options: OptionSet::of::<ALolOptions>(),
        open: |given| Ok(Box::new(ALol::new(given.read()?))),
    },
    Row {
        name: "awr",
        about: "Imitates all that was sampled, what was good more.",
        source: "advantage-weighted regression, arXiv 1910.00177, equation 8",
        formula: "l = -min(exp(A / beta), max_weight) log pi",
        options: OptionSet::of::<AwrOptions>(),
        open: |given| Ok(Box::new(Awr::new(given.read()?))),
    },
    Row {
        name: "cispo",
        about: "The policy gradient with clipped importance weights, through which no derivative goes.",
        source: "CISPO (MiniMax-M1), arXiv 2506.13585, equations 4, 5 and 7",
        formula: "l = -sg[clip(r, 1 - clip_low, 1 + clip_high)] A log pi; r = pi / pi_old",
        options: OptionSet::of::<CispoOptions>(),
        open: |given| Ok(Box::new(Cispo::new(given.read()?))),
    },
    Row {
        name: "clip",
        about: "The policy gradient, clipped token by token; with a reference model and an entropy bonus if asked.",
        source: "PPO, arXiv 1707.06347, equations 7 and 9; dual clip, arXiv 1912.09729; two sides: DAPO, arXiv \
                 2503.14476; k: GRPO, arXiv 2402.03300",
        formula: "l = max(-A r, -A clip(r, 1 - clip_low, 1 + clip_high)), at most -A dual_clip where A < 0; \
                  plus kl_weight k, less entropy_weight H; r = pi / pi_old",
        options: OptionSet::of::<ClipOptions>(),
        open: |given| Ok(Box::new(Clip::new(given.read()?))),
    },
    Row {
        name: "clip_cov",
        about: "The same without some of the tokens that would lower the entropy most.",
        source: "arXiv 2505.22617, equations 9 to 11",
        formula: "as `clip`, without a random share of the tokens with \
                  cov_low < (A_t - mean A) (log pi_t - mean log pi) < cov_high",
        options: OptionSet::of::<ClipCovOptions>(),
        open: |given| Ok(Box::new(ClipCov::new(given.read()?))),
    },
    Row {
        name: "disco",
        about: "Right answers are scored above wrong ones, within a bound on the divergence.",
        source: "DisCO, arXiv 2505.12366, equations 9 to 12, and its released code",
        formula: "-(mean_right s - tau log mean_wrong exp(s / tau)) + sg[beta max(0, KL - delta)] KL; s = mean_t log pi or mean_t r",
        options: OptionSet::of::<DiscoOptions>(),
        open: |given| Ok(Box::new(Disco::new(given.read()?))),
    },
    Row {
        name: "cpl",
        about: "Segments that were chosen become likelier than those that were rejected, without a reference model.",
        source: "CPL, arXiv 2310.13639, equations 5 and 7",
        formula: "-log sigmoid(s(chosen) - bias s(rejected)), s = alpha sum_t discount^turn(t) log pi",
        options: OptionSet::of::<CplOptions>(),
        open: |given| Ok(Box::new(Cpl::new(given.read()?))),
    },
    Row {
        name: "direct_advantage",
        about: "The log-ratio of every turn to a reference model is regressed onto the turn's advantage.",
        source: "DAPO (direct advantage policy optimisation), arXiv 2412.18279; reconstructed: the place of beta is assumed",
        formula: "1/2 (sum_{t in turn} log pi / pi_ref - A / beta)^2",
        options: OptionSet::of::<DirectAdvantageOptions>(),
        open: |given| Ok(Box::new(DirectAdvantage::new(given.read()?))),
    },
    Row {
        name: "dpo",
        about: "Answers that were chosen become likelier than those that were rejected, as a reference model sees both.",
        source: "DPO, arXiv 2305.18290, equation 7; IPO, arXiv 2310.12036, equation 17; f-DPO, arXiv 2309.16240, equation 11",
        formula: "-(1 - s) log sigmoid(beta h) - s log sigmoid(-beta h), or with `ipo` (h - 1 / (2 beta))^2; \
                  h = g(r(chosen)) - g(r(rejected)), r = sum_t log pi / pi_ref, g that of the divergence, g(r) = r by default",
        options: OptionSet::of::<DpoOptions>(),
        open: |given| Ok(Box::new(Dpo::new(given.read()?))),
    },
    Row {
        name: "dppo",
        about: "The policy gradient on tokens whose probability has not moved too far where their advantage sends it.",
        source: "DPPO, arXiv 2602.04879, sections 4 and 5.4",
        formula: "l = -A sg[min(r, max_ratio)] log pi where the divergence is within its bound, else 0",
        options: OptionSet::of::<DppoOptions>(),
        open: |given| Ok(Box::new(Dppo::new(given.read()?))),
    },
    Row {
        name: "dro",
        about: "The policy gradient with a square that holds the policy to the one that sampled.",
        source: "DRO, arXiv 2405.19107, its policy's part by tokens, as in verl",
        formula: "l = -A log pi + beta / 2 (log pi - log pi_old)^2",
        options: OptionSet::of::<DroOptions>(),
        open: |given| Ok(Box::new(Dro::new(given.read()?))),
    },
    Row {
        name: "drpo",
        about: "As disco, where short right answers weigh more than long ones.",
        source: "DRPO (decoupled reward policy optimisation), arXiv 2510.04474, equations 8 and 9, and its released code",
        formula: "as `disco`, right answers weighed by exp((1 - length / max_tokens) / lambda)",
        options: OptionSet::of::<DrpoOptions>(),
        open: |given| Ok(Box::new(Drpo::new(given.read()?))),
    },
    Row {
        name: "f_dpg",
        about: "The policy gradient that lessens a divergence from the reference model tilted by rewards.",
        source: "f-DPG, arXiv 2302.08215, theorem 1 and table 1",
        formula: "l = sg[f'(pi / p)] log pi, p = pi_ref exp(A / beta) / Z",
        options: OptionSet::of::<FDpgOptions>(),
        open: |given| Ok(Box::new(FDpg::new(given.read()?))),
    },
    Row {
        name: "fiberpo",
        about: "Gates on a sequence's ratio and on what tokens differ from it by; experimental.",
        source: "Fibration Policy Optimization, 2026; reconstructed from its abstract: geometric mean as the aggregate and plain clipping as the gates are assumed",
        formula: "l = -A clip(s, 1 +- base) clip(r / s, 1 +- fiber); s = exp(mean_t log r)",
        options: OptionSet::of::<FiberPoOptions>(),
        open: |given| Ok(Box::new(FiberPo::new(given.read()?))),
    },
    Row {
        name: "gmpo",
        about: "The policy gradient by the geometric mean of a sequence's ratios, each clipped first.",
        source: "GMPO, arXiv 2507.20673, equation 4",
        formula: "l = -mean_t(A) exp(mean_t clip(log r, -clip_low, clip_high)), clipped by the advantage's sign",
        options: OptionSet::of::<GmpoOptions>(),
        open: |given| Ok(Box::new(Gmpo::new(given.read()?))),
    },
    Row {
        name: "gspo",
        about: "The policy gradient, clipped by the ratio of whole sequences.",
        source: "GSPO, arXiv 2507.18071, equations 5, 7, 13 and 14",
        formula: "l = max(-A s, -A clip(s, 1 - clip_low, 1 + clip_high)); \
                  s = exp(1/|y| sum_t (log pi - log pi_old))",
        options: OptionSet::of::<GspoOptions>(),
        open: |given| Ok(Box::new(Gspo::new(given.read()?))),
    },
    Row {
        name: "kdrl",
        about: "The clipped objective, and the divergence from a teacher on what the policy sampled.",
        source: "KDRL, arXiv 2506.02208; reconstructed: the mask by the advantage's sign and a constant weight are assumed",
        formula: "l = l_clip + weight k(log pi, log pi_teacher)",
        options: OptionSet::of::<KdrlOptions>(),
        open: |given| Ok(Box::new(Kdrl::new(given.read()?))),
    },
    Row {
        name: "kimi",
        about: "Mirror descent: the policy gradient with a square of the sequence's log-ratio.",
        source: "Kimi k1.5, arXiv 2501.12599, equation 3",
        formula: "-A log pi(y) + tau / 2 (sum_t log pi / pi_old)^2",
        options: OptionSet::of::<KimiOptions>(),
        open: |given| Ok(Box::new(Kimi::new(given.read()?))),
    },
    Row {
        name: "kl_cov",
        about: "The policy gradient by ratios; tokens that would lower the entropy most are held back.",
        source: "arXiv 2505.22617, equations 9 and 12",
        formula: "l = -A r, plus weight |log r| for the share of tokens with the highest (A_t - mean A) (log pi_t - mean log pi)",
        options: OptionSet::of::<KlCovOptions>(),
        open: |given| Ok(Box::new(KlCov::new(given.read()?))),
    },
    Row {
        name: "minpro",
        about: "The clipped objective with the ratio of a token times the smallest one before it.",
        source: "A Step Back: Prefix Importance Ratio Stabilizes Policy Optimization, 2026; reconstructed from its abstract: that the minimum is a constant in PPO's clipped objective is assumed",
        formula: "l = max(-A w, -A clip(w, 1 - clip_low, 1 + clip_high)); w_t = r_t sg[min_{s<t} r_s]",
        options: OptionSet::of::<MinProOptions>(),
        open: |given| Ok(Box::new(MinPro::new(given.read()?))),
    },
    Row {
        name: "nft",
        about: "Right answers are imitated, wrong ones teach what is left of the policy without them.",
        source: "NFT, arXiv 2505.18116, equation 10 and algorithm 1, and its released code",
        formula: "right: -w log R; wrong: -w log max_v((1 - q R) / (1 - q), epsilon); R = pi / pi_old, q the rate of right answers",
        options: OptionSet::of::<NftOptions>(),
        open: |given| Ok(Box::new(Nft::new(given.read()?))),
    },
    Row {
        name: "opmd",
        about: "The policy gradient, divided by 1 + tau.",
        source: "OPMD, Trinity-RFT, arXiv 2505.17826, the simple form",
        formula: "l = -A log pi / (1 + tau)",
        options: OptionSet::of::<OpmdOptions>(),
        open: |given| Ok(Box::new(Opmd::new(given.read()?))),
    },
    Row {
        name: "pacs",
        about: "A classifier of right answers whose scores are the policy's.",
        source: "PACS, arXiv 2509.02522, equations 5 to 8, and its released code",
        formula: "cross-entropy of sigmoid(psi_i - mean_{j != i} psi_j); psi = beta sum_t log pi / pi_old",
        options: OptionSet::of::<PacsOptions>(),
        open: |given| Ok(Box::new(Pacs::new(given.read()?))),
    },
    Row {
        name: "policy_gradient",
        about: "The policy gradient without ratio or bounds.",
        source: "REINFORCE, Williams 1992; GPG, arXiv 2504.02546",
        formula: "l = -A log pi",
        options: OptionSet::NONE,
        open: |_| Ok(Box::new(PolicyGradient)),
    },
    Row {
        name: "rec",
        about: "REINFORCE off policy with clipping, weights and regularisers of one's choice.",
        source: "arXiv 2509.24203, as in Trinity-RFT",
        formula: "l = -w A log pi where trained, plus regularizer_weight times (log r)^2 or -log pi",
        options: OptionSet::of::<RecOptions>(),
        open: |given| Ok(Box::new(Rec::new(given.read()?))),
    },
    Row {
        name: "refuel",
        about: "Differences of log-ratios are regressed onto differences of returns.",
        source: "REFUEL, arXiv 2410.04612, equation 4, and its released code; REBEL, arXiv 2404.16767",
        formula: "mean over pairs of (X_i - X_j - eta (A_i - A_j))^2; X = sum_t log pi / pi_old",
        options: OptionSet::of::<RefuelOptions>(),
        open: |given| Ok(Box::new(Refuel::new(given.read()?))),
    },
    Row {
        name: "rl_plus",
        about: "PPO on own answers; what comes from outside by bounded weights, and more where the policy would not have gone.",
        source: "RL-PLUS, arXiv 2508.00222, reconstructed from its abstract; that bounds of the ratio do not apply outside is assumed",
        formula: "outside: l = -A (1 - sg[pi])^focus 2 pi / (omega + pi_old), omega = (pi_old + uniform) / 2; own: as `clip`",
        options: OptionSet::of::<RlPlusOptions>(),
        open: |given| Ok(Box::new(RlPlus::new(given.read()?))),
    },
    Row {
        name: "sapo_gate",
        about: "The policy gradient with a smooth gate on the ratio.",
        source: "SAPO (soft adaptive policy optimisation), arXiv 2511.20347",
        formula: "l = -A (4 / tau) sigmoid(tau (r - 1))",
        options: OptionSet::of::<SapoGateOptions>(),
        open: |given| Ok(Box::new(SapoGate::new(given.read()?))),
    },
    Row {
        name: "sppo",
        about: "The logarithm of the ratio in place of the ratio, where it is within bounds.",
        source: "sPPO of arXiv 2108.05828, by tokens, as in Trinity-RFT",
        formula: "l = -A log r for 1 / (1 + clip) <= r <= 1 + clip, else 0",
        options: OptionSet::of::<SppoOptions>(),
        open: |given| Ok(Box::new(Sppo::new(given.read()?))),
    },
    Row {
        name: "supervised",
        about: "Imitates what weighs in the cross-entropy: demonstrations, or the best of each group.",
        source: "cross-entropy; of groups CRR's binary filter, arXiv 2006.15134",
        formula: "l = -log pi",
        options: OptionSet::NONE,
        open: |_| Ok(Box::new(Supervised)),
    },
    Row {
        name: "topr",
        about: "REINFORCE on what others sampled: bad tokens are unlearned as far as the policy still does them.",
        source: "TOPR, arXiv 2503.14286, equation 8, by tokens",
        formula: "l = -A log pi where A > threshold, else -sg[min(r, 1)] A log pi",
        options: OptionSet::of::<ToprOptions>(),
        open: |given| Ok(Box::new(Topr::new(given.read()?))),
    },
    Row {
        name: "values_alone",
        about: "The policy is left alone, so that only a value head learns, by `value_loss`.",
        source: "own",
        formula: "l = 0",
        options: OptionSet::NONE,
        open: |_| Ok(Box::new(ValuesAlone)),
    },
    Row {
        name: "vespo",
        about: "The policy gradient with a smooth weight by the ratio of the whole sequence.",
        source: "VESPO, as in TRL",
        formula: "l = -sg[w^k exp(lambda (1 - w))] A log pi; w = prod_t r",
        options: OptionSet::of::<VespoOptions>(),
        open: |given| Ok(Box::new(Vespo::new(given.read()?))),
    },
];

static TABLE: Table<OpenObjective> = Table::new(AXIS, ROWS);

/// All objectives that have a name; a new one is a file in this folder and a row here.
pub fn objective_registry() -> &'static Table<OpenObjective> {
    &TABLE
}

impl ObjectiveConfig {
    /// Makes the objective.
    ///
    /// # Errors
    ///
    /// [`TrainerError::Row`] lists the known names; [`TrainerError::Config`] tells all
    /// that is wrong with the options.
    pub fn build(&self) -> Result<Box<dyn Objective>, TrainerError> {
        let row = objective_registry().find(&self.name)?;
        let mut problems = self.aggregation.problems();
        problems.extend(self.value_loss.iter().flat_map(ValueLossOptions::problems));
        problems.extend(self.correction.iter().flat_map(CorrectionOptions::problems));
        problems.extend(self.kl.iter().flat_map(KlOptions::problems));
        problems.extend(self.selection.iter().flat_map(SelectionOptions::problems));
        problems.extend(self.entropy_smoothing.iter().flat_map(EntropySmoothingOptions::problems));
        problems.extend(self.resampling.iter().flat_map(ResamplingOptions::problems));
        problems.extend(self.sign_weights.iter().flat_map(SignWeights::problems));
        let options = to_options(&self.options);
        let objective = match objective_registry().choose(row.name, &options) {
            Ok((row, given)) => (row.open)(&given)?,
            Err(error) => {
                problems.extend(error.problems());
                return Err(TrainerError::Config { problems });
            }
        };
        let tell = |problem| format!("{} `{}`: {problem}", AXIS.what, row.name);
        let of_objective = objective.aggregation_problems(self.aggregation);
        problems.extend(of_objective.into_iter().map(tell));
        if self.value_loss.is_some() && !objective.takes_value_loss() {
            let problem = "it takes no `value_loss`: it trains no policy by returns";
            problems.push(tell(problem.to_owned()));
        }
        let Self { correction, kl, selection, entropy_smoothing, resampling, .. } = self;
        let sign_weights = &self.sign_weights;
        if kl.is_some() && objective.needs().reference {
            problems.push(tell("it has a reference model of its own: leave out `kl`".to_owned()));
        }
        let divides_by_kept =
            correction.as_ref().is_some_and(|it| it.denominator == Denominator::Kept);
        if divides_by_kept && self.aggregation == LossAggregation::PromptMean {
            let problem = "correction.denominator `kept` is told by samples: leave it out with aggregation `prompt_mean`";
            problems.push(tell(problem.to_owned()));
        }
        if !problems.is_empty() {
            return Err(TrainerError::Config { problems });
        }
        let has_beside = correction.is_some()
            || kl.is_some()
            || selection.is_some()
            || entropy_smoothing.is_some()
            || resampling.is_some()
            || sign_weights.is_some();
        let objective = match has_beside {
            false => objective,
            true => {
                let Some(loss) = objective.into_policy_loss() else {
                    let problem = "it takes no `correction`, `kl`, `selection`, `entropy_smoothing`, `resampling` or `sign_weights`: it is no loss of a \
                                   policy by tokens";
                    return Err(TrainerError::Config { problems: vec![tell(problem.to_owned())] });
                };
                let beside = Beside {
                    correction: correction.clone(),
                    kl: kl.clone(),
                    selection: selection.clone(),
                    entropy_smoothing: entropy_smoothing.clone(),
                    resampling: resampling.clone(),
                    sign_weights: sign_weights.clone(),
                };
                Box::new(PolicyObjective::new(loss, beside))
            }
        };
        Ok(match &self.value_loss {
            None => objective,
            Some(options) => Box::new(WithValueLoss::new(objective, options.clone())),
        })
    }

    /// All that is wrong with the values; empty when nothing is.
    pub fn problems(&self) -> Vec<String> {
        self.build().err().map(|error| error.problems()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_not_counted_by_prompt() {
        let config = |denominator: &str| -> ObjectiveConfig {
            let reject = "reject = [{ statistic = 'k2', upper = 0.1 }]";
            let correction = format!("{{ denominator = '{denominator}', {reject} }}");
            toml::from_str(&format!("aggregation = 'prompt_mean'\ncorrection = {correction}"))
                .unwrap()
        };
        assert_eq!(config("all").problems(), [""; 0]);
        let [problem] = &config("kept").problems()[..] else { panic!("one problem") };
        assert!(problem.contains("`prompt_mean`"), "{problem}");
    }

    #[test]
    fn every_name_builds_its_objective() {
        for name in objective_registry().iter().map(|row| row.name) {
            let config = crate::testing::default_config(name);
            assert_eq!(config.build().unwrap().name(), name);
            let row = objective_registry().find(name).unwrap();
            assert_eq!(row.problems(), [""; 0], "{name}");
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let config: ObjectiveConfig = toml::from_str("name = \"clop\"").unwrap();
        let [problem] = &config.problems()[..] else { panic!("one problem") };
        assert!(problem.starts_with("find objective `clop`: known are `clip`,"), "{problem}");
        for row in objective_registry() {
            assert!(problem.contains(&format!("`{}`", row.name)), "{problem}");
        }
    }

    #[test]
    fn the_page_on_objectives_has_a_row_for_each() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/objectives.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (page, _) = page.split_once("## Beside an objective").unwrap();
        let name = |line: &'_ str| -> Option<String> {
            Some(line.strip_prefix("| `")?.split('`').next()?.to_owned())
        };
        let names: Vec<String> = page.lines().filter_map(name).collect();
        for row in objective_registry() {
            let told = names.iter().filter(|name| **name == row.name).count();
            assert_eq!(told, 1, "`{}` in docs/objectives.md", row.name);
        }
        assert_eq!(names.len(), objective_registry().iter().count(), "{names:?}");
    }

    #[test]
    fn what_stands_beside_an_objective_is_checked() {
        let problems = |text: &str| toml::from_str::<ObjectiveConfig>(text).unwrap().problems();
        for row in objective_registry() {
            let text = format!(
                "name = '{}'\naggregation = {}\nkl = {{ weight = 0.1, estimator = 'k1+' }}\n\
                 selection = {{ share = 0.5 }}\ncorrection = {{ importance = {{ upper = 2.0 }}, \
                 reject = [{{ statistic = 'k3', of_sample = 'mean', upper = 0.1 }}] }}",
                row.name,
                if row.name == "gmpo" { "'sample_mean'" } else { "'token_mean'" },
            );
            let found = problems(&text);
            let takes_none =
                ["a_lol", "cpl", "direct_advantage", "dpo", "f_dpg", "kdrl", "supervised"]
                    .contains(&row.name);
            assert_eq!(found.len(), usize::from(takes_none), "{}: {found:?}", row.name);
        }
        let wrong = "correction = { importance = { upper = -1, lower = -2, outside = 'zero' }, \
                     off_policy_mask = -1, denominator = 'kept', learning_rate = { base = 2 } }\n\
                     kl = { weight = 0, adaptive = { target = 0 } }\nselection = { share = 2 }\n\
                     entropy_smoothing = { weight = 0, high = 0.5 }\nresampling = { power = 0 }";
        assert_eq!(problems(wrong).len(), 11);
        let own = "options = { kl_weight = 0.1 }\nkl = {}";
        assert!(problems(own)[0].contains("leave out `kl`"));
    }

    #[test]
    fn all_problems_are_told_at_once() {
        let config: ObjectiveConfig = toml::from_str(
            "aggregation = { sample_sum = { constant = 0 } }
             options = { clip_low = 2, dual_clip = 0.5 }",
        )
        .unwrap();
        assert_eq!(config.problems().len(), 3);
        let config: ObjectiveConfig =
            toml::from_str("name = 'supervised'\noptions = { clip_low = 0.2 }").unwrap();
        assert_eq!(
            config.problems(),
            ["objective `supervised`: there is no option `clip_low`: it has no options"]
        );
        assert!(toml::from_str::<ObjectiveConfig>("nam = 'clip'").is_err());
    }
}
