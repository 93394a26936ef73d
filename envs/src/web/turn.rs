//! What an action of a policy comes to at a page.

use async_trait::async_trait;
use spar_core::{Action, Media, Observation, ToolCall, ToolResult};
use spar_web::site::SiteShown;
use spar_web::{ActionSet, WebError, as_tool_call};

use crate::calls::{MOST_CALLS, too_many};

/// What a page shows behind an action.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// Its text.
    pub(super) text: String,
    /// A picture as PNG.
    pub(super) screenshot: Option<Vec<u8>>,
    /// Why the action was not carried out.
    pub(super) error: Option<String>,
    /// Whether the episode is over.
    pub(super) is_over: bool,
}

/// A page at which somebody acts.
#[async_trait]
pub(super) trait Place: Send {
    /// Carries out the action that stands in a text.
    async fn act(&mut self, text: &str) -> Result<Seen, WebError>;

    /// Carries out the action that a call of a tool is.
    async fn call(&mut self, call: &ToolCall) -> Result<Seen, WebError>;
}

/// What a turn came to.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) observation: Observation,
    /// Whether all of it was carried out.
    pub(super) is_valid: bool,
}

impl Seen {
    /// What a site shows.
    pub(super) fn of_site(shown: &SiteShown, is_over: bool) -> Self {
        Self {
            text: shown.text.clone(),
            screenshot: shown.screenshot.clone(),
            error: shown.error.clone(),
            is_over,
        }
    }

    /// The text for the policy.
    fn told(&self) -> String {
        match &self.error {
            None => self.text.clone(),
            Some(error) if self.text.is_empty() => error.clone(),
            Some(error) => format!("{error}\n\n{}", self.text),
        }
    }

    fn media(&self) -> Vec<Media> {
        self.screenshot.iter().map(|bytes| Media::new("image/png", bytes.as_slice())).collect()
    }

    /// What it is called among situations: its text, or without one what its picture shows.
    fn key(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        match self.text.is_empty() {
            true => hasher.update(self.screenshot.as_deref().unwrap_or_default()),
            false => hasher.update(self.text.as_bytes()),
        };
        let over = if self.is_over { " over" } else { "" };
        format!("{}{over}", &hasher.finalize().to_hex()[..16])
    }

    /// The first observation: what is demanded, how actions are written where they are in words, and the page.
    pub(super) fn first(&self, goal: &str, actions: Option<&str>) -> Observation {
        let mut text = format!("Your task: {goal}");
        for part in [actions.unwrap_or_default(), &self.text] {
            if !part.is_empty() {
                text.push_str("\n\n");
                text.push_str(part);
            }
        }
        Observation {
            text,
            media: self.media(),
            instruction: Some(goal.into()),
            state_key: self.key(),
            ..Observation::default()
        }
    }
}

/// How actions are written in words.
pub(super) fn in_words(actions: &ActionSet) -> String {
    format!("Actions:\n{}", actions.describe().trim_end())
}

/// An action of a player by rules, in words or as a call.
pub(super) fn of_player(text: String, uses_tools: bool) -> Action {
    match as_tool_call(&text).filter(|_| uses_tools) {
        Some((name, arguments)) => Action::calls(vec![ToolCall::new(name, arguments)]),
        None => text.into(),
    }
}

