//! The environment `search`.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use spar_core::{Action, Observation, Seed, Step, ToolCall, ToolResult, ToolSpec, Verdict};
use spar_search::search_r1::{self, TagAction};
use spar_search::world::{Hop, MAX_HOPS, Names, QuestionSpec, World, WorldSpec};
use spar_search::{CorpusSource, IndexFolder, Retriever, SearchError, listing};
use spar_tasks::{ReferenceAnswer, SearchPrompt, SearchTask, Task};

use super::progress::{Progress, documents};
use crate::calls::{MOST_CALLS, clipped, too_many};
use crate::{Environment, EnvironmentError, Resources, TimeRules, idle_tag};

const NAME: &str = "search";
/// What a retrieval server may take, further attempts included.
const SERVER_TIME: Duration = Duration::from_secs(150);
/// What is answered in words where calls are expected.
const CALL_A_TOOL: &str = "Nothing happens: call `search`, or `answer`.";

/// A question that is answered from a corpus, by searches and one answer.
///
/// Parameters: those of a [`SearchTask`], or of a question about an invented world: `seed`, `names` (`train`, `dev` or
/// `test`), `worlds` (how many there are; default 64), `hops` (the least and the most facts that a question takes, 1 to 4;
/// default `[1, 1]`), `aliases` (whether things may be called by their other names; default false) and `results` (documents
/// that a search shows; default 3).
///
/// In words, Search-R1's tags are read: `<search>...</search>` is answered with documents between `<information>` and `</information>`, and
/// `<answer>...</answer>` ends the task. By calls, the tools `search` and `answer` do the same. Behind the end the answer is
/// judged by SQuAD's exact match, which gives the reward part `success`, 1. Several answers at a time are none.
#[derive(Debug, Clone)]
pub struct Search {
    question: Arc<Question>,
    resources: Resources,
    /// Opened when the episode is prepared.
    retriever: Option<Retriever>,
    uses_tools: bool,
    /// Absent before the first reset.
    progress: Option<Progress>,
}

/// What is asked.
#[derive(Debug)]
struct Question {
    task: SearchTask,
    /// The facts that one needs; empty where they are not known.
    chain: Vec<Hop>,
    tags: Vec<String>,
}

/// Parameters of a question about an invented world.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Generated {
    seed: u64,
    names: Names,
    #[serde(default = "sixty_four")]
    worlds: u64,
    #[serde(default = "one_hop")]
    hops: [usize; 2],
    #[serde(default)]
    aliases: bool,
    #[serde(default = "three")]
    results: usize,
}

fn sixty_four() -> u64 {
    64
}

fn one_hop() -> [usize; 2] {
    [1, 1]
}

fn three() -> usize {
    3
}

impl Generated {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let [least, most] = self.hops;
        if !(1..=MAX_HOPS).contains(&least) || !(least..=MAX_HOPS).contains(&most) {
            problems.push(format!(
                "`hops` is [{least}, {most}], allowed are 1 to {MAX_HOPS}, the least first"
            ));
        }
        if self.worlds == 0 {
            problems.push("`worlds` is 0, must be at least 1".to_owned());
        }
        problems
    }

    /// How many facts the question takes: every number in its share.
    fn num_hops(&self) -> usize {
        let [least, most] = self.hops;
        least + (self.seed / self.worlds) as usize % (most - least + 1)
    }

    fn world(&self) -> WorldSpec {
        WorldSpec { seed: self.seed % self.worlds, names: self.names }
    }

    fn question(&self) -> Question {
        let hops = self.num_hops();
        let spec = QuestionSpec { seed: self.seed, hops, aliases: self.aliases };
        let found = World::shared(&self.world()).question(&spec);
        let task = SearchTask {
            question: found.text,
            answers: found.answers,
            supporting: Vec::new(),
            corpus: CorpusSource::World(self.world()),
            results: self.results,
            max_chars: 4000,
            prompt: SearchPrompt::Plain,
        };
        Question { task, chain: found.chain, tags: vec![tag(hops)] }
    }
}

