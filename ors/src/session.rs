//! One task of a server, under way.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::Method;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use spar_core::ToolSpec;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::answers::{Block, Tools, content_of, read_answer};
use crate::server::Ask;
use crate::{OrsAnswer, OrsContent, OrsError, OrsFault, OrsServer};

/// Pings that fail one behind the other before the session is given up.
const MOST_FAILED_PINGS: u32 = 6;

/// One task of a server, under way; its server is pinged as long as it lives. Dropping it tells the server nothing, which
/// ends sessions that nobody pings by itself.
#[derive(Debug)]
pub struct OrsSession {
    server: OrsServer,
    environment: String,
    id: String,
    prompt: OrsContent,
    tools: Arc<[ToolSpec]>,
    /// Why it is no more, where pings found that out.
    ended: Arc<Mutex<Option<OrsFault>>>,
    pings: JoinHandle<()>,
}

impl Drop for OrsSession {
    fn drop(&mut self) {
        self.pings.abort();
    }
}

impl OrsSession {
    pub(crate) async fn begin(
        server: OrsServer,
        environment: &str,
        task: Value,
    ) -> Result<Self, OrsError> {
        // 1. The id of the session, which is that of the task that makes it, and the session itself.
        let doing = "give a session";
        let ask = Ask {
            doing,
            method: Method::POST,
            path: &["create_session"],
            session: None,
            body: Some(json!({})),
        };
        let (id, _) = server.ask_events(ask).await?;
        let is_id =
            |id: &String| (1..=200).contains(&id.len()) && id.chars().all(|c| c.is_ascii_graphic());
        let id = id.filter(is_id).ok_or_else(|| server.no_answer(doing, "it has no id"))?;
        let post = |doing, path, body| Ask {
            doing,
            method: Method::POST,
            path,
            session: Some(id.as_str()),
            body,
        };
        let _: IgnoredAny = server.ask(post("begin a task", &["create"], Some(task))).await?;
        // 2. The server sets it up meanwhile: whoever asks for the prompt waits for that.
        let ended = Arc::default();
        let pings = tokio::spawn(ping(server.clone(), id.clone(), Arc::clone(&ended)));
        let mut session = Self {
            server,
            environment: environment.to_owned(),
            id: id.clone(),
            prompt: OrsContent::default(),
            tools: Arc::default(),
            ended,
            pings,
        };
        let learned = session.learn().await;
        if let Err(error) = learned {
            let _ = session.close().await;
            return Err(error);
        }
        Ok(session)
    }

    /// Asks for the prompt and the tools.
    async fn learn(&mut self) -> Result<(), OrsError> {
        let (server, limits) = (&self.server, &self.server.limits);
        let (environment, session) = (self.environment.as_str(), Some(self.id.as_str()));
        let [prompt, task_tools, tools] =
            ["prompt", "task_tools", "tools"].map(|what| [environment, what]);
        let get = |doing, path| Ask { doing, method: Method::GET, path, session, body: None };
        let doing = "tell the prompt";
        let blocks: Vec<Block> = server.ask(get(doing, &prompt)).await?;
        let prompt = content_of(blocks, limits.media_bytes, limits.items);
        let prompt = prompt.map_err(|detail| server.no_answer(doing, &detail))?;
        let doing = "list its tools";
        let listed = server.ask(get(doing, &task_tools)).await;
        let Tools { tools } = match listed {
            // Servers of before had no tools of single tasks.
            Err(OrsError { fault: OrsFault::Status { status: 404, .. }, .. }) => {
                server.ask(get(doing, &tools)).await?
            }
            listed => listed?,
        };
        let mut specs: Vec<ToolSpec> = Vec::new();
        for tool in server.bounded(doing, tools)? {
            let spec = tool.spec().map_err(|detail| server.no_answer(doing, &detail))?;
            if specs.iter().any(|other| other.name == spec.name) {
                let detail = format!("it has two tools `{}`", spec.name);
                return Err(server.no_answer(doing, &detail));
            }
            specs.push(spec);
        }
        (self.prompt, self.tools) = (prompt, specs.into());
        Ok(())
    }

    /// What the task is, as the policy is to read it.
    pub fn prompt(&self) -> &OrsContent {
        &self.prompt
    }

