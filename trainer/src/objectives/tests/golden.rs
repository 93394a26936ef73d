//! Golden numbers of public reference implementations.

use serde_json::Value;

use super::super::policy_loss::Beside;
use super::rows::Streams;
use crate::objectives::correction::{ImportanceLevel, ImportanceOptions, Outside};
use crate::objectives::correction::{Rejected, RejectionOptions, SampleStatistic, Statistic};
use crate::objectives::{
    AnswerScore, BatchWeight, BoundedDivergence, Cispo, CispoOptions, Clip, ClipCov,
    ClipCovOptions, ClipOptions, CorrectionOptions, Denominator, Disco, DiscoOptions, Divergence,
    Dppo, DppoOptions, Dro, DroOptions, Drpo, DrpoOptions, EffectiveSize, Gmpo, GmpoOptions, Gspo,
    GspoOptions, Kimi, KimiOptions, KlCov, KlCovOptions, KlEstimator, KlOptions,
    LearningRateOptions, LearningRateRule, LossAggregation, Opmd, OpmdOptions, PolicyGradient,
    PolicyLoss, PolicyTokens, Rec, RecClip, RecOptions, RecRegularizer, RecWeight, SapoGate,
    SapoGateOptions, Sppo, SppoOptions, Tally, Topr, ToprOptions, Vespo, VespoOptions,
    off_policy_metrics,
};
use crate::testing::{Case, batch_of, each_case, matrix, number, vector};

/// What references add to denominators and arguments of logarithms.
const GUARDED: f64 = 3e-8;

/// Either side's clip range, or that of both.
fn side(case: &Case, name: &str) -> f64 {
    case.param(name).or_else(|| case.param("clip_ratio")).unwrap()
}

fn sides(case: &Case) -> (f64, f64) {
    (side(case, "clip_ratio_low"), side(case, "clip_ratio_high"))
}

/// Compares an objective with all cases of a file that gives a loss and its gradient.
fn compare<L: PolicyLoss>(name: &str, tolerance: f64, make: impl Fn(&Case) -> L) {
    each_case(name, |case| {
        let found = Streams::of(&case.inputs).evaluate_as(case, &make(case), &Beside::default());
        found.assert_equals(case, tolerance);
    });
}

fn clip(case: &Case) -> Clip {
    let (clip_low, clip_high) = sides(case);
    let dual_clip = case.param("clip_ratio_c");
    Clip::new(ClipOptions { clip_low, clip_high, dual_clip, ..ClipOptions::default() })
}

#[test]
fn clip_equals_the_golden_numbers() {
    compare("loss_ppo_vanilla", GUARDED, clip);
    each_case("loss_ppo_vanilla", |case| {
        let streams = Streams::of(&case.inputs);
        let found = streams.evaluate_as(case, &clip(case), &Beside::default()).tally.values();
        let metrics = &case.outputs["metrics"];
        let same = [
            ("clip_fraction", "actor/pg_clipfrac"),
            ("clip_fraction_dual", "actor/pg_clipfrac_lower"),
            ("kl_k1", "actor/ppo_kl"),
        ];
        for (ours, theirs) in same {
            case.assert_near(found[ours], number(&metrics[theirs]), 1e-7);
        }
    });
}

#[test]
fn gspo_equals_the_golden_numbers() {
    each_case("loss_gspo", |case| {
        let (clip_low, clip_high) = sides(case);
        let gspo = Gspo::new(GspoOptions { clip_low, clip_high, ..GspoOptions::default() });
        let streams = Streams::of(&case.inputs);
        let (mode, batch) = (LossAggregation::SampleMean, batch_of(&streams.mask));
        streams.evaluate(&gspo, &Beside::default(), mode, batch).assert_equals(case, GUARDED);
    });
}

#[test]
fn cispo_equals_the_golden_numbers() {
    compare("loss_cispo", GUARDED, |case| {
        let (low, clip_high) = sides(case);
        // A bound below 0 is none.
        let clip_low = Some(low).filter(|low| *low <= 1.0);
        Cispo::new(CispoOptions { clip_low, clip_high, masked: false })
    });
}

