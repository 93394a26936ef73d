//! The tools of a task, as one.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use spar_core::registry::known_names;
use spar_core::{ToolCall, ToolResult, ToolSpec};
use spar_sandbox::Captured;
use tokio::time::timeout;

use super::{Tool, ToolChoice, ToolError, ToolLimits, ToolOutput, ToolPlace};
use crate::EnvironmentError;

/// What a tool may take beyond the time of a call, to end what it is about; then it hangs.
const GRACE: Duration = Duration::from_secs(30);
/// Tools that are offered at the most.
const MOST_OFFERED: usize = 1024;

/// The tools of a task: offers them under names that tell them apart, and carries out calls in bounded time and size.
///
/// A name that several of them offer gets a prefix in each, as those have anyway that were given one.
pub struct Toolbox {
    tools: Vec<OpenedTool>,
    limits: ToolLimits,
    /// What each offered when names were last given.
    seen: Vec<Arc<[ToolSpec]>>,
    offered: Arc<[ToolSpec]>,
    /// By the name that is offered: the tool, and the name that it knows.
    routes: Arc<HashMap<String, (usize, String)>>,
}

/// A tool within a toolbox.
pub struct OpenedTool {
    /// What it is called in messages, and before names that others offer as well: letters, digits, `_`, `-` or `.`.
    pub label: String,
    /// Whether the label stands before all of its names.
    pub has_prefix: bool,
    /// The tool.
    pub tool: Box<dyn Tool>,
}

impl Toolbox {
    /// Tools that were opened.
    pub fn new(tools: Vec<OpenedTool>, limits: ToolLimits) -> Self {
        let (offered, routes) = (Arc::default(), Arc::default());
        let mut toolbox = Self { tools, limits, seen: Vec::new(), offered, routes };
        toolbox.name_all();
        toolbox
    }

    /// Opens the tools of a task.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] of the first that cannot be opened.
    pub fn open(
        choices: &[ToolChoice],
        limits: ToolLimits,
        place: &ToolPlace<'_>,
    ) -> Result<Self, EnvironmentError> {
        let open = |(index, choice): (usize, &ToolChoice)| {
            let place = ToolPlace { seed: place.seed.derive("tool", index), ..*place };
            Ok(OpenedTool {
                label: choice.label(),
                has_prefix: choice.prefix.is_some(),
                tool: choice.open(&place)?,
            })
        };
        let tools = choices.iter().enumerate().map(open);
        Ok(Self::new(tools.collect::<Result<_, EnvironmentError>>()?, limits))
    }

