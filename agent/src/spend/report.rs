//! What was spent, for people and programs.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use spar_core::Spend;

use super::SpendConfig;

/// A limit of spending that was reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LimitReached {
    /// The setting, such as `max_cost`.
    pub limit: String,
    /// Its value.
    pub value: f64,
    /// What was spent of it when it was reached, as far as that is known.
    pub spent: f64,
    /// What requests may have taken beside that, whose tokens nobody told, and what the next one might have.
    pub possible: f64,
}

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, value, spent, possible } = self;
        write!(f, "stopped at limit {limit} {value}: {} were spent", rounded(*spent))?;
        if *possible > 0.0 {
            write!(f, ", and up to {} more may be or would have been", rounded(*possible))?;
        }
        Ok(())
    }
}

/// What was spent, by who spent it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SpendReport {
    /// What costs are in.
    pub currency: String,
    /// All requests.
    pub total: Spend,
    /// Those of each, such as `policy` and `judge`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub accounts: BTreeMap<String, Spend>,
    /// Seconds of wall-clock time; in no file, since equal evaluations tell the same.
    #[serde(skip)]
    pub wall_secs: f64,
    /// The same where an hour of the machine has a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_secs: Option<f64>,
    /// What that time of the machine cost; absent where it has no price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_cost: Option<f64>,
    /// What all of it cost, absent where a part of that is unknown.
    pub cost: Option<f64>,
    /// The limit that was reached, if one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<LimitReached>,
}

impl SpendReport {
    /// What these accounts spent in so much time, in the currency and at the price of an hour that `config` has.
    pub(super) fn new(
        config: &SpendConfig,
        accounts: BTreeMap<String, Spend>,
        wall_secs: f64,
        stopped_at: Option<LimitReached>,
    ) -> Self {
        let mut total = Spend::default();
        accounts.values().for_each(|spend| total += *spend);
        let machine_cost = config.hour_price.map(|price| price * wall_secs / 3600.0);
        let cost = match machine_cost {
            _ if total.unpriced > 0 => None,
            // Nothing that costs anything was used.
            None if total.requests == total.failed => None,
            machine => Some(total.cost + machine.unwrap_or(0.0)),
        };
        let currency = config.currency.clone();
        let machine_secs = config.hour_price.map(|_| wall_secs);
        Self { currency, total, accounts, wall_secs, machine_secs, machine_cost, cost, stopped_at }
    }

    /// Both together, as those of several runs.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let mut accounts = self.accounts.clone();
        for (account, spend) in &other.accounts {
            *accounts.entry(account.clone()).or_default() += *spend;
        }
        let mut total = self.total;
        total += other.total;
        let is_same = self.currency == other.currency;
        let sum = |one: Option<f64>, other: Option<f64>| Some(one? + other?);
        Self {
            currency: if is_same { self.currency.clone() } else { String::new() },
            total,
            accounts,
            wall_secs: self.wall_secs + other.wall_secs,
            machine_secs: sum(self.machine_secs, other.machine_secs),
            machine_cost: sum(self.machine_cost, other.machine_cost).filter(|_| is_same),
            cost: sum(self.cost, other.cost).filter(|_| is_same),
            stopped_at: None,
        }
    }
}

/// What a score cost.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ScoreSpend {
    /// All that was spent for it, on episodes that failed too.
    #[serde(flatten)]
    pub spent: SpendReport,
    /// The cost of an episode that came about, what failed shared out among them; absent where it is unknown.
    pub cost_per_episode: Option<f64>,
    /// The same for a task.
    pub cost_per_task: Option<f64>,
    /// The same for a success; absent also where there is none.
    pub cost_per_success: Option<f64>,
}

impl ScoreSpend {
    /// For so many episodes, tasks and successes.
    pub fn new(spent: SpendReport, episodes: usize, tasks: usize, successes: usize) -> Self {
        let cost = spent.cost;
        let each = |count: usize| cost.filter(|_| count > 0).map(|cost| cost / count as f64);
        Self {
            cost_per_episode: each(episodes),
            cost_per_task: each(tasks),
            cost_per_success: each(successes),
            spent,
        }
    }
}