#[test]
fn gmpo_equals_the_golden_numbers() {
    each_case("loss_geo_mean_gmpo", |case| {
        let (clip_low, clip_high) = sides(case);
        let streams = Streams::of(&case.inputs);
        // Rows without tokens count there.
        let batch = BatchWeight { samples: streams.mask.len() as f64, ..batch_of(&streams.mask) };
        let gmpo = Gmpo::new(GmpoOptions { clip_low, clip_high });
        let found = streams.evaluate(&gmpo, &Beside::default(), LossAggregation::SampleMean, batch);
        found.assert_equals(case, GUARDED);
    });
}

#[test]
fn sapo_gate_equals_the_golden_numbers() {
    each_case("loss_sapo", |case| {
        let tau = |name: &str| case.param(name).unwrap();
        let (tau_positive, tau_negative) = (tau("tau_pos"), tau("tau_neg"));
        let sapo = SapoGate::new(SapoGateOptions { tau_positive, tau_negative });
        let streams = Streams::of(&case.inputs);
        let (mode, batch) = (LossAggregation::SampleMean, batch_of(&streams.mask));
        streams.evaluate(&sapo, &Beside::default(), mode, batch).assert_equals(case, GUARDED);
    });
}

#[test]
fn dppo_equals_the_golden_numbers() {
    for (name, divergence) in [("loss_dppo_tv", Divergence::Tv), ("loss_dppo_kl", Divergence::Kl)] {
        compare(name, GUARDED, |case| {
            let (bound_low, bound_high) = sides(case);
            let max_ratio = case.param("clip_ratio_c").unwrap_or(20.0);
            Dppo::new(DppoOptions { divergence, bound_low, bound_high, max_ratio })
        });
    }
}

#[test]
fn dro_and_the_policy_gradient_equal_the_golden_numbers() {
    compare("loss_dro", GUARDED, |case| {
        Dro::new(DroOptions { beta: case.param("dro_beta").unwrap() })
    });
    compare("loss_gpg", GUARDED, |_| PolicyGradient);
}

#[test]
fn objectives_by_covariance_equal_the_golden_numbers() {
    compare("loss_kl_cov", GUARDED, |case| {
        let share = case.param("kl_cov_ratio").unwrap_or(2e-4);
        KlCov::new(KlCovOptions { share, weight: case.param("ppo_kl_coef").unwrap_or(1.0) })
    });
    // All candidates are left out in these, since which ones a share takes is a matter of chance.
    compare("loss_clip_cov", GUARDED, |case| {
        let (clip_low, clip_high) = sides(case);
        let number = |name: &str, usual| case.param(name).unwrap_or(usual);
        ClipCov::new(ClipCovOptions {
            clip_low,
            clip_high,
            share: number("clip_cov_ratio", 2e-4),
            cov_low: number("clip_cov_lb", 1.0),
            cov_high: number("clip_cov_ub", 5.0),
        })
    });
}

/// verl's threshold of importance weights: one number truncates, two leave out.
fn importance_of(params: &Value) -> Option<ImportanceOptions> {
    let level = match params["rollout_is"].as_str()? {
        "token" => ImportanceLevel::Token,
        "sequence" => ImportanceLevel::Sequence,
        other => panic!("unknown level {other}"),
    };
    let text = match &params["rollout_is_threshold"] {
        Value::String(text) => text.clone(),
        number => number.as_f64().unwrap_or(2.0).to_string(),
    };
    let bounds: Vec<f64> = text.split('_').map(|bound| bound.parse().unwrap()).collect();
    let normalize = ["batch_normalize", "rollout_is_batch_normalize"]
        .iter()
        .any(|name| params[*name].as_bool().unwrap_or(false));
    Some(match bounds[..] {
        [upper] => ImportanceOptions { level, upper: Some(upper), normalize, ..Default::default() },
        [lower, upper] => ImportanceOptions {
            level,
            lower: Some(lower),
            upper: Some(upper),
            outside: Outside::Zero,
            normalize,
        },
        _ => panic!("unknown bounds {text}"),
    })
}

