//! One connection with one server.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ClientRequest,
    ErrorData, GetPromptRequestParams, GetPromptResult, Implementation, ListPromptsResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResult, Request, RequestNoParam, RequestOptionalParam, ServerResult,
    Tool as ServerTool,
};
use rmcp::service::{PeerRequestOptions, RunningService};
use rmcp::transport::Transport;
use rmcp::{RoleClient, ServiceError, serve_client};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use spar_core::ToolSpec;
use spar_sandbox::output::shortened;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::content::{of_call, of_prompt, of_resource};
use crate::event_stream::{self, EventLines};
use crate::line_transport::LineTransport;
use crate::watched::{Watch, Watched};
use crate::{CallFailure, McpError, McpFault, McpHttpServer, McpLimits, McpOutput};

/// Pages of a list.
const MOST_PAGES: usize = 256;
/// How long a server that was too late with a call may take to show that it lives.
const PING: Duration = Duration::from_secs(10);
/// What is waited beyond a limit that is kept elsewhere, and for a connection to close.
const GRACE: Duration = Duration::from_secs(2);
/// Characters of a server's words within messages.
const MOST_QUOTED: usize = 400;

/// The streams of a server that is a process.
pub struct McpServerStreams {
    stdin: Box<dyn AsyncWrite + Send + Unpin>,
    stdout: Box<dyn AsyncRead + Send + Unpin>,
    stderr: Box<dyn AsyncRead + Send + Unpin>,
}

impl McpServerStreams {
    /// These streams: what the server reads, what it answers, and what it says to people.
    pub fn new(
        stdin: impl AsyncWrite + Send + Unpin + 'static,
        stdout: impl AsyncRead + Send + Unpin + 'static,
        stderr: impl AsyncRead + Send + Unpin + 'static,
    ) -> Self {
        Self { stdin: Box::new(stdin), stdout: Box::new(stdout), stderr: Box::new(stderr) }
    }
}

/// A resource, or a prompt, that a server offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    /// What it is asked for by: the URI of a resource, the name of a prompt.
    pub key: String,
    /// What it is; empty where the server says nothing.
    pub about: String,
    /// The names of a prompt's arguments, those that have to be given with `*` behind them.
    pub arguments: Vec<String>,
}

/// One connection with one server. Dropping it closes the connection.
#[derive(Debug)]
pub struct McpClient {
    server: String,
    limits: McpLimits,
    watch: Arc<Watch>,
    service: RunningService<RoleClient, ClientConfig>,
    /// The server's name of a tool by the one that is offered, where they differ.
    names: HashMap<String, String>,
    listener: Option<JoinHandle<()>>,
}

impl Drop for McpClient {
    fn drop(&mut self) {
        if let Some(listener) = &self.listener {
            listener.abort();
        }
    }
}

