//! Tests with a real browser.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use super::*;

/// Pages by their path.
#[derive(Debug)]
struct Pages(Vec<(&'static str, String)>);

impl Server for Pages {
    fn answer(&self, request: &Request) -> Option<Response> {
        let path = request.url.strip_prefix("http://a.test/")?;
        let page = self.0.iter().find(|(known, _)| *known == path);
        Some(page.map_or_else(Response::not_found, |(_, text)| Response::html(text.clone())))
    }

    fn is_allowed(&self, url: &str) -> bool {
        url.starts_with("http://a.test/") || url == "about:blank"
    }
}

fn spec() -> WindowSpec {
    WindowSpec { viewport: (332, 214), clock_start: Some(WindowSpec::CLOCK_START) }
}

fn quick() -> Browsers {
    Browsers::new(BrowserOptions {
        patience: Duration::from_secs(8),
        max_windows: 2,
        ..BrowserOptions::default()
    })
}

async fn actor(browsers: &Browsers, pages: Vec<(&'static str, String)>) -> Actor {
    let server: Arc<dyn Server> = Arc::new(Pages(pages));
    let window = browsers.window(&spec(), Arc::clone(&server)).await.unwrap();
    let actions = ActionSet::new(&["bid", "coord", "nav", "tab", "chat", "infeas"]).unwrap();
    Actor::new(
        window,
        server,
        ActorOptions { actions, scale: 1.0, settle_ms: 500, input: Input::Devices },
    )
}

async fn text(actor: &mut Actor) -> String {
    let before = actor.settle().await.unwrap().expression();
    let options =
        ViewOptions { axtree: Some(AxOptions::default()), colors: false, scale: 1.0, before };
    look(&actor.window().tab().unwrap(), &options).await.unwrap().axtree.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn chromium_shows_pages_and_does_what_it_is_told() {
    let browsers = quick();
    let page = "<title>T</title><label>Name <input id=n></label><select><option>a<option>b</select>\
                <button onclick=\"setTimeout(() => document.title = n.value + document.querySelector('select').value, 300)\">Go</button>\
                <a href=b>next</a><iframe srcdoc='<button>in</button>'></iframe>";
    let mut actor = actor(
        &browsers,
        vec![("a", page.to_owned()), ("b", "<title>B</title><p>two</p>".to_owned())],
    )
    .await;
    assert_eq!(actor.perform_text("goto('http://a.test/a')").await.unwrap(), Performed::Done);
    let shown = text(&mut actor).await;
    assert!(shown.starts_with("RootWebArea 'T', focused, url='http://a.test/a'"), "{shown}");
    let bid = |of: &str| {
        let line = shown
            .lines()
            .find(|line| line.contains(of))
            .unwrap_or_else(|| panic!("{of} in {shown}"));
        line.split(['[', ']']).nth(1).unwrap().to_owned()
    };
    for (action, expected) in [
        (format!("fill('{}', 'é\"x')", bid("textbox")), Performed::Done),
        (format!("select_option('{}', 'b')", bid("combobox")), Performed::Done),
        (format!("click('{}')", bid("button 'Go'")), Performed::Done),
        (
            "click('a999')".to_owned(),
            Performed::Failed("ValueError: Could not find element with bid \"a999\"".to_owned()),
        ),
        ("send_msg_to_user('hi')".to_owned(), Performed::Message("hi".to_owned())),
    ] {
        assert_eq!(actor.perform_text(&action).await.unwrap(), expected, "{action}");
    }
    assert!(text(&mut actor).await.starts_with("RootWebArea 'é\"xb'"));
    let inner = bid("button 'in'");
    assert!(inner.starts_with('a'), "{inner}");
    assert_eq!(actor.perform_text(&format!("click('{inner}')")).await.unwrap(), Performed::Done);
    actor.perform_text(&format!("click('{}')", bid("link"))).await.unwrap();
    assert!(text(&mut actor).await.contains("'two'"));
    actor.perform_text("go_back()").await.unwrap();
    assert!(text(&mut actor).await.contains("textbox"));
    for hostile in [
        "file:///etc/passwd",
        "javascript:document.title='x'",
        "chrome://version",
        "http://b.test/",
        "view-source:http://a.test/a",
    ] {
        let done = actor.perform_text(&format!("goto({})", json!(hostile))).await.unwrap();
        assert!(
            matches!(&done, Performed::Failed(why) if why.contains("BLOCKED")),
            "{hostile}: {done:?}"
        );
    }
    actor.perform_text("new_tab()").await.unwrap();
    assert_eq!((actor.window().tabs().len(), actor.window().active()), (2, 1));
    actor.perform_text("tab_focus(0)").await.unwrap();
    assert_eq!(actor.window().active(), 0);
    let tab = actor.window().tab().unwrap();
    assert!(tab.screenshot((332, 214), 1.5).await.unwrap().len() > 500);
    actor.leave();

    // Another episode finds nothing of the first.
    let again = browsers.window(&spec(), Arc::new(Nothing)).await.unwrap();
    assert_eq!((again.tabs().len(), again.tab().unwrap().url()), (1, "about:blank".to_owned()));
    let process = browsers.process_id().await.unwrap();
    drop(again);
    browsers.close().await;
    assert!(!std::path::Path::new(&format!("/proc/{process}")).exists());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn chromium_meets_hostile_pages_and_nothing_hangs() {
    let options = BrowserOptions {
        patience: Duration::from_secs(3),
        max_windows: 2,
        ..BrowserOptions::default()
    };
    let browsers = Browsers::new(options);
    let begun = Instant::now();
    let page = |script: &str| format!("<title>T</title><button onclick=\"{script}\">x</button>");
    for (name, script) in [
        ("loop", "for (;;) {}"),
        ("timers", "(function f() { setTimeout(f, 0); setTimeout(f, 0) })()"),
        ("dialogs", "for (let i = 0; i < 20; i++) { alert(i); confirm(i); prompt(i) }"),
        ("endless dialogs", "for (;;) alert(1)"),
        ("popups", "for (let i = 0; i < 40; i++) open('http://a.test/a')"),
        ("away", "location = 'file:///etc/passwd'"),
        ("elsewhere", "location = 'http://b.test/'"),
        (
            "download",
            "const l = document.createElement('a'); l.href = 'data:application/zip,abc'; l.download = 'x'; l.click()",
        ),
        ("much", "let s = '<p>'.repeat(3000000); document.body.innerHTML = s"),
        ("long text", "document.body.textContent = 'x'.repeat(100000000)"),
        ("sockets", "for (let i = 0; i < 50; i++) new WebSocket('ws://127.0.0.1:9/' + i)"),
        ("close", "window.close()"),
        ("print", "print()"),
        ("file", "const f = document.createElement('input'); f.type = 'file'; f.click()"),
        ("unload", "onbeforeunload = () => 'no'; location = 'http://a.test/b'"),
    ] {
        let started = Instant::now();
        let mut actor = actor(&browsers, vec![("a", page(script)), ("b", page("1"))]).await;
        actor.perform_text("goto('http://a.test/a')").await.unwrap();
        let before = actor.settle().await.unwrap().expression();
        let options =
            ViewOptions { axtree: Some(AxOptions::default()), colors: false, scale: 1.0, before };
        let tab = actor.window().tab().unwrap();
        let shown = look(&tab, &options).await.unwrap();
        let button = shown.view.elements().iter().find(|element| element.tag == "button").unwrap();
        let done = actor.perform_text(&format!("click('{}')", button.bid)).await;
        let told = match done {
            Ok(done) => {
                let before = actor.settle().await.unwrap().expression();
                match actor.window().tab() {
                    Ok(tab) => match look(&tab, &ViewOptions { before, ..options }).await {
                        Ok(looked) => format!("{done:?}, too large: {}", looked.view.is_too_large),
                        Err(error) => format!("{done:?}, {error}"),
                    },
                    Err(error) => format!("{done:?}, {error}"),
                }
            }
            Err(error) => format!("{error}"),
        };
        println!("{name}: {told} ({:.1} s)", started.elapsed().as_secs_f64());
        match name {
            "loop" => assert!(told.contains("within"), "{told}"),
            "much" => {
                assert!(told.contains("too large: true") || told.contains("within"), "{told}")
            }
            "popups" => assert!(actor.window().tabs().len() <= 12),
            _ => {}
        }
        assert!(started.elapsed() < Duration::from_secs(25), "{name}");
        actor.leave();
    }
    // A tab that crashes is an error of its own, and the next window is there.
    let actor = actor(&browsers, vec![("a", page("1"))]).await;
    let crashed = actor.window().tab().unwrap().call("Page.crash", serde_json::Value::Null).await;
    let crashed = crashed.unwrap_err();
    assert!(matches!(crashed, WebError::Crashed), "{crashed}");
    drop(actor);
    let process = browsers.process_id().await.unwrap();
    let window = browsers.window(&spec(), Arc::new(Nothing)).await.unwrap();
    // So is a browser that is killed.
    std::process::Command::new("kill").args(["-9", &process.to_string()]).status().unwrap();
    let ended = window.tab().unwrap().evaluate("1").await;
    assert!(matches!(ended, Err(WebError::Ended { .. })), "{ended:?}");
    drop(window);
    let window = browsers.window(&spec(), Arc::new(Nothing)).await.unwrap();
    assert_eq!(window.tab().unwrap().evaluate("1 + 1").await.unwrap(), json!(2));
    assert!(begun.elapsed() < Duration::from_secs(120));
}