/// verl's list of what is left out.
fn rejections_of(params: &Value) -> Vec<RejectionOptions> {
    let Some(names) = params["rollout_rs"].as_str() else { return Vec::new() };
    let thresholds = match &params["rollout_rs_threshold"] {
        Value::String(text) => text.clone(),
        number => number.to_string(),
    };
    let thresholds: Vec<&str> = thresholds.split(',').map(str::trim).collect();
    let names: Vec<&str> = names.split(',').map(str::trim).collect();
    let rule = |(index, name): (usize, &&str)| {
        let bounds = thresholds[if thresholds.len() == 1 { 0 } else { index }];
        let bounds: Vec<f64> = bounds.split('_').map(|bound| bound.parse().unwrap()).collect();
        let of_sample = match name.rsplit_once('_').unwrap().0 {
            "token" => None,
            "seq_sum" => Some(SampleStatistic::Sum),
            "seq_mean" => Some(SampleStatistic::Mean),
            "seq_max" => Some(SampleStatistic::Max),
            other => panic!("unknown level {other}"),
        };
        let statistic = serde_json::from_value(name[name.len() - 2..].into()).unwrap();
        RejectionOptions {
            statistic,
            of_sample,
            upper: *bounds.last().unwrap(),
            lower: Some(bounds[0]).filter(|_| bounds.len() == 2),
            action: Rejected::Drop,
        }
    };
    names.iter().enumerate().map(rule).collect()
}

#[test]
fn bypass_mode_equals_the_golden_numbers() {
    each_case("loss_bypass_mode", |case| {
        let params = &case.params;
        let reject = rejections_of(params);
        let is_reinforce = params["loss_type"] == "reinforce";
        let correction = CorrectionOptions {
            bypass: true,
            // The ratio of the clipped objective is an importance weight by itself.
            importance: importance_of(params).filter(|_| is_reinforce),
            denominator: match reject.is_empty() {
                true => Denominator::All,
                false => Denominator::Kept,
            },
            reject,
            ..CorrectionOptions::default()
        };
        assert_eq!(correction.problems(), [""; 0]);
        let beside = Beside { correction: Some(correction), ..Beside::default() };
        let clipped = ClipOptions {
            clip_low: case.param("clip_ratio").unwrap_or(0.2),
            clip_high: case.param("clip_ratio").unwrap_or(0.2),
            dual_clip: Some(3.0),
            ..ClipOptions::default()
        };
        let loss: Box<dyn PolicyLoss> = match is_reinforce {
            true => Box::new(PolicyGradient),
            false => Box::new(Clip::new(clipped)),
        };
        let streams = Streams::of(&case.inputs);
        streams.evaluate_as(case, loss.as_ref(), &beside).assert_equals(case, GUARDED);
    });
}

/// Rows of a file about two policies, the one that is trained being the old one.
fn two_policies(case: &Case) -> (Streams, Vec<PolicyTokens>) {
    let mask = matrix(&case.inputs["response_mask"]);
    let trained = matrix(&case.inputs["train_log_prob"]);
    let streams = Streams {
        logprobs: trained.clone(),
        old: trained,
        advantages: mask.clone(),
        behavior: Some(matrix(&case.inputs["rollout_log_prob"])),
        reference: None,
        importance: None,
        groups: Vec::new(),
        mask,
    };
    let rows = streams.rows();
    (streams, rows)
}

#[test]
fn importance_weights_equal_the_golden_numbers() {
    each_case("rollout_is_weights", |case| {
        let correction =
            CorrectionOptions { importance: importance_of(&case.params), ..Default::default() };
        assert_eq!(correction.problems(), [""; 0]);
        let (streams, rows) = two_policies(case);
        let mean = correction.mean_importance(&rows);
        let wanted = matrix(&case.outputs["weights"]);
        let mut tally = Tally::default();
        for (index, mut row) in rows.into_iter().enumerate() {
            correction.apply(&mut row, mean, &mut tally);
            let mut found = vec![0.0; streams.mask[index].len()];
            row.places.iter().zip(&row.importance).for_each(|(t, weight)| found[*t] = *weight);
            for (found, wanted) in found.iter().zip(&wanted[index]) {
                case.assert_near(*found, *wanted, GUARDED);
            }
        }
        // The metric is of weights before they are divided by their mean.
        let metric = number(&case.outputs["metrics"]["rollout_is_mean"]);
        case.assert_near(tally.values()["importance_mean"] * mean, metric, 1e-7);
        if let Some(factor) = case.outputs["metrics"].get("rollout_is_batch_norm_factor") {
            case.assert_near(mean, number(factor), 1e-7);
        }
    });
}

