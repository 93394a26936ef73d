//! A policy that says what it was told to say.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use spar_core::{
    Completion, CompletionRequest, Message, Policy, PolicyError, PolicyVersion, Role,
    SampledTokens, StopCause,
};

/// Says the lines of a script, one per turn, the same in every episode; the last line repeats.
///
/// Its tokens are bytes: an observation is framed by 257 and 258, its own turns end with 256. A line ends at the first
/// stop string of a request, without that token.
#[derive(Debug, Default)]
pub struct ScriptedPolicy {
    lines: Vec<String>,
    /// The next line of every episode in progress.
    positions: Mutex<HashMap<u64, usize>>,
}

const END_OF_TURN: u32 = 256;
const OPEN_MESSAGE: u32 = 257;
const OPEN_TURN: u32 = 258;

impl ScriptedPolicy {
    /// A policy with these lines.
    pub fn new(lines: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let lines = lines.into_iter().map(Into::into).collect();
        Self { lines, positions: Mutex::default() }
    }
}

#[async_trait]
impl Policy for ScriptedPolicy {
    fn name(&self) -> &str {
        "scripted"
    }

    fn encode(&self, _before: Option<&Message>, message: &Message) -> Vec<u32> {
        let text = message.text();
        let bytes = text.bytes().map(u32::from);
        match message.role {
            Role::Assistant => bytes.chain([END_OF_TURN]).collect(),
            Role::System | Role::User | Role::Tool => {
                [OPEN_MESSAGE].into_iter().chain(bytes).chain([OPEN_TURN]).collect()
            }
        }
    }

    fn encode_text(&self, text: &str) -> Vec<u32> {
        text.bytes().map(u32::from).collect()
    }

    async fn complete(&self, request: CompletionRequest) -> Result<Completion, PolicyError> {
        let request_without_stop = CompletionRequest { stop: [].into(), ..request.clone() };
        request_without_stop.refuse_all_but_choices(self.name())?;
        let text = {
            let mut positions = self.positions.lock().unwrap_or_else(PoisonError::into_inner);
            let position = positions.entry(request.episode).or_default();
            let line = self.lines.get(*position).or(self.lines.last());
            *position += 1;
            line.ok_or_else(|| PolicyError::Unsupported {
                name: "scripted".to_owned(),
                what: "an answer: its script is empty".to_owned(),
            })?
            .clone()
        };
        let places = request.stop.iter().filter_map(|stop| Some((text.find(&**stop)?, stop.len())));
        let (text, ids, stop) = match places.min() {
            Some((place, length)) => {
                let ids = self.encode_text(&text[..place + length]);
                (text[..place].to_owned(), ids, StopCause::StopSequence)
            }
            None => {
                let ids = self.encode_text(&text).into_iter().chain([END_OF_TURN]).collect();
                (text, ids, StopCause::EndOfTurn)
            }
        };
        let tokens = SampledTokens {
            logprobs: vec![0.0; ids.len()],
            versions: vec![PolicyVersion(0); ids.len()],
            ids,
            ..SampledTokens::default()
        };
        Ok(Completion { tokens, ..Completion::new("scripted", text, stop) })
    }

    fn forget(&self, episode: u64) {
        self.positions.lock().unwrap_or_else(PoisonError::into_inner).remove(&episode);
    }
}
