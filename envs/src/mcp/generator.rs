//! Tasks for the server of a stock, drawn from seeds.

use rand::RngExt;
use rand::seq::SliceRandom;
use serde::Deserialize;
use serde_json::json;
use spar_core::registry::to_options;
use spar_core::{Seed, ToolCall};
use spar_tasks::ReferenceAnswer;

use crate::tools::{Ending, ToolChoice, ToolLimits, ToolUseTask};

const GOODS: [&str; 8] = ["apple", "pear", "plum", "melon", "lemon", "grape", "carrot", "onion"];
/// The server, in a few lines of sh.
const SERVER: &str = include_str!("../../../tasks/suites/mcp/stock.sh");

/// The parameters of a task that is drawn.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StockTask {
    seed: u64,
}

/// The task of a seed: goods are to be taken out of a stock, and what is left is to be told.
pub(crate) fn stock_task(StockTask { seed }: StockTask) -> ToolUseTask {
    let mut rng = Seed::from_u64(seed).derive("stock", 0).rng();
    let mut goods = GOODS;
    goods.shuffle(&mut rng);
    let stock: Vec<(&str, u32)> =
        goods[..5].iter().map(|name| (*name, rng.random_range(20..=90))).collect();
    let taken: Vec<(&str, u32, u32)> =
        stock[..2].iter().map(|(name, have)| (*name, rng.random_range(1..=19), *have)).collect();
    let entries: Vec<_> = stock.iter().map(|(name, have)| format!("{name}={have}")).collect();
    let server = json!({
        "name": "stock",
        "command": ["sh", "-c", SERVER],
        "env": { "STOCK": entries.join(" ") },
        "start_secs": 20,
    });
    let [(first, few, _), (second, more, _)] = taken[..] else { unreachable!("two are taken") };
    let call = |(name, count, _): &(&str, u32, u32)| {
        ToolCall::new("take", to_options(&json!({ "item": name, "count": count })))
    };
    let left: u32 = taken.iter().map(|(_, count, have)| have - count).sum();
    ToolUseTask {
        prompt: format!(
            "Take {few} of `{first}` and {more} of `{second}` out of the stock. How many of the two are left together?"
        ),
        tools: vec![ToolChoice { options: to_options(&server), ..ToolChoice::named("mcp") }],
        ends: Ending::Answer,
        answer: Some(ReferenceAnswer::Number(left.into())),
        calls: taken.iter().map(call).collect(),
        limits: ToolLimits::default(),
        metadata: serde_json::Map::new(),
    }
}