#[test]
fn rejection_masks_equal_the_golden_numbers() {
    each_case("rollout_rejection_mask", |case| {
        let correction =
            CorrectionOptions { reject: rejections_of(&case.params), ..Default::default() };
        assert_eq!(correction.problems(), [""; 0]);
        let (streams, rows) = two_policies(case);
        let wanted = matrix(&case.outputs["response_mask"]);
        let mut tally = Tally::default();
        for (index, mut row) in rows.into_iter().enumerate() {
            correction.apply(&mut row, 1.0, &mut tally);
            let mut found = vec![0.0; streams.mask[index].len()];
            row.places.iter().for_each(|t| found[*t] = 1.0);
            assert_eq!(found, wanted[index], "{}", case.params);
        }
        let metric = number(&case.outputs["metrics"]["rollout_rs_masked_fraction"]);
        case.assert_near(tally.values()["rejected_fraction"], metric, 1e-7);
    });
}

#[test]
fn metrics_of_two_policies_equal_the_golden_numbers() {
    let names = [
        "training_ppl",
        "training_log_ppl",
        "kl",
        "k3_kl",
        "rollout_ppl",
        "rollout_log_ppl",
        "log_ppl_diff",
        "log_ppl_abs_diff",
        "log_ppl_diff_max",
        "log_ppl_diff_min",
        "ppl_ratio",
        "chi2_token",
        "chi2_seq",
    ];
    each_case("offpolicy_metrics", |case| {
        let (_, rows) = two_policies(case);
        let rows: Vec<_> = rows.into_iter().map(|row| (row.old, row.behavior)).collect();
        let found = off_policy_metrics(&rows).unwrap().named();
        for (theirs, (_, found)) in names.iter().zip(found) {
            case.assert_near(found, number(&case.outputs["metrics"][theirs]), 1e-7);
        }
        assert_eq!(case.outputs["metrics"].as_object().unwrap().len(), found.len());
    });
    assert_eq!(off_policy_metrics(&[(vec![], vec![])]), None);
}

#[test]
fn the_mask_of_sequences_far_off_policy_equals_the_golden_numbers() {
    each_case("opsm_mask", |case| {
        let delta = case.param("opsm_delta").unwrap();
        let correction =
            CorrectionOptions { off_policy_mask: Some(delta), ..CorrectionOptions::default() };
        let input = |name: &str| -> Vec<Vec<f64>> {
            case.inputs[name].as_array().unwrap().iter().map(vector).collect()
        };
        let (now, old, advantages) =
            (input("log_prob"), input("old_log_prob"), input("advantages"));
        let mask = case.inputs.get("loss_mask").or_else(|| case.inputs.get("loss_masks"));
        let mask: Vec<Vec<f64>> = match mask {
            Some(mask) => mask.as_array().unwrap().iter().map(vector).collect(),
            None => now.iter().map(|row| vec![1.0; row.len()]).collect(),
        };
        let (mut masked, mut found, mut in_mask) = (0.0, Vec::new(), Vec::new());
        for (index, mask) in mask.iter().enumerate() {
            let places: Vec<usize> = (0..mask.len()).filter(|t| mask[*t] != 0.0).collect();
            let take =
                |of: &Vec<Vec<f64>>| places.iter().map(|t| of[index][*t]).collect::<Vec<_>>();
            let mut row = PolicyTokens {
                importance: vec![1.0; places.len()],
                advantages: take(&advantages),
                behavior: take(&old),
                old: take(&old),
                detached: take(&now),
                places,
                ..PolicyTokens::default()
            };
            correction.apply(&mut row, 1.0, &mut Tally::default());
            let hidden = row.importance.iter().filter(|weight| **weight == 0.0).count();
            masked += hidden as f64 / row.len().max(1) as f64;
            let mut all = vec![1.0; mask.len()];
            row.places.iter().zip(&row.importance).for_each(|(t, weight)| all[*t] = *weight);
            found.extend(all);
            in_mask.extend(mask.clone());
        }
        let wanted = vector(&case.outputs["mask_concat"]);
        assert_eq!(found.len(), wanted.len());
        for ((found, wanted), in_mask) in found.iter().zip(&wanted).zip(in_mask) {
            // Outside of the mask nothing weighs.
            assert!(in_mask == 0.0 || found == wanted, "{found} {wanted}");
        }
        case.assert_near(masked, number(&case.outputs["clip_count"]), 1e-7);
    });
}