    /// What it offers: tools of the environment and of the task.
    pub fn tools(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.tools)
    }

    /// Calls a tool, which may take as long as `limit`. The standard has no way to tell a server that an answer is not
    /// waited for any more: one that is late goes on with the call.
    ///
    /// # Errors
    ///
    /// [`OrsError`] where the server did something that it should not, or nothing in time.
    pub async fn call(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        limit: Duration,
    ) -> Result<OrsAnswer, OrsError> {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(fault) = ended {
            return Err(self.server.error(fault));
        }
        let doing = format!("answer a call of `{}`", tool.chars().take(64).collect::<String>());
        let ask = Ask {
            doing: &doing,
            method: Method::POST,
            path: &[&self.environment, "call"],
            session: Some(&self.id),
            body: Some(json!({ "name": tool, "input": arguments })),
        };
        let asked = self.server.ask_events(ask);
        let (_, text) = self.server.within(limit, &doing, asked).await?;
        let limits = &self.server.limits;
        let answer = read_answer(&text, limits.media_bytes, limits.items);
        answer.map_err(|detail| self.server.no_answer(&doing, &detail))
    }

    /// Ends it.
    ///
    /// # Errors
    ///
    /// [`OrsError`] when the server did not say that it has.
    pub async fn close(self) -> Result<(), OrsError> {
        self.pings.abort();
        let end = async |path: &'static str| {
            let doing = "end a session";
            let ask = Ask {
                doing,
                method: Method::POST,
                path: &[path],
                session: Some(&self.id),
                body: None,
            };
            let asked = self.server.ask::<IgnoredAny>(ask);
            self.server.within(self.server.limits.request, doing, asked).await.map(drop)
        };
        let ended = end("delete").await;
        ended.and(end("delete_session").await)
    }
}

