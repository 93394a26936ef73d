//! The task samplers that have a name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{Axis, Given, OptionSet, Options, Row, Table};

use super::{
    Balanced, BalancedOptions, Dars, DarsOptions, Deviation, DeviationOptions, Dots, DotsOptions,
    Dump, DumpOptions, Dynamic, DynamicOptions, Gdro, GdroOptions, Hardest, HardestOptions,
    Retired, RetiredOptions, Sec, SecOptions, Sparse, SparseOptions, TaskSampler, Uniform,
    Unlikely, UnlikelyOptions, Vade, VadeOptions, Xrpo, XrpoOptions,
};
use crate::SamplerError;

/// Which task sampler, with which options.
///
/// ```
/// use spar_tasks::samplers::{SamplerConfig, open_sampler};
///
/// let config: SamplerConfig = toml::from_str("kind = 'dynamic'\nmax_rounds = 3")?;
/// let sampler = open_sampler(&config, 7).unwrap();
/// assert_eq!((sampler.name(), sampler.next_place()), ("dynamic", 7));
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SamplerConfig {
    /// The sampler's name.
    pub kind: String,
    /// Its options; those left out have the defaults that it documents.
    #[serde(flatten)]
    pub options: Options,
}

impl Default for SamplerConfig {
    /// `uniform`.
    fn default() -> Self {
        Self { kind: "uniform".to_owned(), options: Options::new() }
    }
}