    /// What is offered now; the same `Arc` as long as nothing has changed.
    pub fn specs(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.offered)
    }

    /// The limits of calls.
    pub fn limits(&self) -> &ToolLimits {
        &self.limits
    }

    /// How long all calls of a turn may take.
    pub fn turn_time(&self) -> Duration {
        Duration::from_secs_f64(self.limits.call_secs * self.limits.calls_per_turn as f64)
    }

    /// Brings up what calls need, of all tools at once.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] of the first that fails.
    pub async fn prepare(&mut self) -> Result<(), EnvironmentError> {
        let each = self.tools.iter_mut().map(|opened| opened.tool.prepare());
        futures::future::try_join_all(each).await?;
        self.name_all();
        Ok(())
    }

    /// Whether one of the tools has something to [show first](Self::first).
    pub fn shows_first(&self) -> bool {
        self.tools.iter().any(|opened| opened.tool.shows_first())
    }

    /// What the tools show before anything is called, within the limits of a result each.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] of the first that fails.
    pub async fn first(&mut self) -> Result<ToolOutput, EnvironmentError> {
        let mut shown = ToolOutput::default();
        for index in 0..self.tools.len() {
            if !self.tools[index].tool.shows_first() {
                continue;
            }
            let output = self.tools[index].tool.first().await?;
            let ToolResult { text, media, .. } =
                self.bounded(&ToolCall::new("first", serde_json::Map::new()), output);
            if !shown.text.is_empty() && !text.is_empty() {
                shown.text.push_str("\n\n");
            }
            shown.text.push_str(&text);
            shown.media.extend(media);
        }
        Ok(shown)
    }

    /// Carries out a call, within its limits; what is wrong with it is told in the result.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] where a tool broke.
    pub async fn call(&mut self, call: &ToolCall) -> Result<ToolResult, EnvironmentError> {
        let Some((index, name)) = self.routes.get(&call.name) else {
            return Ok(ToolResult::error(call, self.unknown(&call.name)));
        };
        if let Some(refusal) = self.limits.refusal(&call.arguments) {
            return Ok(ToolResult::error(call, refusal));
        }
        let index = *index;
        let inner = (*name != call.name).then(|| ToolCall { name: name.clone(), ..call.clone() });
        let limit = Duration::from_secs_f64(self.limits.call_secs);
        let tool = &mut self.tools[index].tool;
        let answered = timeout(limit + GRACE, tool.call(inner.as_ref().unwrap_or(call), limit));
        let answered = answered.await.map_err(|_| EnvironmentError::Late {
            doing: "answer a call of a tool",
            seconds: (limit + GRACE).as_secs(),
        })?;
        let specs = tool.specs();
        if !Arc::ptr_eq(&specs, &self.seen[index]) {
            self.name_all();
        }
        match answered {
            Ok(output) => Ok(self.bounded(call, output)),
            Err(ToolError::Told(text)) => {
                Ok(ToolResult::error(call, shortened(text, self.limits.result_bytes)))
            }
            Err(ToolError::Failed(error)) => Err(error),
        }
    }

    /// Carries out the calls of a turn, one after the other: a result for each, in their order.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] where a tool broke.
    pub async fn call_all(
        &mut self,
        calls: &[ToolCall],
    ) -> Result<Vec<ToolResult>, EnvironmentError> {
        let mut results = Vec::with_capacity(calls.len());
        for (number, call) in calls.iter().enumerate() {
            results.push(match self.is_beyond(number) {
                Some(refusal) => ToolResult::error(call, refusal),
                None => self.call(call).await?,
            });
        }
        Ok(results)
    }

    /// Why the call of this number in a turn, from 0, is not carried out; absent where it is.
    pub fn is_beyond(&self, number: usize) -> Option<String> {
        let most = self.limits.calls_per_turn;
        (number >= most).then(|| format!("At most {most} calls are carried out in a turn."))
    }

    /// A second toolbox in the same state; absent where one of the tools cannot be copied.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] of the first that fails.
    pub async fn fork(&mut self) -> Result<Option<Self>, EnvironmentError> {
        let mut tools = Vec::with_capacity(self.tools.len());
        for OpenedTool { label, has_prefix, tool } in &mut self.tools {
            match tool.fork().await? {
                Some(tool) => {
                    tools.push(OpenedTool { label: label.clone(), has_prefix: *has_prefix, tool });
                }
                None => {
                    for mut opened in tools {
                        opened.tool.close().await?;
                    }
                    return Ok(None);
                }
            }
        }
        let seen: Vec<_> = tools.iter().map(|opened| opened.tool.specs()).collect();
        let is_same = seen.iter().zip(&self.seen).all(|(one, other)| Arc::ptr_eq(one, other));
        let limits = self.limits.clone();
        if !is_same {
            return Ok(Some(Self::new(tools, limits)));
        }
        let (offered, routes) = (Arc::clone(&self.offered), Arc::clone(&self.routes));
        Ok(Some(Self { tools, limits, seen, offered, routes }))
    }

    /// Gives back what the tools hold, of all even where one fails.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] of the first that failed.
    pub async fn close(&mut self) -> Result<(), EnvironmentError> {
        let each = self.tools.iter_mut().map(|opened| opened.tool.close());
        futures::future::join_all(each).await.into_iter().collect()
    }

    /// Gives names to what is offered.
    fn name_all(&mut self) {
        self.seen = self.tools.iter().map(|opened| opened.tool.specs()).collect();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for spec in self.seen.iter().flat_map(|specs| specs.iter()) {
            *counts.entry(&spec.name).or_default() += 1;
        }
        let (mut offered, mut routes) = (Vec::new(), HashMap::new());
        for (index, (opened, specs)) in self.tools.iter().zip(&self.seen).enumerate() {
            for spec in specs.iter().take(MOST_OFFERED - offered.len()) {
                let has_prefix = opened.has_prefix || counts[spec.name.as_str()] > 1;
                let plain = match has_prefix {
                    true => format!("{}_{}", opened.label, spec.name),
                    false => spec.name.clone(),
                };
                let name = free_name(plain, |name| routes.contains_key(name));
                routes.insert(name.clone(), (index, spec.name.clone()));
                offered.push(ToolSpec { name, ..spec.clone() });
            }
        }
        (self.offered, self.routes) = (offered.into(), Arc::new(routes));
    }

    fn unknown(&self, name: &str) -> String {
        let name: String = name.chars().take(64).collect();
        match known_names(&name, self.offered.iter().map(|spec| spec.name.as_str())) {
            none if none.is_empty() => format!("There is no tool `{name}`, nor any other."),
            known => format!("There is no tool `{name}`, only {known}."),
        }
    }

    /// A result within the limits of its text and media.
    fn bounded(&self, call: &ToolCall, output: ToolOutput) -> ToolResult {
        let ToolOutput { text, media } = output;
        let mut result = ToolResult::new(call, shortened(text, self.limits.result_bytes));
        let (mut left, mut left_out) = (self.limits.media_bytes, 0);
        for medium in media {
            match medium.bytes().ok().and_then(|bytes| left.checked_sub(bytes.len())) {
                Some(rest) => {
                    left = rest;
                    result.media.push(medium);
                }
                None => left_out += 1,
            }
        }
        if left_out > 0 {
            result.text.push_str(&format!("\n[{left_out} media left out: too large]"));
        }
        result
    }
}