/// Tells a server again and again that a session is wanted, until it knows it no more.
async fn ping(server: OrsServer, id: String, ended: Arc<Mutex<Option<OrsFault>>>) {
    let mut failed = 0;
    while failed < MOST_FAILED_PINGS {
        sleep(server.limits.ping).await;
        let ask = Ask {
            doing: "answer a ping",
            method: Method::POST,
            path: &["ping"],
            session: Some(&id),
            body: None,
        };
        let asked = server.ask::<IgnoredAny>(ask);
        let Err(error) = server.within(server.limits.request, "answer a ping", asked).await else {
            failed = 0;
            continue;
        };
        tracing::debug!(%error, "a ping failed");
        failed += 1;
        let is_gone = matches!(error.fault, OrsFault::Status { status: 404 | 410, .. });
        if is_gone || failed >= MOST_FAILED_PINGS {
            let detail = error.fault.to_string();
            let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
            *ended = Some(OrsFault::Ended { detail });
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FakeFault, FakeServer, OrsLimits, OrsTaskChoice};

    const LIMIT: Duration = Duration::from_secs(5);

    fn short() -> OrsLimits {
        OrsLimits {
            start: Duration::from_secs(2),
            request: Duration::from_secs(2),
            silence: Duration::from_millis(300),
            ping: Duration::from_millis(20),
            answer_bytes: 100_000,
            ..OrsLimits::default()
        }
    }

    async fn begun(fault: Option<FakeFault>) -> (FakeServer, Result<OrsSession, OrsError>) {
        let running = FakeServer::start(fault).await.unwrap();
        let server = OrsServer::new(&running.address(), short()).unwrap();
        let task = OrsTaskChoice::Index { split: "train".to_owned(), index: 4 };
        let session = server.begin("sums", &task).await;
        (running, session)
    }

    fn answer(text: &str) -> Map<String, Value> {
        json!({ "answer": text }).as_object().unwrap().clone()
    }

    #[tokio::test]
    async fn a_session_is_played_and_ended() {
        let (running, session) = begun(None).await;
        let session = session.unwrap();
        let names: Vec<_> = session.tools().iter().map(|tool| tool.name.clone()).collect();
        assert_eq!(names, ["add", "answer", "look"]);
        assert_eq!(session.prompt().text, "What is 4 + 1?");
        let told = session.call("nothing", &Map::new(), LIMIT).await.unwrap();
        assert_eq!(told, OrsAnswer::Told("'nothing' is not a valid tool".to_owned()));
        let OrsAnswer::Done(look) = session.call("look", &Map::new(), LIMIT).await.unwrap() else {
            panic!()
        };
        assert_eq!((look.content.media.len(), look.reward, look.finished), (1, None, false));
        let OrsAnswer::Done(end) = session.call("answer", &answer("6"), LIMIT).await.unwrap()
        else {
            panic!()
        };
        assert_eq!((end.reward, end.finished), (Some(0.0), true));
        sleep(Duration::from_millis(100)).await;
        assert!(running.pings() > 0, "the session was held");
        session.close().await.unwrap();
        assert_eq!(running.sessions(), 0);
    }

    #[tokio::test]
    async fn a_stream_that_breaks_off_is_taken_up_and_the_call_done_once() {
        let (running, session) = begun(Some(FakeFault::BreaksOffOnce)).await;
        let sum = json!({ "a": 2, "b": 3 }).as_object().unwrap().clone();
        let answer = session.unwrap().call("add", &sum, LIMIT).await.unwrap();
        let OrsAnswer::Done(output) = answer else { panic!() };
        assert_eq!(output.content.text, "5");
        assert_eq!(running.calls(), 1);
    }

    #[tokio::test]
    async fn whatever_a_server_does_is_a_fault_in_bounded_time_and_size() {
        use FakeFault::*;
        let fault = async |fault: FakeFault| {
            let (_running, session) = begun(Some(fault)).await;
            let sum = json!({ "a": 2, "b": 3 }).as_object().unwrap().clone();
            let error = match session {
                Ok(session) => session.call("add", &sum, LIMIT).await.unwrap_err(),
                Err(error) => error,
            };
            assert!(error.to_string().len() < 1000, "{error}");
            error.fault
        };
        assert!(matches!(fault(Stalls).await, OrsFault::Silent { .. }));
        assert!(matches!(fault(Floods).await, OrsFault::TooLong { bytes: 100_000, .. }));
        assert!(matches!(fault(BabblesPrompt).await, OrsFault::TooLong { .. }));
        for wrong in [NoJson, DeepJson, InfiniteReward, WrongTypes, NoUtf8] {
            let found = fault(wrong).await;
            assert!(matches!(found, OrsFault::Answer { .. }), "{wrong:?}: {found:?}");
        }
        assert!(matches!(fault(BreaksOff).await, OrsFault::Broken { .. }));
        let OrsFault::Raised { message, .. } = fault(Raises).await else { panic!() };
        assert_eq!(message, "division by zero");
        let OrsFault::Status { status: 500, message, .. } = fault(Refuses).await else { panic!() };
        assert_eq!(message, "Internal Server Error");
        let OrsFault::Status { status: 308, .. } = fault(Redirects).await else { panic!() };
        let found = fault(StallsPrompt).await;
        assert!(matches!(found, OrsFault::Late { .. }), "{found:?}");
    }

    #[tokio::test]
    async fn a_call_has_its_time_and_a_session_that_was_ended_is_known_to_be() {
        let (_running, session) = begun(Some(FakeFault::Heartbeats)).await;
        let limit = Duration::from_millis(700);
        let late = session.unwrap().call("add", &Map::new(), limit).await.unwrap_err();
        assert!(matches!(late.fault, OrsFault::Late { limit: found, .. } if found == limit));
        let (running, session) = begun(None).await;
        let session = session.unwrap();
        running.forget_sessions();
        sleep(Duration::from_millis(200)).await;
        let ended = session.call("add", &Map::new(), LIMIT).await.unwrap_err();
        assert!(matches!(ended.fault, OrsFault::Ended { .. }), "{ended}");
        drop(running);
        let at = crate::OrsAddress { url: "http://127.0.0.1:9".to_owned(), ..Default::default() };
        let nobody = OrsServer::new(&at, short()).unwrap().environments().await.unwrap_err();
        assert!(matches!(nobody.fault, OrsFault::Broken { .. } | OrsFault::Late { .. }));
        let wrong = crate::OrsAddress { url: "file:///a".to_owned(), ..Default::default() };
        assert!(OrsServer::new(&wrong, short()).is_err());
    }
}