/// Makes a task sampler from its options, to begin at a place.
pub type OpenSampler = fn(&Given<'_>, u64) -> Result<Box<dyn TaskSampler>, SamplerError>;

/// A task sampler that has a name.
pub type SamplerRow = Row<OpenSampler>;

pub(super) const AXIS: Axis = Axis {
    name: "samplers",
    what: "task sampler",
    about: "Which tasks are played, and which of their groups are trained.",
};

const ROWS: &[SamplerRow] = &[
    Row {
        name: "uniform",
        about: "Tasks as they come in their shuffled, stratified order.",
        source: "own",
        formula: "",
        options: OptionSet::NONE,
        open: |_, first| Ok(Box::new(Uniform::new(first))),
    },
    Row {
        name: "dynamic",
        about: "Drops groups whose episodes all earned the same, and plays other tasks for them.",
        source: "DAPO, arXiv 2503.14476, section 3.2, equation 11",
        formula: "a group is trained iff min R < max R over its episodes",
        options: OptionSet::of::<DynamicOptions>(),
        open: |given, first| Ok(Box::new(Dynamic::new(&given.read()?, first)?)),
    },
    Row {
        name: "balanced",
        about: "Drops groups of which too few or too many episodes succeeded, and plays other tasks for them.",
        source: "arXiv 2504.03380, reconstructed from its abstract; assumed: the bounds of the band",
        formula: "a group is trained iff low <= p <= high, p the share of its episodes that succeeded",
        options: OptionSet::of::<BalancedOptions>(),
        open: |given, first| Ok(Box::new(Balanced::new(&given.read()?, first)?)),
    },
    Row {
        name: "deviation",
        about: "Leaves out groups whose returns differ less than those of the groups so far.",
        source: "RLPR, arXiv 2506.18254, section 3.3, reconstructed from a summary; assumed: the share",
        formula: "a group is trained iff std R >= share EMA(mean std R)",
        options: OptionSet::of::<DeviationOptions>(),
        open: |given, first| Ok(Box::new(Deviation::new(&given.read()?, first)?)),
    },
    Row {
        name: "vade",
        about: "Plays the tasks whose success rate, drawn from what is known of it, is nearest to one half.",
        source: "VADE, reconstructed from its abstract; the posterior is that of MoPPS's code, arXiv 2507.04632",
        formula: "p ~ Beta(a, b); of a pool the greatest p (1 - p); a <- a d + a_0 (1 - d) + successes, b likewise",
        options: OptionSet::of::<VadeOptions>(),
        open: |given, first| Ok(Box::new(Vade::new(&given.read()?, first)?)),
    },
    Row {
        name: "dots",
        about: "Plays tasks whose success rate, predicted from that of their like, is near a target.",
        source: "DOTS, arXiv 2506.05316; likeness is that of words, where its code has embeddings and a learned calibration",
        formula: "p = sum softmax(q . k / T_a) p_ref; drawn without one twice by softmax(-|p - target| / T)",
        options: OptionSet::of::<DotsOptions>(),
        open: |given, first| Ok(Box::new(Dots::new(&given.read()?, first)?)),
    },
    Row {
        name: "sec",
        about: "Draws strata of tasks by how great their advantages were.",
        source: "SEC, arXiv 2505.14970, and its code",
        formula: "Q_c <- (1 - rate) Q_c + rate mean |A|; c ~ softmax(Q / temperature)",
        options: OptionSet::of::<SecOptions>(),
        open: |given, first| Ok(Box::new(Sec::new(&given.read()?, first)?)),
    },
    Row {
        name: "dump",
        about: "Draws strata of tasks by upper bounds of their advantages, those that were seldom played first.",
        source: "DUMP, arXiv 2504.09710, reconstructed; assumed: the ones in the root",
        formula: "c ~ softmax((mean |A| over a window + exploration sqrt(2 ln(N + 1) / (n_c + 1))) / temperature)",
        options: OptionSet::of::<DumpOptions>(),
        open: |given, first| Ok(Box::new(Dump::new(&given.read()?, first)?)),
    },
    Row {
        name: "gdro",
        about: "Draws bins of difficulty by exponentiated weights, and gives rollouts where they pay, at a fixed mean.",
        source: "GDRO, arXiv 2601.19280, and its code; the loss of an episode is 1 less its success, and weights draw",
        formula: "q = (1 - g) softmax(eta EMA(loss)) + g / K; rollouts by a bandit over arms with a price, or by sqrt(p (1 - p))",
        options: OptionSet::of::<GdroOptions>(),
        open: |given, first| Ok(Box::new(Gdro::new(&given.read()?, first)?)),
    },
    Row {
        name: "dars",
        about: "Tasks of which less than half of the episodes succeeded get further ones, the harder the more.",
        source: "DARS, arXiv 2508.13755, and its code",
        formula: "ceil((N / 2 - N S) / S) more, S = 2 p (1 - p), or with `hardness_weighted` ceil((N (1 - p) - N S) / S)",
        options: OptionSet::of::<DarsOptions>(),
        open: |given, first| Ok(Box::new(Dars::new(&given.read()?, first)?)),
    },
    Row {
        name: "v0_5",
        about: "Few rollouts of every task, and more where they contradict the success that was expected.",
        source: "V_0.5, arXiv 2603.10848, reconstructed from its abstract; deviation: what is expected is told by the stratum's history",
        formula: "more iff |s / n - p| > z sqrt(p (1 - p) / n), up to `most`",
        options: OptionSet::of::<SparseOptions>(),
        open: |given, first| Ok(Box::new(Sparse::new(&given.read()?, first)?)),
    },
    Row {
        name: "xrpo",
        about: "Rollouts go round by round to the tasks of whose mean return they tell most.",
        source: "XRPO, arXiv 2510.06672, reconstructed from its abstract and a summary; its allocator alone",
        formula: "argmax t_{n-1} s (1 / sqrt(n) - 1 / sqrt(n + 1)) + exploration sqrt(ln(N + 1) / n)",
        options: OptionSet::of::<XrpoOptions>(),
        open: |given, first| Ok(Box::new(Xrpo::new(&given.read()?, first)?)),
    },
    Row {
        name: "hardest",
        about: "Plays a set of tasks epoch after epoch, of which the hardest share is kept behind each.",
        source: "DRIVE, arXiv 2511.06307, second stage, reconstructed from its abstract; assumed: the share and the least number",
        formula: "keep the max(least, ceil(keep n)) tasks of the lowest success rates",
        options: OptionSet::of::<HardestOptions>(),
        open: |given, first| Ok(Box::new(Hardest::new(&given.read()?, first)?)),
    },
    Row {
        name: "unlikely",
        about: "Measures tasks before anything is trained, and plays those that were seldom solved.",
        source: "The Reasoning Boundary Paradox, arXiv 2510.02230, reconstructed from its abstract; assumed: the bound",
        formula: "a task is played iff p_0 < below, p_0 its success rate under the weights that the stage begins with",
        options: OptionSet::of::<UnlikelyOptions>(),
        open: |given, first| Ok(Box::new(Unlikely::new(&given.read()?, first)?)),
    },
    Row {
        name: "retired",
        about: "Plays tasks in their order, and never again those that were mostly solved once.",
        source: "ScaleRL, arXiv 2510.13786, no-positive-resampling",
        formula: "a task is played iff no group of it had p >= solved, p the share of its episodes that succeeded",
        options: OptionSet::of::<RetiredOptions>(),
        open: |given, first| Ok(Box::new(Retired::new(&given.read()?, first)?)),
    },
];

static TABLE: Table<OpenSampler> = Table::new(AXIS, ROWS);

/// All task samplers that have a name; a new one is one file and one row here.
pub fn sampler_registry() -> &'static Table<OpenSampler> {
    &TABLE
}