/// AReaL's filter.
fn areal_correction(filter: &Value) -> CorrectionOptions {
    let text = |name: &str| filter[name].as_str().unwrap();
    let is_sequence = text("level") == "sequence";
    let (lower, upper) = (filter["lower"].as_f64(), filter["upper"].as_f64().unwrap());
    let statistic = match text("metric") {
        "ratio" => Statistic::Ratio,
        "kl_k1" => Statistic::LogRatio,
        "kl_k2" => Statistic::K2,
        "kl_k3" => Statistic::K3Reverse,
        other => panic!("unknown metric {other}"),
    };
    let level = match is_sequence && statistic == Statistic::Ratio {
        true => ImportanceLevel::Geometric,
        false => ImportanceLevel::Token,
    };
    let mut importance = ImportanceOptions { level, ..ImportanceOptions::default() };
    let of_sample = is_sequence.then(|| match text("agg") {
        "sum" => SampleStatistic::Sum,
        "mean" => SampleStatistic::Mean,
        "max" => SampleStatistic::Max,
        other => panic!("unknown aggregate {other}"),
    });
    let rule = |action| RejectionOptions { statistic, of_sample, upper, lower, action };
    let reject = match (text("action"), is_sequence) {
        ("mask", _) => vec![rule(Rejected::Drop)],
        ("clamp", true) => vec![rule(Rejected::Truncate)],
        // Token by token, weights are clamped, whatever the metric.
        ("clamp", false) => {
            (importance.lower, importance.upper) = (lower, Some(upper));
            Vec::new()
        }
        (other, _) => panic!("unknown action {other}"),
    };
    CorrectionOptions { importance: Some(importance), reject, ..CorrectionOptions::default() }
}

#[test]
fn decoupled_clipping_equals_the_golden_numbers() {
    each_case("loss_areal_decoupled_ppo", |case| {
        let clip_low = case.param("eps_clip").unwrap();
        let clip_high = case.param("eps_clip_higher").unwrap_or(clip_low);
        let correction = case.params.get("rs").filter(|filter| filter.is_object());
        let correction = correction.map(areal_correction);
        assert!(correction.iter().all(|correction| correction.problems().is_empty()));
        let mut inputs = case.inputs.clone();
        inputs["old_log_prob"] = inputs["proximal_log_prob"].take();
        let streams = Streams::of(&inputs);
        let loss: Box<dyn PolicyLoss> = match case.params["importance_sampling_level"].as_str() {
            Some("sequence") => {
                Box::new(Gspo::new(GspoOptions { clip_low, clip_high, mean_advantages: true }))
            }
            _ => {
                let dual_clip = case.param("c_clip");
                let options =
                    ClipOptions { clip_low, clip_high, dual_clip, ..ClipOptions::default() };
                Box::new(Clip::new(options))
            }
        };
        let beside = Beside { correction, ..Beside::default() };
        streams.evaluate_as(case, loss.as_ref(), &beside).assert_equals(case, 2e-5);
    });
}