fn tag(hops: usize) -> String {
    format!("hops-{hops}")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    query: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerArguments {
    answer: String,
}

impl Search {
    /// Makes a task interactive.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::Parameters`] when the task's parameters are not understood.
    pub fn open(task: &Task, resources: &Resources) -> Result<Self, EnvironmentError> {
        let refuse = |detail: String| EnvironmentError::Parameters {
            task: task.id.clone(),
            environment: NAME,
            detail,
        };
        let misread = |error: serde_json::Error| refuse(error.to_string());
        let all_right = |problems: Vec<String>| match problems.is_empty() {
            true => Ok(()),
            false => Err(refuse(problems.join("; "))),
        };
        let question = if task.parameters.get("seed").is_some() {
            let generated = Generated::deserialize(&task.parameters).map_err(misread)?;
            all_right(generated.problems())?;
            generated.question()
        } else {
            let found = SearchTask::deserialize(&task.parameters).map_err(misread)?;
            // A title is what its document is found by.
            let hop = |title: &String| Hop {
                query: title.trim_matches('"').to_owned(),
                title: title.clone(),
                finds: String::new(),
            };
            let chain = found.supporting.iter().map(hop).collect();
            Question { task: found, chain, tags: Vec::new() }
        };
        all_right(question.task.problems())?;
        Ok(Self {
            question: Arc::new(question),
            resources: resources.clone(),
            retriever: None,
            uses_tools: false,
            progress: None,
        })
    }

    /// How many facts the question of a task takes, where its parameters tell.
    pub(crate) fn stratum(task: &Task) -> Option<String> {
        let generated = Generated::deserialize(&task.parameters).ok()?;
        generated.problems().is_empty().then(|| tag(generated.num_hops()))
    }

    fn observe(&self, progress: &Progress, text: String) -> Observation {
        let state_key = progress.state_key(&self.question.task.question);
        Observation { text, state_key, ..Observation::default() }
    }

    /// What a search shows, by `show`; what is wrong with the query itself is told the policy.
    async fn search(
        &self,
        progress: &mut Progress,
        query: &str,
        show: impl Fn(&[spar_search::Hit]) -> String,
    ) -> Result<Result<String, String>, EnvironmentError> {
        let retriever = self.retriever.as_ref().expect("it was prepared");
        match retriever.search(query, self.question.task.results).await {
            Ok(hits) => {
                progress.searched(query, &hits);
                Ok(Ok(show(&hits)))
            }
            Err(error @ SearchError::QueryTooLong { .. }) => Ok(Err(format!("Could not {error}."))),
            Err(error) => Err(EnvironmentError::Search(error)),
        }
    }

    /// Carries out an action in words.
    async fn say(
        &self,
        progress: &mut Progress,
        said: &str,
    ) -> Result<(Observation, bool), EnvironmentError> {
        let (action, answers) = search_r1::read(said);
        let max_chars = self.question.task.max_chars;
        let (text, valid) = match action {
            TagAction::Search(query) => {
                let show =
                    |hits: &[spar_search::Hit]| search_r1::information(documents(hits), max_chars);
                match self.search(progress, query, show).await? {
                    Ok(text) => (text, true),
                    Err(told) => (told, false),
                }
            }
            TagAction::Answer(answer) => {
                progress.answered(answer, answers > 1);
                (String::new(), true)
            }
            TagAction::Invalid => (search_r1::INVALID_ACTION.to_owned(), false),
        };
        Ok((self.observe(progress, text), valid))
    }

    /// Carries out calls.
    async fn call(
        &self,
        progress: &mut Progress,
        calls: &[ToolCall],
    ) -> Result<(Observation, bool), EnvironmentError> {
        let num_answers = calls.iter().filter(|call| call.name == "answer").count();
        let mut results = Vec::with_capacity(calls.len());
        for (place, call) in calls.iter().enumerate() {
            let told = if !self.uses_tools {
                Err("No tools are offered here.".to_owned())
            } else if progress.is_over() {
                Err("The question is answered.".to_owned())
            } else if place >= MOST_CALLS {
                Err(too_many(MOST_CALLS))
            } else {
                self.call_one(progress, call, num_answers > 1).await?
            };
            results.push(match told {
                Ok(text) => ToolResult::new(call, text),
                Err(text) => ToolResult::error(call, text),
            });
        }
        let valid = results.iter().all(|result| !result.is_error);
        Ok((Observation { results, ..self.observe(progress, String::new()) }, valid))
    }

    async fn call_one(
        &self,
        progress: &mut Progress,
        call: &ToolCall,
        is_one_of_several: bool,
    ) -> Result<Result<String, String>, EnvironmentError> {
        let max_chars = self.question.task.max_chars;
        Ok(match &*call.name {
            "search" => match arguments::<SearchArguments>(call) {
                Err(told) => Err(told),
                Ok(SearchArguments { query }) => {
                    let show = |hits: &[spar_search::Hit]| match hits.is_empty() {
                        true => "Nothing was found.".to_owned(),
                        false => listing(documents(hits), max_chars).trim_end().to_owned(),
                    };
                    self.search(progress, &query, show).await?
                }
            },
            "answer" => arguments::<AnswerArguments>(call).map(|AnswerArguments { answer }| {
                progress.answered(&answer, is_one_of_several);
                "The question is answered.".to_owned()
            }),
            _ => Err(format!("There is no tool `{}`, only search, answer.", clipped(&call.name))),
        })
    }
}

#[async_trait]
impl Environment for Search {
    fn name(&self) -> &'static str {
        NAME
    }

    fn tags(&self) -> Vec<String> {
        self.question.tags.iter().cloned().chain([idle_tag(0.0)]).collect()
    }

    fn time_rules(&self) -> TimeRules {
        match self.question.task.corpus {
            CorpusSource::Server(_) => {
                TimeRules { step: Some(SERVER_TIME), ..TimeRules::default() }
            }
            _ => TimeRules::default(),
        }
    }

    async fn reset(&mut self, _seed: Seed) -> Result<Observation, EnvironmentError> {
        let progress = self.progress.insert(Progress::default());
        let question = &self.question.task.question;
        let state_key = progress.state_key(question);
        let text = match self.question.task.prompt {
            SearchPrompt::SearchR1 if !self.uses_tools => {
                format!("{} Question: {}\n", search_r1::PROMPT, search_r1::question(question))
            }
            _ => question.clone(),
        };
        Ok(Observation { text, state_key, ..Observation::default() })
    }

    async fn prepare(&mut self) -> Result<(), EnvironmentError> {
        if self.retriever.is_some() {
            return Ok(());
        }
        let (corpora, source) = (self.resources.corpora.clone(), self.question.task.corpus.clone());
        let open = move || corpora.open(&source, &IndexFolder::of_user());
        let opened = match self.question.task.corpus {
            // Reads files, and may take long.
            CorpusSource::File(_) | CorpusSource::Paragraphs(_) => {
                tokio::task::spawn_blocking(open).await.expect("opening a corpus does not panic")
            }
            CorpusSource::Server(_) | CorpusSource::World(_) => open(),
        };
        self.retriever = Some(opened.map_err(EnvironmentError::Corpus)?);
        Ok(())
    }

    fn use_tools(&mut self) {
        self.uses_tools = true;
    }

    fn tools(&self) -> Arc<[ToolSpec]> {
        let is_over = self.progress.as_ref().is_some_and(Progress::is_over);
        if self.uses_tools && !is_over { tools() } else { Arc::default() }
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let start = Instant::now();
        let misused = |when| EnvironmentError::Misused { call: "step", when };
        let mut progress = self.progress.clone().ok_or_else(|| misused("before reset"))?;
        if progress.is_over() {
            return Err(misused("after the end"));
        }
        self.prepare().await?;
        let (observation, valid) = match action.tool_calls() {
            [] if self.uses_tools => (self.observe(&progress, CALL_A_TOOL.to_owned()), false),
            [] => self.say(&mut progress, action.said()).await?,
            calls => self.call(&mut progress, calls).await?,
        };
        let terminated = progress.is_over();
        // Only now, so that a step that is dropped on the way has done nothing.
        self.progress = Some(progress);
        Ok(Step {
            observation,
            rewards: Vec::new(),
            terminated,
            success: false,
            valid,
            wall_time: start.elapsed(),
        })
    }

    async fn verify(&mut self) -> Result<Option<Verdict>, EnvironmentError> {
        let question = &self.question;
        let judge = |progress: &Progress| progress.verdict(&question.task.answers, &question.chain);
        Ok(self.progress.as_ref().map(judge))
    }

    fn reference_answer(&self) -> Option<ReferenceAnswer> {
        Some(ReferenceAnswer::AnyOf(self.question.task.answers.clone()))
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        Ok(Some(Box::new(self.clone())))
    }

    fn oracle_action(&self) -> Option<Action> {
        let progress = self.progress.as_ref().filter(|progress| !progress.is_over())?;
        let next = progress.next_hop(&self.question.chain);
        let (name, field, text) = match next {
            Some(hop) => ("search", "query", &hop.query),
            None => ("answer", "answer", self.question.task.answers.first()?),
        };
        if self.uses_tools {
            let arguments = Map::from_iter([(field.to_owned(), Value::from(text.as_str()))]);
            return Some(Action::calls(vec![ToolCall::new(name, arguments)]));
        }
        Some(format!("<{name}>{text}</{name}>").into())
    }

    fn expert_action(&mut self) -> Option<Action> {
        // Of an invented world, every query is told by the question or by the document that the query before has found.
        match self.question.task.corpus {
            CorpusSource::World(_) => self.oracle_action(),
            _ => None,
        }
    }
}