impl McpClient {
    /// Takes up a connection over the streams of a process.
    ///
    /// # Errors
    ///
    /// [`McpError`] when the server does not take it up in time.
    pub async fn over_streams(
        server: impl Into<String>,
        streams: McpServerStreams,
        limits: McpLimits,
    ) -> Result<Self, McpError> {
        let watch = Arc::new(Watch::default());
        let McpServerStreams { stdin, stdout, mut stderr } = streams;
        let heard = Arc::clone(&watch);
        let listener = tokio::spawn(async move {
            let mut buffer = vec![0; 4096];
            while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
                heard.hear_error(&buffer[..count]);
            }
        });
        let lines = LineTransport::new(stdin, stdout, limits.message_bytes, Arc::clone(&watch));
        Self::begin(server.into(), lines, watch, limits, Some(listener)).await
    }

    /// Takes up a connection over HTTP.
    ///
    /// # Errors
    ///
    /// [`McpError`] when the URL or a header is wrong, or the server does not take it up in time.
    pub async fn over_http(
        server: impl Into<String>,
        at: &McpHttpServer,
        limits: McpLimits,
    ) -> Result<Self, McpError> {
        let (server, watch) = (server.into(), Arc::new(Watch::default()));
        let transport = at.transport(&limits).map_err(|detail| McpError {
            server: server.clone(),
            fault: McpFault::Unreachable { detail },
            last_words: watch.last_words(),
        })?;
        Self::begin(server, transport, watch, limits, None).await
    }

    /// Takes up a connection over a stream of events, the older of the two transports over HTTP.
    ///
    /// # Errors
    ///
    /// As [`McpClient::over_http`].
    pub async fn over_events(
        server: impl Into<String>,
        at: &McpHttpServer,
        limits: McpLimits,
    ) -> Result<Self, McpError> {
        let server = server.into();
        let opened = event_stream::open(at, &limits).await;
        let EventLines { stdin, stdout, stderr } = opened.map_err(|detail| McpError {
            server: server.clone(),
            fault: McpFault::Unreachable { detail },
            last_words: Watch::default().last_words(),
        })?;
        Self::over_streams(server, McpServerStreams::new(stdin, stdout, stderr), limits).await
    }

    async fn begin(
        server: String,
        transport: impl Transport<RoleClient> + 'static,
        watch: Arc<Watch>,
        limits: McpLimits,
        listener: Option<JoinHandle<()>>,
    ) -> Result<Self, McpError> {
        let about = Implementation::new("spar", env!("CARGO_PKG_VERSION"));
        let config = ClientConfig::new(ClientCapabilities::default(), about);
        let most_unasked = limits.unasked;
        let watched = Watched { inner: transport, watch: Arc::clone(&watch), most_unasked };
        let begun = timeout(limits.start, serve_client(config, watched)).await;
        let detail = match begun {
            Ok(Ok(service)) => {
                return Ok(Self {
                    server,
                    limits,
                    watch,
                    service,
                    names: HashMap::new(),
                    listener,
                });
            }
            Ok(Err(error)) => shortened(&chain(&error), MOST_QUOTED),
            Err(_) => format!("it did not answer within {} s", limits.start.as_secs_f64()),
        };
        // What it says last may come a moment later.
        if let Some(listener) = listener {
            let abort = listener.abort_handle();
            let _ = timeout(Duration::from_millis(200), listener).await;
            abort.abort();
        }
        let fault = watch.fault().unwrap_or(McpFault::Handshake { detail });
        Err(McpError { server, fault, last_words: watch.last_words() })
    }

    /// What the server says about its use; empty where it says nothing.
    pub fn instructions(&self) -> String {
        let info = self.service.peer_info();
        info.and_then(|info| info.instructions.clone()).unwrap_or_default()
    }

    /// Whether it has resources.
    pub fn has_resources(&self) -> bool {
        self.service.peer_info().is_some_and(|info| info.capabilities.resources.is_some())
    }

    /// Whether it has prompts.
    pub fn has_prompts(&self) -> bool {
        self.service.peer_info().is_some_and(|info| info.capabilities.prompts.is_some())
    }

    /// Whether the server has said that its tools are others now, since this was asked last.
    pub fn take_other_tools(&self) -> bool {
        self.watch.take_other_tools()
    }

    /// The tools that the server has now, all pages of their list, under names that can be [called](Self::call): what a name
    /// may not have in it becomes `_`.
    ///
    /// # Errors
    ///
    /// [`McpError`] when it does not tell them in time, or tells what are none.
    pub async fn tools(&mut self) -> Result<Vec<ToolSpec>, McpError> {
        let doing = "list its tools";
        let none = self.service.peer_info().is_some_and(|it| it.capabilities.tools.is_none());
        if none {
            return Ok(Vec::new());
        }
        let found: Vec<ServerTool> = self
            .pages(
                doing,
                |params| ClientRequest::ListToolsRequest(RequestOptionalParam::with_param(params)),
                |page: ListToolsResult| (page.tools, page.next_cursor),
                self.limits.request,
            )
            .await?;
        let mut names = HashMap::new();
        let mut specs: Vec<ToolSpec> = Vec::with_capacity(found.len());
        for tool in found {
            let name = free_name(&tool.name, |name| specs.iter().any(|spec| spec.name == name));
            if *tool.name != name {
                names.insert(name.clone(), tool.name.clone().into_owned());
            }
            let mut schema: Map<String, Value> = (*tool.input_schema).clone();
            schema.shift_remove("$schema");
            schema.entry("type").or_insert_with(|| "object".into());
            let description = tool.description.or(tool.title.map(Into::into)).unwrap_or_default();
            let spec = ToolSpec::new(name, description, schema.into());
            if let Err(error) = spec.validate() {
                return Err(self.answered_wrongly(doing, &error.to_string()));
            }
            specs.push(spec);
        }
        self.names = names;
        Ok(specs)
    }

    /// Calls a tool, which may take as long as `limit`; then the server is told to give up.
    ///
    /// # Errors
    ///
    /// [`CallFailure`]: what the server says of a call that it cannot carry out, that it took too long, or that the server
    /// broke.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        limit: Duration,
    ) -> Result<McpOutput, CallFailure> {
        let name = self.names.get(tool).map_or(tool, String::as_str).to_owned();
        let params = CallToolRequestParams::new(name).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(Request::new(params));
        let doing = format!("answer a call of `{}`", shortened(tool, 64));
        let result = match self.ask(request, &doing, limit).await {
            Ok(Ok(ServerResult::CallToolResult(result))) => result,
            Ok(Ok(other)) => self.read_as::<CallToolResult>(other, &doing)?,
            Ok(Err(told)) => {
                return Err(CallFailure::Told { text: shortened(&told.message, MOST_QUOTED) });
            }
            Err(error) => {
                return Err(self
                    .failure(error, &format!("the call of `{}`", shortened(tool, 64)))
                    .await);
            }
        };
        let output = of_call(result, self.limits.media_bytes);
        match output.is_error {
            true if output.media.is_empty() => Err(CallFailure::Told { text: output.text }),
            _ => Ok(output),
        }
    }

    /// What it means for whoever asked for `what` that the server did not answer that: where it was too late, whether it is
    /// there at all.
    async fn failure(&self, error: McpError, what: &str) -> CallFailure {
        let limit = match error.fault {
            McpFault::Late { limit, .. } => limit,
            McpFault::Refused { message, .. } => return CallFailure::Told { text: message },
            _ => return error.into(),
        };
        let request = ClientRequest::PingRequest(RequestNoParam::default());
        match self.ask(request, "answer a ping", PING).await {
            // One that knows no ping lives as well.
            Ok(_) => CallFailure::Late { limit },
            Err(McpError { fault: McpFault::Late { .. }, .. }) => {
                self.error(McpFault::Hangs { asked: what.to_owned() }).into()
            }
            Err(error) => error.into(),
        }
    }

    /// The resources that the server lists, which may take as long as `limit`, all pages together.
    ///
    /// # Errors
    ///
    /// [`CallFailure`]: what the server says where it does not tell them, that it took too long, or that the server broke.
    pub async fn resources(&self, limit: Duration) -> Result<Vec<Offered>, CallFailure> {
        let request =
            |params| ClientRequest::ListResourcesRequest(RequestOptionalParam::with_param(params));
        let take = |page: ListResourcesResult| (page.resources, page.next_cursor);
        let found = match self.pages("list its resources", request, take, limit).await {
            Ok(found) => found,
            Err(error) => return Err(self.failure(error, "the list of its resources").await),
        };
        let offered = found.into_iter().map(|resource| Offered {
            key: resource.uri,
            about: resource.description.or(resource.title).unwrap_or(resource.name),
            arguments: Vec::new(),
        });
        Ok(offered.collect())
    }

    /// What a resource holds; to tell it may take as long as `limit`.
    ///
    /// # Errors
    ///
    /// [`CallFailure`]: what the server says where it has no such resource, that it took too long, or that the server broke.
    pub async fn read_resource(
        &self,
        uri: &str,
        limit: Duration,
    ) -> Result<McpOutput, CallFailure> {
        let params = ReadResourceRequestParams::new(uri);
        let request = ClientRequest::ReadResourceRequest(Request::new(params));
        let doing = "read a resource";
        let answered = match self.ask(request, doing, limit).await {
            Ok(answered) => answered,
            Err(error) => return Err(self.failure(error, "the request for a resource").await),
        };
        match answered {
            Ok(ServerResult::ReadResourceResult(result)) => {
                Ok(of_resource(result, self.limits.media_bytes))
            }
            Ok(other) => {
                let result = self.read_as::<ReadResourceResult>(other, doing)?;
                Ok(of_resource(result, self.limits.media_bytes))
            }
            Err(told) => Err(CallFailure::Told { text: shortened(&told.message, MOST_QUOTED) }),
        }
    }

    /// The prompts that the server lists, which may take as long as `limit`, all pages together.
    ///
    /// # Errors
    ///
    /// [`CallFailure`]: what the server says where it does not tell them, that it took too long, or that the server broke.
    pub async fn prompts(&self, limit: Duration) -> Result<Vec<Offered>, CallFailure> {
        let request =
            |params| ClientRequest::ListPromptsRequest(RequestOptionalParam::with_param(params));
        let take = |page: ListPromptsResult| (page.prompts, page.next_cursor);
        let found = match self.pages("list its prompts", request, take, limit).await {
            Ok(found) => found,
            Err(error) => return Err(self.failure(error, "the list of its prompts").await),
        };
        let offered = found.into_iter().map(|prompt| {
            let mark = |required| if required == Some(true) { "*" } else { "" };
            let arguments = prompt.arguments.unwrap_or_default().into_iter();
            let arguments = arguments.map(|it| format!("{}{}", it.name, mark(it.required)));
            let about = prompt.description.or(prompt.title).unwrap_or_default();
            Offered { key: prompt.name, about, arguments: arguments.collect() }
        });
        Ok(offered.collect())
    }

    /// The messages of a prompt; to make it may take as long as `limit`.
    ///
    /// # Errors
    ///
    /// [`CallFailure`]: what the server says where it cannot make it, that it took too long, or that the server broke.
    pub async fn prompt(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        limit: Duration,
    ) -> Result<McpOutput, CallFailure> {
        let params = GetPromptRequestParams::new(name).with_arguments(arguments);
        let request = ClientRequest::GetPromptRequest(Request::new(params));
        let doing = "make a prompt";
        let answered = match self.ask(request, doing, limit).await {
            Ok(answered) => answered,
            Err(error) => return Err(self.failure(error, "the request for a prompt").await),
        };
        match answered {
            Ok(ServerResult::GetPromptResult(result)) => {
                Ok(of_prompt(result, self.limits.media_bytes))
            }
            Ok(other) => {
                let result = self.read_as::<GetPromptResult>(other, doing)?;
                Ok(of_prompt(result, self.limits.media_bytes))
            }
            Err(told) => Err(CallFailure::Told { text: shortened(&told.message, MOST_QUOTED) }),
        }
    }

    /// Closes the connection, and waits for that.
    pub async fn close(mut self) {
        let _ = self.service.close_with_timeout(GRACE).await;
    }

    /// All pages of a list, within `limit`.
    async fn pages<T: DeserializeOwned, I>(
        &self,
        doing: &str,
        request: impl Fn(PaginatedRequestParams) -> ClientRequest,
        take: impl Fn(T) -> (Vec<I>, Option<String>),
        limit: Duration,
    ) -> Result<Vec<I>, McpError> {
        let until = Instant::now() + limit;
        let (mut items, mut cursor) = (Vec::new(), None::<String>);
        for _ in 0..MOST_PAGES {
            let asked = request(PaginatedRequestParams::default().with_cursor(cursor.clone()));
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.error(McpFault::Late { doing: doing.to_owned(), limit }));
            }
            let page = match self.ask(asked, doing, left).await {
                Err(mut error) => {
                    // The time for all pages, not what was left of it.
                    if let McpFault::Late { limit: told, .. } = &mut error.fault {
                        *told = limit;
                    }
                    return Err(error);
                }
                Ok(Ok(page)) => self.read_as::<T>(page, doing)?,
                Ok(Err(told)) => {
                    let message = shortened(&told.message, MOST_QUOTED);
                    return Err(self.error(McpFault::Refused { doing: doing.to_owned(), message }));
                }
            };
            let (mut found, next) = take(page);
            items.append(&mut found);
            if items.len() > self.limits.items {
                let detail = format!("they are more than {}", self.limits.items);
                return Err(self.answered_wrongly(doing, &detail));
            }
            match next {
                None => return Ok(items),
                Some(next) if cursor.as_ref() == Some(&next) => {
                    return Err(self.answered_wrongly(doing, "a page is followed by itself"));
                }
                next => cursor = next,
            }
        }
        Err(self.answered_wrongly(doing, &format!("they have more than {MOST_PAGES} pages")))
    }

    /// Asks the server: its answer, or the error that it answers with.
    async fn ask(
        &self,
        request: ClientRequest,
        doing: &str,
        limit: Duration,
    ) -> Result<Result<ServerResult, ErrorData>, McpError> {
        let asked = async {
            let options = PeerRequestOptions::with_timeout(limit);
            let handle = self.service.peer().send_request_with_option(request, options).await?;
            handle.await_response().await
        };
        let doing = || doing.to_owned();
        let late = || self.error(McpFault::Late { doing: doing(), limit });
        Err(match timeout(limit + GRACE, asked).await {
            Ok(Ok(result)) => return Ok(Ok(result)),
            Ok(Err(ServiceError::McpError(told))) if !self.service.is_closed() => {
                return Ok(Err(told));
            }
            Err(_) | Ok(Err(ServiceError::Timeout { .. })) => late(),
            Ok(Err(ServiceError::UnexpectedResponse)) => {
                self.answered_wrongly(&doing(), "it is of another kind")
            }
            Ok(Err(error)) => {
                // Why the streams ended may be told a moment later.
                tokio::time::sleep(Duration::from_millis(50)).await;
                match (error, self.listener.is_some()) {
                    (ServiceError::TransportSend(error), false) => {
                        let detail = shortened(&chain(&error), MOST_QUOTED);
                        self.error(McpFault::Unreachable { detail })
                    }
                    _ => self.error(McpFault::Closed { doing: doing(), end: None }),
                }
            }
        })
    }

    /// An answer that was taken for one of another kind, since kinds are told apart by their fields alone.
    fn read_as<T: DeserializeOwned>(
        &self,
        result: ServerResult,
        doing: &str,
    ) -> Result<T, McpError> {
        let read = serde_json::to_value(result).and_then(serde_json::from_value);
        read.map_err(|error| self.answered_wrongly(doing, &error.to_string()))
    }

    fn answered_wrongly(&self, doing: &str, detail: &str) -> McpError {
        let detail = shortened(detail, MOST_QUOTED);
        self.error(McpFault::Answer { doing: doing.to_owned(), detail })
    }

    /// What the server did, or what is known to be behind that.
    fn error(&self, fault: McpFault) -> McpError {
        let server = self.server.clone();
        let fault = self.watch.fault().unwrap_or(fault);
        McpError { server, fault, last_words: self.watch.last_words() }
    }
}

