//! Blocks that are put together.

use crate::prelude::*;

options! {
    /// Options of `string_synthesis`.
    StringSynthesisOptions {
        /// Fewest blocks of a kind, at least 0. Default 0.
        min_initial_blocks: i64 = 0,
        /// Most blocks of a kind, up to 100000. Default 5.
        max_initial_blocks: i64 = 5,
        /// Rules that are applied at most, 1 to a million. Default 1000.
        max_iterations: i64 = 1000,
    }
    |given, problems| {
        let counts = (given.min_initial_blocks, given.max_initial_blocks);
        problems.span(("min_initial_blocks", "max_initial_blocks"), counts, (0, 100_000));
        problems.between("max_iterations", given.max_iterations, 1, 1_000_000);
    }
}

/// Blocks that are put together by rules; what is there in the end is asked for.
pub(crate) struct StringSynthesis;

impl Generator for StringSynthesis {
    type Options = StringSynthesisOptions;

    fn item(options: &StringSynthesisOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let mut count = || rng.int(options.min_initial_blocks, options.max_initial_blocks);
        let (blocks_a, blocks_b, blocks_c) = (count()?, count()?, count()?);
        let question = format!(
            "There are nine different blocks [A] [B] [C] {{A}} {{B}} {{C}} (A) (B) (C)\n1. One [A], one [B], and one [C] can be combined to form one {{A}}.\n2. One [A] and one [B] can be combined to form one {{C}}.\n3. One [B] and one [C] can be combined to form one {{B}}.\n4. Two [C] can be combined to form one {{C}}.\n5. One {{A}} and one {{C}} can be combined to form one (A) and one (B).\n6. Two {{B}} can be combined to form one (C).\n\nGiven a certain number of initial blocks, your job is to cycle through the rules 1-6 above, synthesizing new blocks until no more rules can be applied, or until a state (counts of each block type) is repeated.\nIn the case a state is repeated the answer is the state before the repetition!\n\nThe output should be the count of each block type after the rules have been applied in the order they are listed above.\nFor example 1 0 3 0 2 0 0 0 1 means that you have 1 [A] 0 [B] 3 [C] 0 {{A}} 2 {{B}} 0 {{C}} 0 (A) 0 (B) 1 (C).\n\nNow, you have {blocks_a} [A], {blocks_b} [B], and {blocks_c} [C] blocks. Provide the count of each block type after applying the above rules.\nNote: Apply the rules at most {} times. If the rules cannot be applied anymore, or if you have reached the maximum number of iterations, stop and provide the current counts.\n",
            options.max_iterations
        );
        let mut counts = [blocks_a, blocks_b, blocks_c, 0, 0, 0, 0, 0, 0];
        for _ in 0..options.max_iterations {
            // Each rule that applies makes blocks fewer, so that no state comes up twice.
            let Some((taken, made)) =
                RULES.iter().find(|(taken, _)| (0..9).all(|kind| counts[kind] >= taken[kind]))
            else {
                break;
            };
            (0..9).for_each(|kind| counts[kind] += made[kind] - taken[kind]);
        }
        Ok(Item::new(question, joined(counts, " ")))
    }
}

/// What each rule takes and makes of the nine kinds of blocks.
const RULES: [([i64; 9], [i64; 9]); 6] = [
    ([1, 1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0, 0, 0, 0]),
    ([1, 1, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1, 0, 0, 0]),
    ([0, 1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0, 0, 0, 0]),
    ([0, 0, 2, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1, 0, 0, 0]),
    ([0, 0, 0, 1, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1, 1, 0]),
    ([0, 0, 0, 0, 2, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0, 1]),
];