/// What can be called.
fn tools() -> Arc<[ToolSpec]> {
    static TOOLS: OnceLock<Arc<[ToolSpec]>> = OnceLock::new();
    let tool = |name: &str, about: &str, field: &str, told: &str| {
        let properties = json!({ field: { "type": "string", "description": told } });
        let parameters = json!({
            "type": "object",
            "properties": properties,
            "required": [field],
            "additionalProperties": false,
        });
        ToolSpec::new(name, about, parameters)
    };
    let make = || {
        [
            tool(
                "search",
                "Finds documents by their words.",
                "query",
                "What to search for: words.",
            ),
            tool(
                "answer",
                "Answers the question, which ends the task.",
                "answer",
                "The answer, and nothing else.",
            ),
        ]
        .into()
    };
    Arc::clone(TOOLS.get_or_init(make))
}

fn arguments<T: DeserializeOwned>(call: &ToolCall) -> Result<T, String> {
    let arguments = Value::Object(call.arguments.clone());
    serde_json::from_value(arguments).map_err(|error| {
        format!("The arguments of `{}` do not fit: {}.", call.name, cut(&error.to_string()))
    })
}

/// The beginning of what the policy wrote, for what is told of it.
fn cut(text: &str) -> &str {
    text.char_indices().nth(200).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;

    fn task(parameters: Value) -> Task {
        Task {
            id: "search/test/0".to_owned(),
            environment: NAME.to_owned(),
            parameters,
            instruction: String::new(),
            max_turns: 12,
            tags: Vec::new(),
            graders: Vec::new(),
        }
    }

    fn generated(seed: u64, hops: usize) -> Search {
        let parameters = json!({ "seed": seed, "names": "dev", "worlds": 2, "hops": [hops, hops], "aliases": true });
        let mut search = Search::open(&task(parameters), &Resources::default()).unwrap();
        block_on(search.reset(Seed::from_u64(0))).unwrap();
        search
    }

    fn step(search: &mut Search, action: impl Into<Action>) -> Step {
        block_on(search.step(&action.into())).unwrap()
    }

    fn call(name: &str, arguments: Value) -> ToolCall {
        ToolCall::new(name, arguments.as_object().unwrap().clone())
    }

    fn verdict(search: &mut Search) -> Verdict {
        block_on(search.verify()).unwrap().unwrap()
    }

    #[test]
    fn the_oracle_searches_hop_by_hop_in_words_and_by_calls() {
        for hops in 1..=MAX_HOPS {
            for seed in 0..10 {
                for uses_tools in [false, true] {
                    let mut search = generated(seed, hops);
                    if uses_tools {
                        search.use_tools();
                    }
                    let mut turns = 0;
                    while let Some(action) = search.oracle_action() {
                        assert_eq!(search.expert_action().as_ref(), Some(&action));
                        let done = step(&mut search, action);
                        assert!(done.valid && done.rewards.is_empty());
                        turns += 1;
                    }
                    // One search may show what the next one would.
                    assert!((2..=hops + 1).contains(&turns), "{turns} turns for {hops} hops");
                    let verdict = verdict(&mut search);
                    assert!(verdict.success && verdict.reward() == 1.0, "{verdict:?}");
                    assert_eq!(verdict.artifacts["supporting_found"], 1.0);
                    assert!(
                        block_on(search.step(&"<search>a</search>".into())).is_err(),
                        "it is over"
                    );
                }
            }
        }
    }

    #[test]
    fn words_are_answered_as_search_r1_does() {
        let mut search = generated(1, 1);
        let query = search.question.chain[0].query.clone();
        let found =
            step(&mut search, format!("<think>hm</think>\n<search> {query} </search> and so"));
        let text = &found.observation.text;
        assert!(
            text.starts_with("\n\n<information>Doc 1(Title: ")
                && text.ends_with("</information>\n\n"),
            "{text}"
        );
        assert!(text.contains(&format!("(Title: {}) ", search.question.chain[0].title)));
        let nothing = step(&mut search, "<search></search>");
        assert!(nothing.valid);
        assert_eq!(nothing.observation.text, "\n\n<information></information>\n\n");
        for nonsense in ["", "Graz", "<answer>never closed", "<search>a</answer>"] {
            let step = step(&mut search, nonsense);
            assert!(!step.valid && !step.terminated);
            assert_eq!(step.observation.text, search_r1::INVALID_ACTION);
        }
        let long = step(&mut search, format!("<search>{}</search>", "a ".repeat(5_000_000)));
        assert!(
            !long.valid && long.observation.text.contains("4096 are allowed"),
            "{:?}",
            long.observation.text
        );
        let calls =
            step(&mut search, Action::calls(vec![call("search", json!({ "query": query }))]));
        assert!(!calls.valid && calls.observation.results[0].is_error, "no tools are offered");
    }

    #[test]
    fn hostile_calls_are_told_and_change_nothing() {
        let mut search = generated(2, 2);
        search.use_tools();
        let mut deep = json!(1);
        for _ in 0..100 {
            deep = json!([deep]);
        }
        let huge = "x".repeat(10 << 20);
        let calls = vec![
            call("search", json!({})),
            call("search", json!({ "query": 1 })),
            call("search", json!({ "query": null, "k": 5 })),
            call("search", json!({ "query": deep })),
            call("search", json!({ "query": huge })),
            call("answer", json!({ "answers": ["a"] })),
            call(&huge, json!({})),
        ];
        let before = search.progress.clone().unwrap().state_key("");
        let told = step(&mut search, Action::calls(calls.clone()));
        assert!(!told.valid && !told.terminated);
        assert_eq!(told.observation.results.len(), calls.len());
        assert!(told.observation.results.iter().all(|it| it.is_error && it.text.len() < 1000));
        assert_eq!(search.progress.clone().unwrap().state_key(""), before);
        let many = vec![call("search", json!({ "query": "a\u{0}') OR 1=1 -- \u{202e}" })); 1000];
        let told = step(&mut search, Action::calls(many));
        assert_eq!(told.observation.results.len(), 1000);
        assert!(told.observation.results[MOST_CALLS].text.contains("At most 16 calls"));
        assert!(!step(&mut search, "in words").valid);
    }

    #[test]
    fn cheats_earn_nothing() {
        let right = generated(3, 1).question.task.answers[0].clone();
        let others = "Port Kessin, New Velmar, barley, 1833";
        for answer in [
            format!("<answer>{others}, {right}</answer>"),
            format!("<answer>It is {right}</answer>"),
            format!("<answer>{right}</answer> <answer>Graz</answer>"),
            format!("<answer>{right}</answer><answer>{right}</answer>"),
            "<answer></answer>".to_owned(),
            "<answer> the </answer>".to_owned(),
        ] {
            let mut search = generated(3, 1);
            assert!(step(&mut search, answer.as_str()).terminated);
            let verdict = verdict(&mut search);
            assert!(!verdict.success && verdict.parts.is_empty(), "{answer}: {verdict:?}");
        }
        let mut search = generated(3, 1);
        search.use_tools();
        let answer = |text: &str| call("answer", json!({ "answer": text }));
        let all = vec![answer("Graz"), answer(&right), call("search", json!({ "query": "a" }))];
        let done = step(&mut search, Action::calls(all));
        assert!(
            done.terminated
                && done.observation.results[1].is_error
                && done.observation.results[2].is_error
        );
        assert!(!verdict(&mut search).success);
        // The first of several that is right is one of several as well.
        let mut search = generated(3, 1);
        search.use_tools();
        step(&mut search, Action::calls(vec![answer(&right), answer("Graz")]));
        assert!(!verdict(&mut search).success);
    }

    #[test]
    fn repeated_searches_are_counted_and_earn_nothing() {
        let mut search = generated(4, 1);
        let query = search.question.chain[0].query.clone();
        let first = step(&mut search, format!("<search>{query}</search>"));
        let again = step(&mut search, format!("<search>{}</search>", query.to_uppercase()));
        assert_eq!(first.observation, again.observation, "the situation is the same");
        let verdict = verdict(&mut search);
        assert_eq!(
            (verdict.artifacts["searches"].clone(), verdict.artifacts["repeated_searches"].clone()),
            (json!(2), json!(1))
        );
        assert!(!verdict.success && verdict.reward() == 0.0);
    }

    #[test]
    fn parameters_that_make_no_sense_are_refused() {
        let told = |parameters: Value| {
            Search::open(&task(parameters), &Resources::default()).unwrap_err().to_string()
        };
        let says =
            told(json!({ "seed": 1, "names": "dev", "hops": [3, 2], "worlds": 0, "results": 1 }));
        assert!(says.contains("`hops` is [3, 2]") && says.contains("`worlds` is 0"), "{says}");
        assert!(
            told(json!({ "seed": 1, "names": "dev", "results": 0 })).contains("`results` is 0")
        );
        assert!(told(json!({ "seed": 1, "names": "dev", "depth": 0 })).contains("depth"));
        assert!(
            told(json!({ "question": " ", "answers": [], "corpus": { "server": "a" } }))
                .contains("`question` is empty")
        );
    }

    #[tokio::test]
    async fn files_of_documents_are_searched_and_broken_ones_fail_the_episode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.jsonl");
        std::fs::write(
            &path,
            "{\"id\": \"0\", \"contents\": \"\\\"Anna Weber\\\"\\nShe was born in Graz.\"}\n",
        )
        .unwrap();
        let parameters = |path: &std::path::Path| {
            json!({
                "question": "where was Anna Weber born", "answers": ["Graz"], "supporting": ["\"Anna Weber\""],
                "corpus": { "file": path }, "prompt": "search_r1",
            })
        };
        let mut search = Search::open(&task(parameters(&path)), &Resources::default()).unwrap();
        let shown = search.reset(Seed::from_u64(0)).await.unwrap().text;
        assert!(
            shown.ends_with("<answer> Beijing </answer>. Question: where was Anna Weber born?\n"),
            "{shown}"
        );
        search.prepare().await.unwrap();
        let action = search.oracle_action().unwrap();
        assert_eq!(action.said(), "<search>Anna Weber</search>");
        let step = search.step(&action).await.unwrap();
        assert_eq!(
            step.observation.text,
            "\n\n<information>Doc 1(Title: \"Anna Weber\") She was born in Graz.</information>\n\n"
        );
        assert_eq!(search.oracle_action().unwrap().said(), "<answer>Graz</answer>");
        let missing = folder.path().join("none.jsonl");
        let mut broken = Search::open(&task(parameters(&missing)), &Resources::default()).unwrap();
        broken.reset(Seed::from_u64(0)).await.unwrap();
        let error = broken.prepare().await.unwrap_err();
        assert!(matches!(error, EnvironmentError::Corpus(_)), "{error}");
    }
}
