//! Tasks for tools, drawn from seeds.

use std::collections::BTreeMap;

use rand::RngExt;
use rand::seq::SliceRandom;
use serde::Deserialize;
use serde_json::{Value, json};
use spar_core::registry::to_options;
use spar_core::{Seed, ToolCall};
use spar_tasks::ReferenceAnswer;

use super::tool_use::Ending;
use super::{ToolChoice, ToolLimits, ToolUseTask};

/// Things that are bought.
const GOODS: [&str; 12] = [
    "apple", "pear", "plum", "melon", "lemon", "grape", "carrot", "onion", "leek", "radish",
    "bean", "pepper",
];
/// The largest number of an expression, and of a price.
const LARGEST: u32 = 99;

/// The parameters of a task that is drawn.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Generated {
    /// What it is drawn from.
    seed: u64,
    /// Kinds of goods whose prices stand in notes, 0 to 4. With none, an expression is to be computed. Default 0.
    #[serde(default)]
    goods: usize,
}

impl Generated {
    /// The task; an error says what is out of range.
    pub(super) fn task(self) -> Result<ToolUseTask, String> {
        match self.goods {
            0 => Ok(self.expression()),
            1..=4 => Ok(self.bill()),
            goods => Err(format!("`goods` is {goods}, allowed are 0 to 4")),
        }
    }

    /// An expression to be computed.
    fn expression(self) -> ToolUseTask {
        let mut rng = Seed::from_u64(self.seed).derive("expression", 0).rng();
        let mut number = || i64::from(rng.random_range(2..=LARGEST));
        let (a, b, c, d) = (number(), number(), number(), number());
        let (text, value) = match rng.random_range(0..3) {
            0 => (format!("({a} + {b}) * {c} - {d}"), (a + b) * c - d),
            1 => (format!("{a} * {b} + {c} * {d}"), a * b + c * d),
            _ => (format!("{a} * {b} * {c} - {d}"), a * b * c - d),
        };
        let calls = vec![call("calculator", json!({ "expression": text }))];
        self.of(format!("What is {text}?"), value, calls, BTreeMap::new())
    }

    /// A bill of goods whose prices stand in notes.
    fn bill(self) -> ToolUseTask {
        let mut rng = Seed::from_u64(self.seed).derive("bill", self.goods).rng();
        let mut names = GOODS;
        names.shuffle(&mut rng);
        let prices: BTreeMap<&str, u32> =
            names.iter().map(|name| (*name, rng.random_range(2..=LARGEST))).collect();
        let bought: Vec<(&str, u32)> =
            names[..self.goods].iter().map(|name| (*name, rng.random_range(2..=20))).collect();
        let wanted: Vec<_> =
            bought.iter().map(|(name, count)| format!("{count} x {name}")).collect();
        let terms: Vec<_> =
            bought.iter().map(|(name, count)| format!("{count} * {}", prices[name])).collect();
        let value: i64 = bought.iter().map(|(name, count)| i64::from(count * prices[name])).sum();
        let read =
            |(name, _): &(&str, u32)| call("notes", json!({ "action": "read", "name": name }));
        let mut calls: Vec<_> = bought.iter().map(read).collect();
        calls.push(call("calculator", json!({ "expression": terms.join(" + ") })));
        let notes = prices.iter().map(|(name, price)| ((*name).to_owned(), price.to_string()));
        let prompt = format!(
            "The notes say what one of each costs. What do these cost together: {}?",
            wanted.join(", ")
        );
        self.of(prompt, value, calls, notes.collect())
    }

    fn of(
        self,
        prompt: String,
        answer: i64,
        calls: Vec<ToolCall>,
        notes: BTreeMap<String, String>,
    ) -> ToolUseTask {
        let notes = ToolChoice {
            options: to_options(&json!({ "notes": notes })),
            ..ToolChoice::named("notes")
        };
        ToolUseTask {
            prompt,
            tools: vec![ToolChoice::named("calculator"), notes],
            ends: Ending::Answer,
            answer: Some(ReferenceAnswer::Number(answer.into())),
            calls,
            limits: ToolLimits::default(),
            metadata: serde_json::Map::new(),
        }
    }
}

fn call(name: &str, arguments: Value) -> ToolCall {
    ToolCall::new(name, to_options(&arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_draw_equal_tasks_and_others_others() {
        let drawn = |seed, goods| Generated { seed, goods }.task().unwrap();
        for goods in 0..=4 {
            assert_eq!(drawn(1, goods), drawn(1, goods));
            assert_ne!(drawn(1, goods).prompt, drawn(2, goods).prompt);
            assert_eq!(drawn(1, goods).calls.len(), goods + 1);
            assert!(drawn(1, goods).problems().is_empty());
        }
        assert!(Generated { seed: 1, goods: 5 }.task().unwrap_err().contains("0 to 4"));
    }
}