/// A text of at most so many bytes and a note, the middle left out.
fn shortened(text: String, most_bytes: usize) -> String {
    if text.len() <= most_bytes {
        return text;
    }
    let mut captured = Captured::new(most_bytes);
    captured.push(text.as_bytes());
    captured.text()
}

/// A name that a tool may have, and that no other has: at most 64 characters, with a number behind it where it is taken.
fn free_name(plain: String, is_taken: impl Fn(&str) -> bool) -> String {
    let cut = |most: usize| plain.chars().take(most).collect::<String>();
    let first = cut(64);
    if !is_taken(&first) {
        return first;
    }
    let mut numbered = (2_u32..).map(|number| format!("{}_{number}", cut(57)));
    numbered.find(|name| !is_taken(name)).expect("there are more numbers than tools")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::json;
    use spar_core::Media;

    use super::*;
    use crate::tools::{FunctionTool, spec_of, too_slow};

    /// Waits, or fails, or shows something.
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Do {
        /// What.
        what: String,
    }

    fn arguments(what: &str) -> serde_json::Map<String, serde_json::Value> {
        json!({ "what": what }).as_object().unwrap().clone()
    }

    /// A tool that does as it is told, and offers one more where it is told to.
    struct Obedient(Arc<[ToolSpec]>);

    impl Obedient {
        fn new() -> Self {
            Self([spec_of::<Do>("do")].into())
        }
    }

    #[async_trait]
    impl Tool for Obedient {
        fn specs(&self) -> Arc<[ToolSpec]> {
            Arc::clone(&self.0)
        }

        async fn call(
            &mut self,
            call: &ToolCall,
            limit: Duration,
        ) -> Result<ToolOutput, ToolError> {
            match call.arguments["what"].as_str().unwrap() {
                "wait" => Err(match timeout(limit, std::future::pending::<()>()).await {
                    Ok(()) | Err(_) => too_slow(&call.name, limit),
                }),
                "hang" => std::future::pending().await,
                "break" => Err(EnvironmentError::Misused { call: "a tool", when: "now" }.into()),
                "talk" => Ok("é".repeat(1000).into()),
                "show" => {
                    let media =
                        [10, 100, 20].map(|size| Media::new("image/png", vec![size as u8; size]));
                    Ok(ToolOutput { text: "Look.".to_owned(), media: media.to_vec() })
                }
                "grow" => {
                    let more = spec_of::<Do>("more");
                    self.0 = self.0.iter().cloned().chain([more]).collect();
                    Ok(call.name.as_str().into())
                }
                _ => Ok(call.name.as_str().into()),
            }
        }
    }

    fn toolbox(labels: &[&str]) -> Toolbox {
        let open = |label: &&str| OpenedTool {
            label: (*label).to_owned(),
            has_prefix: false,
            tool: Box::new(Obedient::new()),
        };
        let limits = ToolLimits {
            calls_per_turn: 2,
            result_bytes: 100,
            media_bytes: 40,
            ..ToolLimits::default()
        };
        Toolbox::new(labels.iter().map(open).collect(), limits)
    }

    fn names(toolbox: &Toolbox) -> Vec<String> {
        toolbox.specs().iter().map(|spec| spec.name.clone()).collect()
    }

    #[tokio::test]
    async fn names_that_clash_get_the_label_and_what_is_offered_may_change() {
        let mut one = toolbox(&["a"]);
        assert_eq!(names(&one), ["do"]);
        let before = one.specs();
        let grow = ToolCall::new("do", arguments("grow"));
        assert_eq!(one.call(&grow).await.unwrap().text, "do");
        assert_eq!(names(&one), ["do", "more"]);
        assert!(!Arc::ptr_eq(&before, &one.specs()));
        let mut two = toolbox(&["a", "b", "b"]);
        assert_eq!(names(&two), ["a_do", "b_do", "b_do_2"]);
        let call = ToolCall::new("b_do_2", arguments("grow"));
        // The tool knows its own name alone.
        assert_eq!(two.call(&call).await.unwrap().text, "do");
        assert_eq!(names(&two), ["a_do", "b_do", "b_do_2", "more"]);
        let unknown = two.call(&ToolCall::new("do", arguments("x"))).await.unwrap();
        assert!(unknown.is_error && unknown.text.starts_with("There is no tool `do`, only `"));
    }

    #[tokio::test(start_paused = true)]
    async fn calls_are_bounded_in_time_size_and_number() {
        let mut toolbox = toolbox(&["a"]);
        let call = |what: &str| ToolCall::new("do", arguments(what));
        let waited = toolbox.call(&call("wait")).await.unwrap();
        assert_eq!(waited.text, "`do` was not done within 30 s, and was stopped.");
        let hung = toolbox.call(&call("hang")).await.unwrap_err();
        assert!(matches!(hung, EnvironmentError::Late { seconds: 60, .. }), "{hung}");
        let broken = toolbox.call(&call("break")).await.unwrap_err();
        assert!(matches!(broken, EnvironmentError::Misused { .. }));
        let long = toolbox.call(&call("talk")).await.unwrap();
        assert!(long.text.contains("[... 1900 bytes left out ...]") && long.text.len() < 150);
        let shown = toolbox.call(&call("show")).await.unwrap();
        assert_eq!(shown.media.len(), 2);
        assert_eq!(shown.text, "Look.\n[1 media left out: too large]");
        let results = toolbox.call_all(&vec![call("x"); 3]).await.unwrap();
        let errors: Vec<_> = results.iter().map(|result| result.is_error).collect();
        assert_eq!(errors, [false, false, true]);
        assert_eq!(results[2].text, "At most 2 calls are carried out in a turn.");
    }

    /// Waits without a future, as a computation does.
    #[derive(Deserialize, JsonSchema)]
    struct Compute {}

    /// Waits as a request does.
    struct Request(Arc<[ToolSpec]>);

    const SLOW: Duration = Duration::from_millis(800);

    #[async_trait]
    impl Tool for Request {
        fn specs(&self) -> Arc<[ToolSpec]> {
            Arc::clone(&self.0)
        }

        async fn call(&mut self, _: &ToolCall, _: Duration) -> Result<ToolOutput, ToolError> {
            tokio::time::sleep(SLOW).await;
            Ok("answered".into())
        }
    }

    /// Of the property that VerlTool states (arXiv 2509.01055): episodes whose tools are slow hold up no others.
    #[test]
    fn slow_tools_of_some_episodes_hold_up_no_others() {
        static SLOW_DONE: AtomicUsize = AtomicUsize::new(0);
        static COUNTED: AtomicUsize = AtomicUsize::new(0);
        let quick = || -> Box<dyn Tool> {
            Box::new(FunctionTool::<Compute, ()>::new("quick", (), |(), Compute {}| {
                COUNTED.fetch_add(1, Ordering::Relaxed);
                Ok("done".into())
            }))
        };
        let computing = || -> Box<dyn Tool> {
            Box::new(FunctionTool::<Compute, ()>::blocking("slow", (), |(), Compute {}| {
                std::thread::sleep(SLOW);
                Ok("computed".into())
            }))
        };
        let requesting =
            || -> Box<dyn Tool> { Box::new(Request([spec_of::<Compute>("slow")].into())) };
        let boxed = |tool: Box<dyn Tool>| {
            let opened = OpenedTool { label: "it".to_owned(), has_prefix: false, tool };
            Toolbox::new(vec![opened], ToolLimits::default())
        };
        // Far more slow calls at one time than there are threads for futures.
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).enable_time().build().unwrap();
        runtime.block_on(async {
            let mut slow = Vec::new();
            for number in 0..60 {
                let mut toolbox = boxed(if number % 2 == 0 { computing() } else { requesting() });
                slow.push(tokio::spawn(async move {
                    let result = toolbox.call(&ToolCall::new("slow", Default::default())).await;
                    SLOW_DONE.fetch_add(1, Ordering::Relaxed);
                    assert!(!result.unwrap().is_error);
                }));
            }
            let mut others = Vec::new();
            for _ in 0..20 {
                let mut toolbox = boxed(quick());
                others.push(tokio::spawn(async move {
                    for _ in 0..25 {
                        let call = ToolCall::new("quick", Default::default());
                        assert!(!toolbox.call(&call).await.unwrap().is_error);
                        tokio::task::yield_now().await;
                    }
                }));
            }
            for other in others {
                other.await.unwrap();
            }
            assert_eq!(COUNTED.load(Ordering::Relaxed), 500);
            assert_eq!(SLOW_DONE.load(Ordering::Relaxed), 0, "the others came first, all of them");
            for slow in slow {
                slow.await.unwrap();
            }
        });
    }

    #[tokio::test]
    async fn a_computation_that_takes_too_long_is_told_and_changes_nothing() {
        let mut tool = FunctionTool::<Compute, u32>::blocking("slow", 0, |count, Compute {}| {
            *count += 1;
            if *count == 2 {
                std::thread::sleep(Duration::from_millis(300));
            }
            Ok(count.to_string().into())
        });
        let call = ToolCall::new("slow", Default::default());
        let limit = Duration::from_millis(100);
        assert_eq!(tool.call(&call, limit).await.unwrap().text, "1");
        let late = tool.call(&call, limit).await.unwrap_err();
        assert_eq!(late.to_string(), "`slow` was not done within 0.1 s, and was stopped.");
        assert_eq!(tool.call(&call, Duration::from_secs(5)).await.unwrap().text, "2");
    }
}
