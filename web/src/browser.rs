//! The process of a browser, and the windows that it shows.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::WebError;
use crate::connection::{Connection, Event, Session};
use crate::window::WindowState;

/// Names under which a browser is looked for.
const PROGRAMS: [&str; 5] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome-headless-shell",
];
/// Bytes of its last words that are kept.
const LAST_WORDS: usize = 2000;
/// Names the browser.
pub const PROGRAM_VARIABLE: &str = "SPAR_CHROMIUM";

/// How a browser is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserOptions {
    /// The program; absent, the one that `SPAR_CHROMIUM` names, or the first of Chromium and its relatives in `PATH`.
    pub program: Option<PathBuf>,
    /// How long it may take to come up. Default two minutes: a machine under load takes its time.
    pub start_timeout: Duration,
    /// How long one command may take. Default 30 seconds.
    pub patience: Duration,
    /// The most windows that are open at one time; at least 1. Default 8: each is a process of about 50 MB.
    pub max_windows: usize,
}

impl Default for BrowserOptions {
    fn default() -> Self {
        Self {
            program: None,
            start_timeout: Duration::from_secs(120),
            patience: Duration::from_secs(30),
            max_windows: 8,
        }
    }
}

/// Finds the browser: what `SPAR_CHROMIUM` names, or the first of Chromium and its relatives in `PATH`.
///
/// # Errors
///
/// [`WebError::NoBrowser`] where there is none.
pub fn find_browser() -> Result<PathBuf, WebError> {
    if let Some(named) = std::env::var_os(PROGRAM_VARIABLE).filter(|named| !named.is_empty()) {
        let path = PathBuf::from(named);
        return match path.is_file() {
            true => Ok(path),
            false => Err(WebError::NoBrowser {
                tried: format!("`{}`, which {PROGRAM_VARIABLE} names, is no file", path.display()),
            }),
        };
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    for program in PROGRAMS {
        for folder in std::env::split_paths(&folders) {
            let path = folder.join(program);
            if path.is_file() {
                return Ok(path);
            }
        }
    }
    Err(WebError::NoBrowser { tried: format!("none of {} is in PATH", PROGRAMS.join(", ")) })
}

/// The version of the browser at a path, such as `Chromium 156.0.8078.108`.
///
/// # Errors
///
/// [`WebError::Start`] where it cannot be run.
pub async fn browser_version(program: &Path) -> Result<String, WebError> {
    let refuse =
        |detail: String| WebError::Start { program: program.display().to_string(), detail };
    let asked =
        Command::new(program).arg("--version").stdin(Stdio::null()).kill_on_drop(true).output();
    let output = timeout(Duration::from_secs(30), asked)
        .await
        .map_err(|_| refuse("it told no version within 30 s".to_owned()))?
        .map_err(|error| refuse(error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().next().map(str::trim) {
        Some(line) if output.status.success() && !line.is_empty() => Ok(line.to_owned()),
        _ => Err(refuse(format!("it ended with {} and told no version", output.status))),
    }
}

/// A browser that runs. It ends with this value, and with this process however that ends: it is talked to over a pipe,
/// and a browser whose pipe is closed goes.
#[derive(Debug)]
pub(crate) struct Browser {
    root: Session,
    connection: Arc<Connection>,
    pub(crate) patience: Duration,
    windows: Arc<Windows>,
    process: Mutex<Option<Process>>,
    following: JoinHandle<()>,
}

#[derive(Debug)]
struct Process {
    child: Child,
    /// Its profile; removed with it.
    profile: tempfile::TempDir,
    words: JoinHandle<()>,
}

/// The windows that are open, by the browser's name for their context.
#[derive(Debug, Default)]
pub(crate) struct Windows(Mutex<HashMap<String, Weak<WindowState>>>);

impl Windows {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Weak<WindowState>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, context: &str) -> Option<Arc<WindowState>> {
        self.lock().get(context).and_then(Weak::upgrade)
    }
}

impl Browser {
    pub(crate) async fn start(options: &BrowserOptions) -> Result<Self, WebError> {
        let program = match &options.program {
            Some(program) => program.clone(),
            None => find_browser()?,
        };
        let refuse =
            |detail: String| WebError::Start { program: program.display().to_string(), detail };
        let profile = tempfile::Builder::new()
            .prefix("spar-browser-")
            .tempdir()
            .map_err(|error| refuse(error.to_string()))?;
        // The browser reads commands from descriptor 3 and writes to 4: a shell puts the pipes there, since that takes
        // no code between fork and exec.
        let mut command = Command::new("/bin/sh");
        command
            .arg("-c")
            .arg("exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null")
            .arg("sh")
            .arg(&program)
            .args(arguments(profile.path()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| refuse(error.to_string()))?;
        let (Some(input), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(refuse("it has no pipes".to_owned()));
        };
        let (sender, events) = Session::event_channel();
        let connection = Arc::new(Connection::new(BufReader::new(output), input, sender));
        let words = tokio::spawn(keep_last_words(errors, Arc::downgrade(&connection)));
        let root = connection.root();
        let windows = Arc::new(Windows::default());
        let following = tokio::spawn(follow(events, root.clone(), Arc::clone(&windows)));
        let process = Mutex::new(Some(Process { child, profile, words }));
        let browser =
            Self { root, connection, patience: options.patience, windows, process, following };
        // Every new tab waits until it is watched over.
        let attach = json!({ "autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true });
        match browser.root.call("Target.setAutoAttach", attach, options.start_timeout).await {
            Ok(_) => Ok(browser),
            // What it wrote comes a little after its end.
            Err(WebError::Ended { last_words }) if last_words.is_empty() => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                let said = match browser.root.failure() {
                    Some(WebError::Ended { last_words }) => last_words.to_string(),
                    _ => String::new(),
                };
                Err(refuse(format!("it ended before it answered{said}")))
            }
            Err(error) => Err(refuse(error.to_string())),
        }
    }

    /// The browser itself.
    pub(crate) fn root(&self) -> &Session {
        &self.root
    }

    /// Why it can be used no longer.
    pub(crate) fn failure(&self) -> Option<WebError> {
        self.root.failure()
    }

    /// Has the tabs of a context be those of a window.
    pub(crate) fn register(&self, context: &str, window: &Arc<WindowState>) {
        self.windows.lock().insert(context.to_owned(), Arc::downgrade(window));
    }

    /// Closes a context with all its tabs, without waiting for it.
    pub(crate) fn dispose(&self, context: &str) {
        self.windows.lock().remove(context);
        drop(
            self.root.send("Target.disposeBrowserContext", json!({ "browserContextId": context })),
        );
    }

    /// Ends it, and waits for its end.
    pub(crate) async fn close(&self) {
        drop(self.root.send("Browser.close", Value::Null));
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut process) = process {
            if timeout(Duration::from_secs(5), process.child.wait()).await.is_err() {
                process.end();
                let _ = timeout(Duration::from_secs(5), process.child.wait()).await;
            }
            // Its children go a moment after it; whatever is left of them goes now.
            process.end();
        }
        self.connection.end(WebError::Ended { last_words: Arc::from("") });
    }

    #[cfg(test)]
    pub(crate) fn process_id(&self) -> Option<u32> {
        self.process.lock().unwrap().as_ref().and_then(|process| process.child.id())
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.following.abort();
        self.connection.end(WebError::Ended { last_words: Arc::from("") });
    }
}

impl Process {
    /// Ends it with all that it started: they are a process group of their own.
    fn end(&self) {
        if let Some(group) = self.child.id().and_then(|id| Pid::from_raw(id as i32)) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
        self.words.abort();
        let _ = std::fs::remove_dir_all(self.profile.path());
    }
}

fn arguments(profile: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = [
        "--headless",
        "--remote-debugging-pipe",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--no-default-browser-check",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-component-extensions-with-background-pages",
        "--disable-default-apps",
        "--disable-extensions",
        "--disable-sync",
        "--disable-breakpad",
        "--disable-crash-reporter",
        "--disable-dev-shm-usage",
        "--disable-search-engine-choice-screen",
        "--disable-client-side-phishing-detection",
        "--disable-popup-blocking",
        "--disable-prompt-on-repost",
        "--metrics-recording-only",
        "--mute-audio",
        "--password-store=basic",
        "--use-mock-keychain",
        "--force-color-profile=srgb",
        // Tabs that nobody looks at are worked in as well.
        "--disable-background-timer-throttling",
        "--disable-backgrounding-occluded-windows",
        "--disable-renderer-backgrounding",
        "--disable-ipc-flooding-protection",
        // A page that is loaded anew takes the place of the one before in its process; nothing of that is kept for the way back.
        "--disable-back-forward-cache",
        // Windows of one origin each: a frame of another one has nothing to show anyway.
        "--disable-site-isolation-trials",
        "--disable-features=OverlayScrollbars,ExtendedOverlayScrollbars,IsolateOrigins,site-per-process,Translate,\
         MediaRouter,OptimizationHints,AutofillServerCommunication,InterestFeedContentSuggestions,PaintHolding,\
         HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,RenderDocument,ProactivelySwapBrowsingInstance,\
         SpareRendererForSitePerProcess,Prerender2,BackForwardCache,PreloadTopChromeWebUI",
        // Nothing reaches a network, should a request ever get past its interception.
        "--host-resolver-rules=MAP * ~NOTFOUND",
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--lang=en-US",
    ]
    .into_iter()
    .map(OsString::from)
    .collect();
    if rustix::process::geteuid().is_root() {
        // Its own sandbox refuses to be root's.
        arguments.push("--no-sandbox".into());
    }
    let mut folder = OsString::from("--user-data-dir=");
    folder.push(profile);
    arguments.push(folder);
    arguments.push("about:blank".into());
    arguments
}

/// Keeps the end of what the browser writes, to be told when it has ended.
async fn keep_last_words(
    mut errors: impl tokio::io::AsyncRead + Unpin,
    connection: Weak<Connection>,
) {
    let mut words: Vec<u8> = Vec::new();
    let mut bytes = [0; 4096];
    while let Ok(length) = errors.read(&mut bytes).await {
        if length == 0 {
            break;
        }
        words.extend_from_slice(&bytes[..length]);
        let surplus = words.len().saturating_sub(LAST_WORDS);
        words.drain(..surplus);
    }
    let text = String::from_utf8_lossy(&words);
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let last_words = if last.is_empty() { String::new() } else { format!(": {}", last.trim()) };
    if let Some(connection) = connection.upgrade() {
        connection.end(WebError::Ended { last_words: last_words.into() });
    }
}

/// Gives new tabs to their windows, and closes what is nobody's.
async fn follow(mut events: mpsc::Receiver<Event>, root: Session, windows: Arc<Windows>) {
    while let Some(event) = events.recv().await {
        let text = |pointer: &str| {
            event.params.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        match event.method.as_str() {
            "Target.attachedToTarget" => {
                let (session, kind) = (text("/sessionId"), text("/targetInfo/type"));
                let (target, context) =
                    (text("/targetInfo/targetId"), text("/targetInfo/browserContextId"));
                let window = windows.find(&context).filter(|_| kind == "page");
                match window {
                    Some(window) => window.add_tab(&root, &session, &target),
                    None if kind == "page"
                        || kind == "service_worker"
                        || kind == "shared_worker" =>
                    {
                        // The empty page that a browser begins with, and what nobody asked for.
                        drop(root.send("Target.closeTarget", json!({ "targetId": target })));
                    }
                    None => {
                        let (sender, _) = Session::event_channel();
                        let other = root.of(&session, sender);
                        drop(other.send("Runtime.runIfWaitingForDebugger", Value::Null));
                    }
                }
            }
            "Target.detachedFromTarget" => {
                let session = text("/sessionId");
                let open: Vec<_> = windows.lock().values().filter_map(Weak::upgrade).collect();
                open.iter().for_each(|window| window.remove_tab(&session));
            }
            _ => {}
        }
    }
}
