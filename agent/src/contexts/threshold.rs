//! When a prompt is too long.

use crate::EpisodeConfig;

/// The share of a context that prompts may fill where nobody says how many tokens they may have.
const FRACTION: f64 = 0.75;

/// How long prompts may become: in tokens, or as a share of `context.max_context_tokens`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Threshold {
    /// In tokens.
    pub(super) tokens: Option<usize>,
    /// As a share.
    pub(super) fraction: Option<f64>,
}

impl Threshold {
    /// In tokens; absent where there is no context to take a share of.
    pub(super) fn resolve(self, max_context_tokens: Option<usize>) -> Option<usize> {
        let share = |limit: usize| (limit as f64 * self.fraction.unwrap_or(FRACTION)) as usize;
        self.tokens.or(max_context_tokens.map(share))
    }

    /// All that is wrong with it by itself.
    pub(super) fn problems(self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.tokens == Some(0) {
            problems.push("tokens is 0, must be at least 1 or absent".to_owned());
        }
        if let Some(fraction) = self.fraction
            && !(fraction > 0.0 && fraction <= 1.0)
        {
            problems.push(format!("fraction is {fraction}, must be above 0 up to 1"));
        }
        if self.tokens.is_some() && self.fraction.is_some() {
            problems.push("fraction has no effect: tokens is given".to_owned());
        }
        problems
    }

    /// All that does not fit with an episode in which each of `behind`, with so many tokens, may follow on a prompt.
    pub(super) fn problems_in(
        self,
        episode: &EpisodeConfig,
        behind: &[(&str, usize)],
    ) -> Vec<String> {
        let limit = episode.context.max_context_tokens;
        let Some(tokens) = self.resolve(limit) else {
            let problem = "give tokens, or context.max_context_tokens to take a fraction of";
            return vec![problem.to_owned()];
        };
        let Some(limit) = limit else { return Vec::new() };
        let too_long = behind.iter().filter(|(_, more)| tokens.saturating_add(*more) > limit);
        let tell = |(what, more): &(&str, usize)| {
            format!(
                "prompts of {tokens} tokens and {what} of {more} do not fit into context.max_context_tokens of \
                 {limit}: episodes would be truncated before they are shortened"
            )
        };
        too_long.map(tell).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ContextConfig;

    #[test]
    fn a_share_is_one_of_the_context() {
        let share = Threshold { tokens: None, fraction: Some(0.5) };
        assert_eq!((share.resolve(Some(101)), share.resolve(None)), (Some(50), None));
        let tokens = Threshold { tokens: Some(7), fraction: None };
        assert_eq!((tokens.resolve(Some(100)), tokens.resolve(None)), (Some(7), Some(7)));
        let both = Threshold { tokens: Some(0), fraction: Some(1.5) };
        assert_eq!(both.problems().len(), 3);
        let context = ContextConfig { max_context_tokens: Some(100), ..ContextConfig::default() };
        let episode = EpisodeConfig { context, ..EpisodeConfig::default() };
        assert!(share.problems_in(&episode, &[("answers", 50)]).is_empty());
        let problems = share.problems_in(&episode, &[("answers", 51)]);
        assert!(problems[0].contains("do not fit into context.max_context_tokens"), "{problems:?}");
        let problems = share.problems_in(&EpisodeConfig::default(), &[("answers", 1)]);
        assert!(problems[0].starts_with("give tokens"), "{problems:?}");
    }
}
