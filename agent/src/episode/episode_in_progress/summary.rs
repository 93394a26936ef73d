//! Turns in which the policy sums up what came before.

use std::sync::Arc;
use std::time::Duration;

use spar_core::{
    EndReason, Limit, Observation, PolicyError, Source, Step, ToolSpec, Turn, TurnKind,
};
use tokio::time::Instant;

use super::{Asked, EpisodeInProgress};
use crate::contexts::{Prompt, SummaryRules};
use crate::episode::asking::{Answer, summary};
use crate::episode::ends::{policy_end, truncated};

impl EpisodeInProgress<'_> {
    /// Has the policy sum the conversation up, in the turn of this index; an error is how the episode ends without it.
    pub(super) async fn summarize(&mut self, index: usize) -> Result<(), EndReason> {
        let player = self.player(index);
        let (Some(rules), Some(policy)) = (self.context.summaries(), player.policy()) else {
            return Err(truncated(Limit::Context));
        };
        let started = Instant::now();
        let tools = self.offered_tools(index);
        let prompt = self.context.summary_prompt(&tools, rules);
        let prompt = prompt.map_err(|error| policy_end(&error))?;
        let limit = self.config.context.max_context_tokens;
        let asked = Asked {
            turn: index,
            max_tokens: rules.max_tokens_behind(prompt.ids.len(), limit),
            choices: None,
            grammar: None,
            leg: None,
            stop: Arc::default(),
        };
        let (prompt, request) = self.request(prompt, asked, &tools)?;
        let prompt_tokens = request.prompt_ids.len();
        let answer = summary(policy, self.config, request, self.budgets.task);
        let Answer { completion, parsed, source } = answer.await?;
        let policy_time = started.elapsed();
        let (prompt, counts) = self.take_counts(&completion, prompt, prompt_tokens, player)?;
        let injected = std::mem::take(&mut self.injected);
        let is_hinted = !injected.is_empty() && source == Source::Sampled;
        let turn = Turn {
            kind: TurnKind::Summary,
            prompt,
            source: if is_hinted { Source::Hinted } else { source },
            injected,
            author: completion.author,
            text: completion.text,
            sampled: completion.tokens,
            stop: Some(completion.stop),
            parsed,
            state_key: Turn::summary_key(&self.state_key),
            counts,
            seat: self.episode.seat,
            step: self.still(),
            policy_time,
            environment_time: Duration::ZERO,
        };
        self.put_in_place(&turn, rules);
        self.trajectory.turns.push(turn);
        Ok(())
    }

    /// Takes over a summary that another episode has of the same past.
    pub(super) fn take_summary(&mut self, turn: &Turn) {
        if let Some(rules) = self.context.summaries() {
            self.put_in_place(turn, rules);
        }
    }

    /// The prompt of a turn that another episode has played behind the same past.
    pub(super) fn prompt_again(
        &mut self,
        turn: &Turn,
        tools: &Arc<[ToolSpec]>,
    ) -> Result<Prompt, PolicyError> {
        // What came next then comes next now, whoever decides it.
        self.context.shorten(tools)?;
        match self.context.summaries().filter(|_| turn.is_summary()) {
            Some(rules) => self.context.summary_prompt(tools, rules),
            None => self.context.prompt(tools),
        }
    }

    fn put_in_place(&mut self, turn: &Turn, rules: &SummaryRules) {
        self.context.push_summary(&turn.text, &turn.sampled.ids, rules);
        self.uncounted += usize::from(!rules.counts_as_turn);
    }

    /// The environment's part of a turn in which it was not asked.
    fn still(&self) -> Step {
        let state_key = self.state_key.clone();
        Step {
            observation: Observation { state_key, ..Observation::default() },
            rewards: Vec::new(),
            terminated: false,
            success: false,
            valid: true,
            wall_time: Duration::ZERO,
        }
    }
}