#[test]
fn the_off_policy_family_equals_the_golden_numbers() {
    each_case("loss_offpolicy_family", |case| {
        let number = |name: &str, usual: f64| case.param(name).unwrap_or(usual);
        let mut streams = Streams::of(&case.inputs);
        let loss: Box<dyn PolicyLoss> = match case.params["loss"].as_str().unwrap() {
            "opmd" => Box::new(Opmd::new(OpmdOptions { tau: number("tau", 1.0) })),
            "topr" => {
                let threshold = number("advantage_threshold", 0.0);
                Box::new(Topr::new(ToprOptions { threshold, ..ToprOptions::default() }))
            }
            "sppo" => Box::new(Sppo::new(SppoOptions { clip: number("epsilon", 0.3) })),
            "rec" => Box::new(Rec::new(RecOptions {
                clip: match case.params["clip_mode"].as_str().unwrap_or("none") {
                    "none" => RecClip::None,
                    "one-side" => RecClip::OneSide,
                    "two-side" => RecClip::TwoSide,
                    "ring" => RecClip::Ring,
                    other => panic!("unknown clip {other}"),
                },
                clip_low: number("epsilon_low", 0.2),
                clip_high: number("epsilon_high", 0.2),
                // The constructor's, which are not those of its documented defaults.
                ring_low: number("epsilon_low_prime", 0.4),
                ring_high: number("epsilon_high_prime", 0.4),
                weight: match case.params["weight"].as_str().unwrap_or("none") {
                    "none" => RecWeight::None,
                    "importance_sampling" => RecWeight::ImportanceSampling,
                    "advantage" => RecWeight::Advantage,
                    other => panic!("unknown weight {other}"),
                },
                temperature: number("temp", 1.0),
                regularizer: match case.params["regularizer"].as_str().unwrap_or("none") {
                    "none" => RecRegularizer::None,
                    "k2" => RecRegularizer::K2,
                    "forward-kl" => RecRegularizer::ForwardKl,
                    other => panic!("unknown regularizer {other}"),
                },
                regularizer_weight: number("regularizer_coef", 0.0),
            })),
            "sft" => {
                // Imitation is the policy gradient of tokens that are all worth 1; the objective `supervised` reads
                // demonstrations, and is compared with the same numbers below.
                streams.advantages.iter_mut().for_each(|row| row.fill(1.0));
                Box::new(PolicyGradient)
            }
            other => panic!("unknown loss {other}"),
        };
        streams.evaluate_as(case, loss.as_ref(), &Beside::default()).assert_equals(case, GUARDED);
        if case.params["loss"] == "sft" {
            super::imitates_like_the_golden_numbers(case, &streams.mask, &streams.logprobs);
        }
    });
}

#[test]
fn variants_of_roll_equal_the_golden_numbers() {
    each_case("loss_roll_pg_variants", |case| {
        let pair = |name: &str| vector(&case.params[name]);
        let (bounds, eps) = (pair("tis_bounds"), pair("cispo_eps"));
        let tau = case.param("kimi_tau").unwrap();
        let cispo = |low: f64, clip_high: f64, masked| -> Box<dyn PolicyLoss> {
            Box::new(Cispo::new(CispoOptions { clip_low: Some(low), clip_high, masked }))
        };
        // Which rows are good is told by scores there, by advantages here.
        let topr = |threshold| -> Box<dyn PolicyLoss> {
            Box::new(Topr::new(ToprOptions { threshold, ..ToprOptions::default() }))
        };
        let scores = vector(&case.inputs["scores"]);
        let loss = |row: usize| match case.params["variant"].as_str().unwrap() {
            "tis" => cispo(1.0 - bounds[0], bounds[1] - 1.0, false),
            "topr" => topr(if scores[row] > 0.0 { -1e9 } else { 1e9 }),
            "cispo" => cispo(eps[0], eps[1], false),
            "cispo_unified" => cispo(eps[0], eps[1], true),
            "kimi15" => Box::new(Kimi::new(KimiOptions { tau, by_token: true })),
            other => panic!("unknown variant {other}"),
        };
        let streams = Streams::of(&case.inputs);
        let wanted = matrix(&case.outputs["per_token_loss"]);
        let (mode, batch) = (LossAggregation::TokenSum, batch_of(&streams.mask));
        for (index, row) in streams.rows().into_iter().enumerate() {
            let found = streams.evaluate(loss(index).as_ref(), &Beside::default(), mode, batch);
            let gradient = matrix(&case.outputs["grad_log_prob_of_masked_sum"]);
            for (found, wanted) in found.gradient[index].iter().zip(&gradient[index]) {
                case.assert_near(*found, *wanted, GUARDED);
            }
            // A token's loss is that of a sample without the others.
            for (place, kept) in row.places.iter().enumerate() {
                let mut alone = row.clone();
                let only: Vec<bool> = (0..row.len()).map(|t| t == place).collect();
                alone.retain(&only);
                let found = loss(index).loss(&alone, &[], &mut Tally::default());
                case.assert_near(found.loss, wanted[index][*kept], GUARDED);
            }
        }
    });
}