/// Carries out an action: what its words say, or its calls one after the other. The last call that is carried out is answered by the page.
pub(super) async fn carry_out(place: &mut dyn Place, action: &Action) -> Result<Turn, WebError> {
    let calls = action.tool_calls();
    if calls.is_empty() {
        let seen = place.act(action.said()).await?;
        let observation = Observation {
            text: seen.told(),
            media: seen.media(),
            state_key: seen.key(),
            ..Observation::default()
        };
        return Ok(Turn { observation, is_valid: seen.error.is_none() });
    }
    let mut results: Vec<ToolResult> = Vec::with_capacity(calls.len());
    let mut last: Option<(usize, Seen)> = None;
    for (number, call) in calls.iter().enumerate() {
        let is_over = last.as_ref().is_some_and(|(_, seen)| seen.is_over);
        if is_over || number >= MOST_CALLS {
            let why = match is_over {
                true => "The task is over.".to_owned(),
                false => too_many(MOST_CALLS),
            };
            results.push(ToolResult::error(call, why));
            continue;
        }
        let seen = place.call(call).await?;
        results.push(match &seen.error {
            Some(error) => ToolResult::error(call, error.as_str()),
            None => ToolResult::new(call, "Done."),
        });
        last = Some((number, seen));
    }
    let is_valid = results.iter().all(|result| !result.is_error);
    let (number, seen) = last.unwrap_or_default();
    if let Some(result) = results.get_mut(number) {
        result.text = seen.told();
        result.media = seen.media();
    }
    let observation = Observation { results, state_key: seen.key(), ..Observation::default() };
    Ok(Turn { observation, is_valid })
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    /// Ends with the action `end`, and does not know `wrong`.
    #[derive(Default)]
    struct Door {
        said: Vec<String>,
    }

    #[async_trait]
    impl Place for Door {
        async fn act(&mut self, text: &str) -> Result<Seen, WebError> {
            self.said.push(text.to_owned());
            Ok(Seen {
                text: format!("page {}", self.said.len()),
                screenshot: Some(vec![self.said.len() as u8]),
                error: (text == "wrong").then(|| "ValueError: no".to_owned()),
                is_over: text == "end",
            })
        }

        async fn call(&mut self, call: &ToolCall) -> Result<Seen, WebError> {
            self.act(&call.name).await
        }
    }

    #[tokio::test]
    async fn every_call_has_its_answer_and_the_page_stands_in_the_last_one_carried_out() {
        let call = |name: &str| ToolCall { id: name.to_owned(), ..ToolCall::new(name, Map::new()) };
        let act = async |names: &[&str]| {
            let action = Action::calls(names.iter().map(|name| call(name)).collect());
            carry_out(&mut Door::default(), &action).await.unwrap()
        };
        let turn = act(&["a", "wrong", "end", "b"]).await;
        let told: Vec<(&str, bool, usize)> = turn
            .observation
            .results
            .iter()
            .map(|it| (it.text.as_str(), it.is_error, it.media.len()))
            .collect();
        assert_eq!(
            told,
            [
                ("Done.", false, 0),
                ("ValueError: no", true, 0),
                ("page 3", false, 1),
                ("The task is over.", true, 0)
            ]
        );
        assert!(!turn.is_valid && turn.observation.state_key.ends_with(" over"));
        let many = act(&["a"; 40]).await.observation.results;
        assert_eq!((many.len(), many[15].text.as_str()), (40, "page 16"));
        assert!(many[16].is_error && many[16].text.contains("At most 16"));
        let turn = carry_out(&mut Door::default(), &"wrong".into()).await.unwrap();
        assert_eq!(turn.observation.text, "ValueError: no\n\npage 1");
        assert!(!turn.is_valid && turn.observation.media.len() == 1);
        let none = carry_out(&mut Door::default(), &Action::calls(Vec::new())).await.unwrap();
        assert!(none.observation.results.is_empty() && !none.observation.text.is_empty());
    }

    #[test]
    fn players_act_in_words_or_by_calls() {
        let action = of_player("fill('13', 'a\\'b')".to_owned(), true);
        assert_eq!(action.tool_calls()[0].name, "fill");
        assert_eq!(json!(action.tool_calls()[0].arguments), json!({ "bid": "13", "value": "a'b" }));
        assert_eq!(of_player("click('1')".to_owned(), false), "click('1')".into());
        let words = in_words(&ActionSet::new(&["nav"]).unwrap());
        assert!(words.starts_with("Actions:\nnoop(") && words.contains("goto(url)"), "{words}");
        let first = Seen { text: "page".to_owned(), ..Seen::default() };
        assert_eq!(first.first("Go.", Some("A")).text, "Your task: Go.\n\nA\n\npage");
        assert_eq!(first.first("Go.", None).text, "Your task: Go.\n\npage");
    }
}