/// Makes a task sampler that begins at the place `first` of the shuffled order.
///
/// # Errors
///
/// [`SamplerError::Row`] when none has the name, it does not have the options, or one is out of range.
pub fn open_sampler(
    config: &SamplerConfig,
    first: u64,
) -> Result<Box<dyn TaskSampler>, SamplerError> {
    let (row, given) = sampler_registry().choose(&config.kind, &config.options)?;
    (row.open)(&given, first)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use spar_core::Seed;

    use super::super::test_order::{Line, of};
    use super::super::{Draw, Learned, Outcome, Wanted};
    use super::*;

    /// Plays an iteration, of whose groups every second one is solved by half of its episodes and teaches more.
    fn iterate(sampler: &mut dyn TaskSampler, order: &Line, number: u64) -> Vec<Draw> {
        let wanted = Wanted::new(3, 4, Seed::from_u64(number));
        sampler.begin(&wanted);
        let (mut all, mut trained) = (Vec::new(), Vec::new());
        for round in 0.. {
            assert!(round < 50, "{} goes on and on", sampler.name());
            let drawn = sampler.draw(order);
            if drawn.is_empty() {
                break;
            }
            let episodes = |draw: &Draw| draw.rollouts.unwrap_or(wanted.group_size);
            assert!(drawn.iter().all(|draw| episodes(draw) > 0), "{}", sampler.name());
            let outcome = |draw: &Draw| match draw.place % 2 {
                0 => of(episodes(draw).div_ceil(2), episodes(draw)),
                _ => of(1.min(episodes(draw) / 4), episodes(draw)),
            };
            let outcomes: Vec<Outcome> = drawn.iter().map(outcome).collect();
            let kept = sampler.observe(&outcomes);
            assert_eq!(kept.len(), drawn.len(), "{}", sampler.name());
            trained
                .extend(drawn.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(it, _)| it.place));
            all.extend(drawn);
        }
        let learned = |place: &u64| Learned { place: *place, advantage: (place % 2) as f64 };
        sampler.learned(&trained.iter().map(learned).collect::<Vec<_>>());
        all
    }

    #[test]
    fn every_sampler_plays_within_bounds_and_goes_on_from_its_state() {
        let order = Line { tasks: 50, strata: &["a", "b", "c"] };
        for entry in sampler_registry() {
            let config = SamplerConfig { kind: entry.name.to_owned(), options: Options::new() };
            let mut sampler = open_sampler(&config, 3).unwrap();
            assert_eq!((sampler.name(), sampler.next_place()), (entry.name, 3));
            for number in 0..4 {
                let drawn = iterate(&mut *sampler, &order, number);
                assert!(!drawn.is_empty(), "{}", entry.name);
                let behind = sampler.next_place();
                assert!(drawn.iter().all(|it| (3..behind).contains(&it.place)), "{}", entry.name);
            }
            let mut resumed = open_sampler(&config, 0).unwrap();
            let state = serde_json::from_str(&sampler.state().to_string()).unwrap();
            resumed.load(&state).unwrap();
            for number in 4..8 {
                let drawn = iterate(&mut *sampler, &order, number);
                assert_eq!(drawn, iterate(&mut *resumed, &order, number), "{}", entry.name);
            }
            assert_eq!(sampler.state(), resumed.state());
            assert!(resumed.load(&Value::Null).is_err(), "{}", entry.name);
        }
    }

    #[test]
    fn a_split_smaller_than_an_iteration_is_played_all_the_same() {
        for entry in sampler_registry() {
            let config = SamplerConfig { kind: entry.name.to_owned(), options: Options::new() };
            let mut sampler = open_sampler(&config, 0).unwrap();
            for number in 0..3 {
                assert!(!iterate(&mut *sampler, &Line::of(1), number).is_empty(), "{}", entry.name);
            }
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let open =
            |text: &str| open_sampler(&toml::from_str(text).unwrap(), 0).unwrap_err().to_string();
        assert!(open("kind = 'hard'").starts_with("find task sampler `hard`: known are "));
        assert!(open("kind = 'uniform'\nmax_rounds = 1").contains("no option `max_rounds`"));
        assert!(open("kind = 'dynamic'\nmax_rounds = 0").contains("max_rounds is 0"));
    }
}