#[test]
fn the_family_of_trl_equals_the_golden_numbers() {
    each_case("loss_trl_family", |case| {
        let kind = case.params["loss_type"].as_str().unwrap();
        let clip_low = case.param("eps").unwrap_or(0.2);
        let high = case.param("epsh").unwrap_or(clip_low);
        let is_sequence = case.params["level"] == "sequence";
        let streams = Streams::of(&case.inputs);
        // TRL bounds the free side of the surrogate; on either sign of the advantage that is another bound here.
        let delta = case.param("delta");
        let clip_high = delta.map_or(high, |delta| high.min(delta - 1.0));
        let dual_clip = delta.map(|delta| delta.max(1.0 + high));
        let clip = ClipOptions { clip_low, clip_high, dual_clip, ..ClipOptions::default() };
        let loss: Box<dyn PolicyLoss> = match kind {
            "cispo" => Box::new(Cispo::new(CispoOptions {
                clip_low: None,
                // An absolute bound there.
                clip_high: high - 1.0,
                masked: false,
            })),
            "sapo" => Box::new(SapoGate::new(SapoGateOptions::default())),
            "vespo" => Box::new(Vespo::new(VespoOptions::default())),
            "grpo" | "bnpo" | "dr_grpo" | "dapo" | "luspo" if is_sequence => {
                assert_eq!(delta, None, "of sequences it is not known");
                Box::new(Gspo::new(GspoOptions { clip_low, clip_high, mean_advantages: false }))
            }
            "grpo" | "bnpo" | "dr_grpo" | "dapo" | "luspo" => Box::new(Clip::new(clip)),
            other => panic!("unknown loss {other}"),
        };
        // All rows count, those without tokens too.
        let rows = streams.mask.len() as f64;
        let tokens = batch_of(&streams.mask).tokens;
        let (mode, batch) = match kind {
            "grpo" | "sapo" => (LossAggregation::SampleMean, BatchWeight { tokens, samples: rows }),
            "dr_grpo" => {
                let constant = case.param("maxlen").unwrap();
                let mode = LossAggregation::SampleSum { constant };
                (mode, BatchWeight { tokens, samples: rows })
            }
            "luspo" => {
                let mode = LossAggregation::SampleSum { constant: 1.0 };
                (mode, BatchWeight { tokens, samples: rows })
            }
            _ => {
                let items = case.inputs.get("num_items_in_batch").and_then(Value::as_f64);
                let items = items.or_else(|| case.param("num_items_in_batch")).unwrap_or(tokens);
                (LossAggregation::TokenMean, BatchWeight { tokens: items, samples: rows })
            }
        };
        let sampling = case.inputs.get("sampling_per_token_logps");
        let correction = case.param("opm").map(|delta| CorrectionOptions {
            bypass: true,
            off_policy_mask: Some(delta),
            ..CorrectionOptions::default()
        });
        let kl = case.param("beta").map(|weight| KlOptions {
            weight,
            estimator: KlEstimator::K3,
            importance: case.params["bias"].as_bool().unwrap_or(false),
            adaptive: None,
        });
        let streams = Streams {
            behavior: sampling.map(matrix),
            importance: case.inputs.get("importance_sampling_ratio").map(matrix),
            reference: case.inputs.get("ref_log_prob").map(matrix),
            ..streams
        };
        let beside = Beside { correction, kl, ..Beside::default() };
        streams.evaluate(loss.as_ref(), &beside, mode, batch).assert_equals(case, GUARDED);
    });
}

