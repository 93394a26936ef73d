//! Turns cost something.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar::core::registry::{NamedOptions, OptionSet, Row};
use spar::core::{RewardPart, Trajectory};
use spar::tasks::{RewardShaper, ShaperRow};

pub(crate) const ROW: ShaperRow = Row {
    name: "haste",
    about: "Every turn costs a little; what was earned stays as it is.",
    source: "own",
    formula: "r'_t = r_t - cost",
    options: OptionSet::of::<HasteOptions>(),
    open: |given| Ok(Box::new(Haste { options: given.read()? })),
};

/// Options of [`Haste`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct HasteOptions {
    /// What a turn costs; 0 or more. Default 0.01.
    cost: f64,
}

impl Default for HasteOptions {
    fn default() -> Self {
        Self { cost: 0.01 }
    }
}

impl NamedOptions for HasteOptions {
    fn problems(&self) -> Vec<String> {
        let Self { cost } = self;
        let is_wrong = !(cost.is_finite() && *cost >= 0.0);
        is_wrong.then(|| format!("cost is {cost}, must be 0 or more")).into_iter().collect()
    }
}

/// Adds the part `haste` to every turn.
#[derive(Debug)]
struct Haste {
    options: HasteOptions,
}

impl RewardShaper for Haste {
    fn name(&self) -> &'static str {
        "haste"
    }

    fn shape(&self, _: &Trajectory, rewards: &mut [Vec<RewardPart>]) {
        for parts in rewards {
            parts.push(RewardPart { name: "haste".to_owned(), value: -self.options.cost });
        }
    }
}