/// A server's name of a tool as one that can be offered, and that no other has.
fn free_name(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let clean = |c: char| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '_' };
    let cut = |most: usize| name.chars().take(most).map(clean).collect::<String>();
    let first = cut(64);
    if !first.is_empty() && !is_taken(&first) {
        return first;
    }
    let mut numbered = (2_u32..).map(|number| format!("{}_{number}", cut(57)));
    numbered.find(|name| !is_taken(name)).expect("there are more numbers than tools")
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

    use super::*;

    const LIMIT: Duration = Duration::from_millis(300);

    fn short() -> McpLimits {
        McpLimits {
            start: Duration::from_secs(2),
            request: Duration::from_secs(2),
            message_bytes: 10_000,
            unasked: 50,
            items: 10,
            ..McpLimits::default()
        }
    }

    /// A server that answers requests as `answer` has it: lines for each; none ends it.
    async fn connected(
        answer: impl Fn(&str, &Value) -> Option<Vec<String>> + Send + 'static,
    ) -> Result<McpClient, McpError> {
        let (stdin, requests) = tokio::io::duplex(1 << 16);
        let (mut output, stdout) = tokio::io::duplex(1 << 16);
        let (mut words, stderr) = tokio::io::duplex(1 << 16);
        tokio::spawn(async move {
            let _ = words.write_all(b"I am a server.\n").await;
            let mut lines = BufReader::new(requests).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let request: Value = serde_json::from_str(&line).unwrap();
                let method = request["method"].as_str().unwrap_or_default();
                let Some(lines) = answer(method, &request) else { return };
                for line in lines {
                    if output.write_all(format!("{line}\n").as_bytes()).await.is_err() {
                        return;
                    }
                }
            }
        });
        let streams = McpServerStreams::new(stdin, stdout, stderr);
        McpClient::over_streams("test", streams, short()).await
    }

    fn result(request: &Value, result: Value) -> Vec<String> {
        vec![json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string()]
    }

    fn text(request: &Value, text: &str) -> Vec<String> {
        result(request, json!({ "content": [{ "type": "text", "text": text }] }))
    }

    /// A server that does as servers do, but for calls.
    fn plain(method: &str, request: &Value) -> Vec<String> {
        match method {
            "initialize" => result(
                request,
                json!({
                    "protocolVersion": request["params"]["protocolVersion"],
                    "capabilities": { "tools": { "listChanged": true } },
                    "serverInfo": { "name": "test", "version": "1" },
                    "instructions": "Be brief.",
                }),
            ),
            "tools/list" => {
                let tool = |name: &str| json!({ "name": name, "inputSchema": { "$schema": "x" } });
                match request["params"]["cursor"].as_str() {
                    None => result(request, json!({ "tools": [tool("a/b")], "nextCursor": "2" })),
                    Some(_) => result(request, json!({ "tools": [tool("a_b"), tool("é")] })),
                }
            }
            "ping" => result(request, json!({})),
            _ => Vec::new(),
        }
    }

    async fn failure(
        answer: impl Fn(&str, &Value) -> Option<Vec<String>> + Send + 'static,
    ) -> CallFailure {
        let client = connected(answer).await.unwrap();
        client.call("a", Map::new(), LIMIT).await.unwrap_err()
    }

    #[tokio::test]
    async fn tools_of_all_pages_have_names_that_can_be_called() {
        let mut client = connected(|method, request| {
            Some(match method {
                "tools/call" => text(request, request["params"]["name"].as_str().unwrap()),
                _ => plain(method, request),
            })
        })
        .await
        .unwrap();
        assert_eq!(client.instructions(), "Be brief.");
        let names: Vec<_> = client.tools().await.unwrap().into_iter().map(|it| it.name).collect();
        assert_eq!(names, ["a_b", "a_b_2", "_"]);
        for (name, own) in [("a_b", "a/b"), ("a_b_2", "a_b"), ("_", "é")] {
            assert_eq!(client.call(name, Map::new(), LIMIT).await.unwrap().text, own);
        }
        client.close().await;
    }

    #[tokio::test]
    async fn other_tools_are_heard_of_before_the_answer_behind_them() {
        let client = connected(|method, request| {
            Some(match method {
                "tools/call" => {
                    let mut lines = vec![
                        json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" })
                            .to_string(),
                    ];
                    lines.extend(text(request, "done"));
                    lines
                }
                _ => plain(method, request),
            })
        })
        .await
        .unwrap();
        assert!(!client.take_other_tools());
        client.call("a", Map::new(), LIMIT).await.unwrap();
        assert!(client.take_other_tools() && !client.take_other_tools());
    }

    #[tokio::test]
    async fn what_a_tool_says_of_a_call_is_no_fault_of_the_server() {
        let told = failure(|method, request| {
            Some(match method {
                "tools/call" => vec![
                    json!({ "jsonrpc": "2.0", "id": request["id"], "error": { "code": -32602, "message": "no such tool" } })
                        .to_string(),
                ],
                _ => plain(method, request),
            })
        });
        assert_eq!(told.await, CallFailure::Told { text: "no such tool".to_owned() });
        let told = failure(|method, request| {
            Some(match method {
                "tools/call" => {
                    let content = json!([{ "type": "text", "text": "no such file" }]);
                    result(request, json!({ "content": content, "isError": true }))
                }
                _ => plain(method, request),
            })
        });
        assert_eq!(told.await, CallFailure::Told { text: "no such file".to_owned() });
        // Its ping is answered: it only took too long.
        let late = failure(|method, request| Some(plain(method, request))).await;
        assert_eq!(late, CallFailure::Late { limit: LIMIT });
    }

    #[tokio::test]
    async fn every_way_to_break_is_a_fault_with_the_last_words() {
        let fault = async |failure: CallFailure| match failure {
            CallFailure::Server(error) => {
                assert!(error.to_string().contains("I am a server."), "{error}");
                assert!(error.to_string().len() < 6000);
                error.fault
            }
            other => panic!("{other:?}"),
        };
        let ended = failure(|method, request| match method {
            "tools/call" => None,
            _ => Some(plain(method, request)),
        });
        assert!(matches!(fault(ended.await).await, McpFault::Closed { .. }));
        let long = failure(|method, request| {
            Some(match method {
                "tools/call" => text(request, &"x".repeat(20_000)),
                _ => plain(method, request),
            })
        });
        assert_eq!(fault(long.await).await, McpFault::TooLong { bytes: 10_000 });
        let flood = failure(|method, request| {
            Some(match method {
                "tools/call" => {
                    let params = json!({ "level": "info", "data": "x" });
                    let note = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params });
                    vec![note.to_string(); 100]
                }
                _ => plain(method, request),
            })
        });
        assert_eq!(fault(flood.await).await, McpFault::Flood { count: 50 });
        let nonsense = failure(|method, request| {
            Some(match method {
                "tools/call" => vec!["beep".to_owned(); 10_001],
                _ => plain(method, request),
            })
        });
        let nonsense = fault(nonsense.await).await;
        assert_eq!(nonsense, McpFault::Nonsense { count: 10_000 });
        let wrong = failure(|method, request| {
            Some(match method {
                "tools/call" => result(request, json!({ "content": "nothing" })),
                _ => plain(method, request),
            })
        });
        assert!(matches!(fault(wrong.await).await, McpFault::Answer { .. }));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_hangs_is_told_from_one_that_is_slow() {
        let hangs = failure(|method, request| {
            Some(match method {
                "tools/call" | "ping" => Vec::new(),
                _ => plain(method, request),
            })
        });
        let CallFailure::Server(error) = hangs.await else { panic!() };
        assert_eq!(error.fault, McpFault::Hangs { asked: "the call of `a`".to_owned() });
        let silent = connected(|_, _| Some(Vec::new())).await.unwrap_err();
        assert!(matches!(silent.fault, McpFault::Handshake { .. }), "{silent}");
        let gone = connected(|_, _| None).await.unwrap_err();
        assert!(gone.to_string().contains("did not take up the connection"), "{gone}");
    }

    /// What comes of everything that a server has beside its tools.
    async fn failures_beside_tools(
        answer: impl Fn(&str, &Value) -> Option<Vec<String>> + Send + Clone + 'static,
    ) -> Vec<CallFailure> {
        let asked = async || connected(answer.clone()).await.unwrap();
        vec![
            asked().await.resources(LIMIT).await.unwrap_err(),
            asked().await.read_resource("file:///a", LIMIT).await.unwrap_err(),
            asked().await.prompts(LIMIT).await.unwrap_err(),
            asked().await.prompt("a", Map::new(), LIMIT).await.unwrap_err(),
        ]
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_late_or_refused_beside_tools_is_told_as_of_a_call() {
        let late = failures_beside_tools(|method, request| Some(plain(method, request))).await;
        assert_eq!(late, vec![CallFailure::Late { limit: LIMIT }; 4]);
        let hangs = failures_beside_tools(|method, request| {
            Some(if method == "ping" { Vec::new() } else { plain(method, request) })
        });
        for failure in hangs.await {
            let CallFailure::Server(error) = failure else { panic!("{failure:?}") };
            assert!(matches!(error.fault, McpFault::Hangs { .. }), "{error}");
        }
        let refused = failures_beside_tools(|method, request| {
            let error = json!({ "code": -32603, "message": "not today" });
            let told = json!({ "jsonrpc": "2.0", "id": request["id"], "error": error });
            Some(match method {
                "initialize" => plain(method, request),
                _ => vec![told.to_string()],
            })
        });
        assert_eq!(refused.await, vec![CallFailure::from_text("not today"); 4]);
    }

    #[tokio::test]
    async fn all_pages_of_a_list_have_one_time() {
        let client = connected(|method, request| {
            Some(match method {
                "resources/list" => {
                    std::thread::sleep(LIMIT / 5);
                    let page = request["params"]["cursor"].as_str().unwrap_or("0");
                    let next = page.parse::<u32>().unwrap() + 1;
                    result(request, json!({ "resources": [], "nextCursor": next.to_string() }))
                }
                _ => plain(method, request),
            })
        });
        let client = client.await.unwrap();
        let late = client.resources(LIMIT).await.unwrap_err();
        assert_eq!(late, CallFailure::Late { limit: LIMIT });
    }

    #[tokio::test]
    async fn lists_without_end_are_refused() {
        let listed = async |page: fn(&Value) -> Value| {
            let mut client = connected(move |method, request| {
                Some(match method {
                    "tools/list" => result(request, page(request)),
                    _ => plain(method, request),
                })
            })
            .await
            .unwrap();
            client.tools().await.unwrap_err().to_string()
        };
        let same = listed(|_| json!({ "tools": [], "nextCursor": "again" })).await;
        assert!(same.contains("a page is followed by itself"), "{same}");
        let many = listed(|_| {
            let tool = json!({ "name": "t", "inputSchema": { "type": "object" } });
            json!({ "tools": vec![tool; 11] })
        })
        .await;
        assert!(many.contains("they are more than 10"), "{many}");
        let wrong =
            listed(|_| json!({ "tools": [{ "name": "t", "inputSchema": { "type": "array" } }] }))
                .await;
        assert!(wrong.contains("offer tool `t`"), "{wrong}");
    }
}