#[test]
fn discriminative_objectives_have_the_golden_gradients() {
    each_case("loss_disco_drpo", |case| {
        let variant = case.params["variant"].as_str().unwrap();
        let number = |name: &str, usual: f64| case.param(name).unwrap_or(usual);
        let (delta, beta) = (number("delta", 1e-4), number("beta", 1e3));
        let divergence = match case.params["kl_type"].as_str().unwrap() {
            "low_var_kl" => BoundedDivergence::K3,
            "kl" => BoundedDivergence::K1,
            other => panic!("unknown divergence {other}"),
        };
        let mut streams = Streams::of(&case.inputs);
        let tau = number("tau", 10.0);
        let loss: Box<dyn PolicyLoss> = match variant {
            "drpo" => Box::new(Drpo::new(DrpoOptions {
                lambda: number("Lambda", 0.1),
                max_tokens: Some(streams.mask[0].len()),
                tau,
                delta,
                beta,
                divergence,
            })),
            _ => Box::new(Disco::new(DiscoOptions {
                score: match variant.ends_with("Lratio") {
                    true => AnswerScore::Ratio,
                    false => AnswerScore::LogLikelihood,
                },
                basic: variant.starts_with("discob"),
                tau,
                delta,
                beta,
                divergence,
            })),
        };
        // Group-relative advantages of rewards 0 and 1 tell what is right where there is a difference.
        let (groups, rewards) = (&case.inputs["uid"], vector(&case.inputs["reward"]));
        let groups: Vec<String> = groups.as_array().unwrap().iter().map(Value::to_string).collect();
        let mut known: Vec<&String> = Vec::new();
        for (index, group) in groups.iter().enumerate() {
            let place = known.iter().position(|known| *known == group).unwrap_or(known.len());
            if place == known.len() {
                known.push(group);
            }
            streams.groups.push(place);
            let same = |other: &usize| groups[*other] == *group;
            let of_group: Vec<f64> =
                (0..groups.len()).filter(same).map(|other| rewards[other]).collect();
            let mean = of_group.iter().sum::<f64>() / of_group.len() as f64;
            streams.advantages[index].fill(rewards[index] - mean);
        }
        let (mode, batch) = (LossAggregation::TokenMean, batch_of(&streams.mask));
        let found = streams.evaluate(loss.as_ref(), &Beside::default(), mode, batch);
        found.assert_gradient(case, &case.outputs["grad_log_prob"], 1e-7);
        if let Some(kl) = found.tally.values().get("divergence") {
            case.assert_near(*kl, crate::testing::number(&case.outputs["ppo_kl"]), 1e-7);
            let is_active = *kl > delta;
            assert_eq!(f64::from(u8::from(is_active)), case.outputs["constraint_active"]);
        }
    });
}

#[test]
fn learning_rates_by_effective_samples_equal_the_golden_numbers() {
    each_case("vcpo_ess_opob", |case| {
        let records = case.inputs["records"].as_array().unwrap();
        let weights = |name: &str| -> Vec<f64> {
            records.iter().map(|record| record[name].as_f64().unwrap()).collect()
        };
        let (whole, clipped) = (weights("rollout_seq_is"), weights("rollout_seq_is_clipped"));
        let (size, of_clipped) = (EffectiveSize::of(whole), EffectiveSize::of(clipped));
        let wanted = |name: &str| number(&case.outputs["ess"][name]);
        case.assert_close(size.samples(), wanted("ess"));
        case.assert_close(size.fraction(), wanted("ess_ratio"));
        case.assert_close(of_clipped.samples(), wanted("ess_clipped"));
        case.assert_close(of_clipped.fraction(), wanted("ess_ratio_clipped"));
        for (name, wanted) in case.outputs.as_object().unwrap() {
            let Some(options) = name.strip_prefix("lr_scale_base") else { continue };
            let (base, rule) = options.split_once('_').unwrap();
            let rule: LearningRateRule = serde_json::from_value(rule.into()).unwrap();
            let options = LearningRateOptions { rule, base: base.parse().unwrap() };
            case.assert_close(options.scale(size.fraction()), number(wanted));
        }
    });
}