impl fmt::Display for SpendReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Spend { requests, failed, unknown, unpriced, .. } = self.total;
        let Spend { input_tokens, cached_tokens, output_tokens, reasoning_tokens, .. } = self.total;
        match (requests, self.total.local_turns) {
            (_, 0) => write!(f, "spent {requests} requests")?,
            (0, turns) => write!(f, "spent {turns} turns in this process")?,
            (_, turns) => write!(f, "spent {requests} requests, {turns} turns in this process")?,
        }
        write!(f, ", {input_tokens} input tokens")?;
        if cached_tokens > 0 {
            write!(f, " ({cached_tokens} cached)")?;
        }
        write!(f, ", {output_tokens} output tokens")?;
        if reasoning_tokens > 0 {
            write!(f, " ({reasoning_tokens} of thoughts)")?;
        }
        if failed > 0 {
            write!(f, "; {failed} requests failed")?;
        }
        if unknown > 0 {
            write!(f, "; the tokens of {unknown} requests are unknown")?;
        }
        match self.cost {
            Some(cost) => write!(f, "; cost {} {}", rounded(cost), self.currency),
            None if self.total.cost > 0.0 => {
                let (known, currency) = (rounded(self.total.cost), &self.currency);
                write!(f, "; cost unknown: {known} {currency} without {unpriced} requests")
            }
            None if unknown == 0 => write!(f, "; no price"),
            None => write!(f, "; cost unknown"),
        }
    }
}

impl fmt::Display for ScoreSpend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.spent)?;
        let parts = [
            ("episode", self.cost_per_episode),
            ("task", self.cost_per_task),
            ("success", self.cost_per_success),
        ];
        let told: Vec<_> = parts
            .into_iter()
            .filter_map(|(name, cost)| Some(format!("{} per {name}", rounded(cost?))))
            .collect();
        if !told.is_empty() {
            write!(f, ": {}", told.join(", "))?;
        }
        if let Some(reached) = &self.spent.stopped_at {
            write!(f, "\n{reached}")?;
        }
        Ok(())
    }
}

/// With four digits that tell something, or all before the point.
pub(crate) fn rounded(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return number.to_string();
    }
    let magnitude = number.abs().log10().floor() as i32;
    let digits = (3 - magnitude).clamp(0, 12) as usize;
    let text = format!("{number:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_told_by_what_it_was_for_or_as_unknown() {
        let total = Spend {
            requests: 4,
            input_tokens: 30,
            output_tokens: 5,
            cost: 0.012,
            ..Spend::default()
        };
        let spent = SpendReport {
            currency: "EUR".to_owned(),
            total,
            cost: Some(0.012),
            ..SpendReport::default()
        };
        let told = ScoreSpend::new(spent.clone(), 4, 2, 0).to_string();
        assert_eq!(
            told,
            "spent 4 requests, 30 input tokens, 5 output tokens; cost 0.012 EUR: 0.003 per episode, 0.006 per task"
        );
        let total = Spend { unknown: 1, unpriced: 1, ..total };
        let spent = SpendReport { total, cost: None, ..spent };
        let told = ScoreSpend::new(spent, 4, 2, 1).to_string();
        assert!(
            told.ends_with(
                "tokens of 1 requests are unknown; cost unknown: 0.012 EUR without 1 requests"
            ),
            "{told}"
        );
    }

    #[test]
    fn numbers_have_the_digits_that_tell_something() {
        for (number, text) in [
            (0.0, "0"),
            (12345.6, "12346"),
            (0.000_012_34, "0.00001234"),
            (2.5, "2.5"),
            (10.0, "10"),
        ] {
            assert_eq!(rounded(number), text);
        }
    }
}
