//! Tests of both environments, most of them with a real browser.

use std::ops::ControlFlow;
use std::sync::Arc;

use serde_json::{Value, json};
use spar_core::{Action, Boundary, Observation, Seed, Step};
use spar_sandbox::pool::{PoolConfig, SandboxPool};
use spar_tasks::{SuiteOptions, Task, open_suite};

use super::{MiniWob, Pages, Site, WebError};
use crate::resources::Sandboxes;
use crate::{Environment, EnvironmentError, Resources, open_environment, test_task};

/// Whether MiniWoB++'s pages are there; tells where they are not.
fn has_pages() -> bool {
    Pages::shared().map_err(|error| println!("not run: {error}")).is_ok()
}

async fn begun(task: &Task, resources: &Resources) -> (Box<dyn Environment>, Observation) {
    let mut env = open_environment(task, resources).unwrap();
    let first = env.reset(Seed::from_u64(1)).await.unwrap();
    (env, first)
}

/// Plays the oracle to the end: the steps, with what was done.
async fn by_oracle(env: &mut dyn Environment, most: usize) -> Vec<(Action, Step)> {
    let mut steps: Vec<(Action, Step)> = Vec::new();
    while steps.len() < most
        && let Some(action) = env.oracle_action()
    {
        let step = env.step(&action).await.unwrap();
        steps.push((action, step));
    }
    steps
}

fn earned(steps: &[(Action, Step)]) -> f64 {
    steps.iter().map(|(_, step)| step.reward()).sum()
}

/// What was done, and what was answered to what was not carried out, from the last on.
fn told(steps: &[(Action, Step)]) -> Vec<String> {
    let one = |(action, step): &(Action, Step)| {
        let results = step.observation.results.iter().map(|result| &result.text);
        let said = results.chain([&step.observation.text]).find(|text| !text.is_empty());
        let why = said.filter(|_| !step.valid).and_then(|text| text.lines().next());
        format!("{action} {}", why.unwrap_or_default())
    };
    steps.iter().rev().take(4).map(one).collect()
}

fn refused(environment: &str, parameters: Value) -> String {
    let task = test_task(environment, parameters);
    match open_environment(&task, &Resources::default()).map(drop) {
        Ok(()) => panic!("{} was opened", task.parameters),
        Err(error) => error.to_string(),
    }
}

#[test]
fn parameters_are_strict() {
    for (wrong, told) in [
        (json!({}), "`seed`"),
        (json!({ "seed": 1, "size": 3 }), "`size`"),
        (json!({ "seed": 1, "task": "click-everything" }), "`click-everything`"),
        (json!({ "seed": 1, "task": "click-test", "tasks": "all" }), "either `task` or `tasks`"),
        (json!({ "seed": 1, "tasks": [] }), "`tasks` is empty"),
        (json!({ "seed": 1, "tasks": "some" }), "Tasks"),
        (json!({ "seed": 1, "actions": ["magic"] }), "`magic`"),
        (json!({ "seed": 1, "observation": "none" }), "nothing is shown"),
        (json!({ "seed": 1, "time_ms": 0, "settle_ms": 90_000 }), "time_ms is 0"),
    ] {
        let error = refused("miniwob", wrong);
        assert!(error.contains(told), "{error}");
    }
    let task = json!({ "task_id": 1, "intent": "i", "start_url": "http://shop.test/", "eval": { "eval_types": ["url_match"], "reference_url": "x" } });
    let elsewhere = json!({ "task_id": 1, "intent": "i", "start_url": "__REDDIT__", "eval": { "eval_types": ["url_match"], "reference_url": "x" } });
    let unjudged = json!({ "task_id": 1, "intent": "i", "start_url": "http://shop.test/", "eval": { "eval_types": ["magic"] } });
    for (wrong, told) in [
        (json!({}), "either `seed` or `task`"),
        (json!({ "seed": 1, "task": task }), "either `seed` or `task`"),
        (json!({ "seed": 1, "world": 1 }), "are for a `task`"),
        (json!({ "task": task, "world": 1, "folder": "." }), "one of `world`, `folder`"),
        (
            json!({ "task": task, "serve": { "folder": "/nowhere", "command": "a", "port": 1 } }),
            "`serve.folder`",
        ),
        (json!({ "task": task, "serve": { "folder": "/tmp", "command": "a" } }), "`port`"),
        (json!({ "task": task, "folder": "/nowhere" }), "use a browser"),
        (json!({ "task": elsewhere }), "`__REDDIT__`, and its sites are"),
        (json!({ "task": unjudged }), "`magic`"),
        (json!({ "seed": 1, "viewport": [1, 1] }), "1 by 1"),
        (json!({ "seed": 1, "settle_ms": 90_000 }), "90000"),
        (json!({ "seed": 1, "actions": [] }), "no set of actions"),
    ] {
        let error = refused("site", wrong);
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn tasks_take_turns_by_seed_and_splits_have_seeds_of_their_own() {
    let drawn = |parameters: Value| MiniWob::drawn(&test_task("miniwob", parameters));
    assert_eq!(drawn(json!({ "seed": 0 })).as_deref(), Some("ascending-numbers"));
    assert_eq!(drawn(json!({ "seed": 131 })).as_deref(), Some("bisect-angle"));
    assert_eq!(drawn(json!({ "seed": 9, "task": "click-test" })).as_deref(), Some("click-test"));
    let two = json!({ "seed": 3, "tasks": ["click-test", "click-link"] });
    assert_eq!(drawn(two).as_deref(), Some("click-link"));
    assert_eq!(drawn(json!({ "seed": 3, "tasks": ["nothing"] })), None);
    assert_eq!(Site::kind(&test_task("site", json!({ "seed": 1 }))).unwrap(), "forum-comment");
    for (name, kinds) in [("miniwob", 130), ("site", 12)] {
        let suite = open_suite(name, &SuiteOptions::default()).unwrap();
        let seed =
            |split: &str, at| suite.task(split, at).unwrap().parameters["seed"].as_u64().unwrap();
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for (split, len) in &suite.manifest().splits {
            ranges.push((seed(split, 0), seed(split, len - 1)));
        }
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0), "{name}: {ranges:?}");
        let mut found: Vec<String> = (0..suite.len("dev").unwrap())
            .filter_map(|at| {
                let task = suite.task("dev", at).unwrap();
                if name == "site" { Site::kind(&task) } else { MiniWob::drawn(&task) }
            })
            .collect();
        found.sort();
        found.dedup();
        assert_eq!(found.len(), kinds, "{name}");
    }
}

#[test]
fn what_a_browser_does_wrong_is_no_doing_of_the_agent() {
    let none = EnvironmentError::from(WebError::NoBrowser { tried: "nothing".to_owned() });
    assert_eq!(none.boundary(), Boundary::Environment);
    assert!(!none.is_refusal());
    let source = std::error::Error::source(&none).and_then(|it| it.downcast_ref::<WebError>());
    assert!(source.unwrap().hint().unwrap().contains("SPAR_CHROMIUM"));
    assert!(EnvironmentError::from(WebError::NoWindow { seconds: 60 }).is_refusal());
}

/// Tasks of all kinds: buttons, fields, lists, tabs, menus, dates, dialogs, drawings, arithmetic.
const PLAYED: [&str; 24] = [
    "click-test",
    "click-button",
    "click-button-sequence",
    "click-checkboxes",
    "click-collapsible-2",
    "click-color",
    "click-dialog-2",
    "click-link",
    "click-menu",
    "click-tab-2",
    "choose-date-easy",
    "choose-list",
    "copy-paste",
    "enter-date",
    "enter-text",
    "enter-time",
    "find-word",
    "form-sequence-3",
    "guess-number",
    "login-user",
    "navigate-tree",
    "search-engine",
    "simple-arithmetic",
    "use-autocomplete",
];

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn chromium_miniwob_is_played_by_its_oracle_in_words_and_by_calls() {
    if !has_pages() {
        return;
    }
    let resources = Resources::default();
    let mut failed = Vec::new();
    for (number, name) in PLAYED.into_iter().enumerate() {
        let task = test_task("miniwob", json!({ "seed": 500 + number, "task": name }));
        let mut env = open_environment(&task, &resources).unwrap();
        let uses_tools = number % 2 == 0;
        if uses_tools {
            env.use_tools();
        }
        let first = env.reset(Seed::from_u64(1)).await.unwrap();
        assert!(first.text.starts_with("Your task: ") && first.text.contains("RootWebArea"));
        assert_eq!(first.text.contains("click(bid,"), !uses_tools, "{name}");
        assert_eq!(env.tools().is_empty(), !uses_tools);
        let idle = env.step(&"do nothing at all".into()).await.unwrap();
        assert!(!idle.valid && idle.reward() == 0.0 && !idle.terminated, "{name}");
        let steps = by_oracle(env.as_mut(), 20).await;
        let last = steps.last().map(|(_, step)| step);
        let is_won = last.is_some_and(|step| step.success && step.terminated);
        if earned(&steps) != 1.0 || !is_won {
            let all = steps.last().map(|(_, step)| step.observation.text.clone());
            failed.push(format!("{name}: {:?}: {:?} {all:?}", first.instruction, told(&steps)));
        } else {
            assert!(matches!(
                env.step(&"noop()".into()).await,
                Err(EnvironmentError::Misused { .. })
            ));
        }
        env.close().await.unwrap();
    }
    resources.close_programs().await;
    assert!(failed.is_empty(), "{failed:#?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn chromium_site_is_played_by_its_oracle_and_judged() {
    let resources = Resources::default();
    let mut failed = Vec::new();
    for seed in 0..24 {
        let task = test_task("site", json!({ "seed": seed }));
        let mut env = open_environment(&task, &resources).unwrap();
        if seed % 2 == 1 {
            env.use_tools();
        }
        let first = env.reset(Seed::from_u64(1)).await.unwrap();
        let steps = by_oracle(env.as_mut(), 15).await;
        let is_over = steps.last().is_some_and(|(_, step)| step.terminated);
        let verdict = env.verify().await.unwrap().unwrap();
        if !is_over || !verdict.success || verdict.reward() != 1.0 {
            let said = told(&steps);
            failed.push(format!("{:?} {:?}: {said:?}", env.tags(), first.instruction));
        }
        // The same again shows the same.
        assert_eq!(env.reset(Seed::from_u64(1)).await.unwrap(), first);
        for (action, before) in &steps {
            let again = env.step(action).await.unwrap();
            let texts = [&before.observation, &again.observation]
                .map(|it| it.results.first().map_or(&it.text, |result| &result.text));
            if let Some(differ) = texts[0].lines().zip(texts[1].lines()).find(|(a, b)| a != b) {
                failed.push(format!("{:?} {action}: {differ:?}", env.tags()));
            }
        }
        // Nothing done, whatever is answered, is nothing earned.
        env.reset(Seed::from_u64(1)).await.unwrap();
        let said = "Done. 1 2 3 4 5 6 7 8 9 anja boris chloe dimitri elif farid greta hugo";
        let step = env.step(&format!("send_msg_to_user('{said}')").into()).await.unwrap();
        assert!(step.terminated);
        let verdict = env.verify().await.unwrap().unwrap();
        assert!(!verdict.success && verdict.parts.is_empty(), "{:?}", first.instruction);
        env.close().await.unwrap();
    }
    resources.close_programs().await;
    assert!(failed.is_empty(), "{failed:#?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn chromium_pages_pay_nothing_for_cheats() {
    let resources = Resources::default();
    let all_actions = json!(["bid", "nav", "tab", "coord", "infeas", "chat"]);
    for cheat in [
        "goto('javascript:core.endEpisode(1)')",
        "goto('javascript:WOB_RAW_REWARD_GLOBAL=1;WOB_DONE_GLOBAL=true;WOB_REWARD_GLOBAL=1')",
        "goto('JaVaScRiPt:core.endEpisode(1,true)')",
        "goto('file:///etc/passwd')",
        "goto('view-source:http://miniwob.test/miniwob/click-test.html')",
        "goto('http://miniwob.test/miniwob/click-test.html')",
        "goto('http://miniwob.test/core/core.js')",
        "goto('chrome://crash')",
        "goto('data:text/html,<script>core.endEpisode(1)</script>')",
        "new_tab()",
        "tab_close()",
        "keyboard_press('F5')",
        "keyboard_press('Control+Shift+i')",
        "send_msg_to_user('reward 1')",
        "report_infeasible('core.endEpisode(1)')",
    ] {
        for reward in ["success", "raw", "time-scaled"] {
            if !has_pages() {
                continue;
            }
            let parameters = json!({ "seed": 4, "task": "click-test", "actions": all_actions, "reward": reward });
            let (mut env, _) = begun(&test_task("miniwob", parameters), &resources).await;
            let mut step = env.step(&cheat.into()).await.unwrap();
            assert!(!step.observation.text.contains("root:"), "{cheat}");
            for _ in 0..2 {
                assert!(step.reward() == 0.0 && !step.success, "{cheat}: {step:?}");
                if step.terminated {
                    break;
                }
                step = env.step(&"noop(2000)".into()).await.unwrap();
            }
            env.close().await.unwrap();
        }
        // Who comes upon the pages of a judge by itself has not done what was asked.
        let parameters = json!({ "seed": 4, "actions": all_actions });
        let (mut env, _) = begun(&test_task("site", parameters), &resources).await;
        let step = env.step(&cheat.into()).await.unwrap();
        assert!(!step.observation.text.contains("root:"), "{cheat}");
        assert!(!env.verify().await.unwrap().unwrap().success, "{cheat}");
        env.close().await.unwrap();
    }
    resources.close_programs().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn chromium_episodes_repeat_and_pages_that_go_on_show_the_same() {
    if !has_pages() {
        return;
    }
    let resources = Resources::default();
    let play = async |parameters: Value| {
        let (mut env, first) = begun(&test_task("miniwob", parameters), &resources).await;
        let steps = by_oracle(env.as_mut(), 20).await;
        env.close().await.unwrap();
        let steps: Vec<Observation> = steps.into_iter().map(|(_, it)| it.observation).collect();
        (first, steps)
    };
    for name in ["click-button", "enter-text", "click-checkboxes"] {
        let (shown, _) = play(json!({ "seed": 7, "task": name, "screenshot": true })).await;
        let picture = &shown.media[0];
        assert_eq!(picture.media_type, "image/png");
        assert!(picture.bytes().unwrap().starts_with(b"\x89PNG"), "{name}");
        let fresh = play(json!({ "seed": 7, "task": name })).await;
        assert_eq!(shown.text, fresh.0.text, "{name}");
        for reset in ["load", "in-page"] {
            let other = json!({ "seed": 8, "task": name, "reset": reset });
            let same = json!({ "seed": 7, "task": name, "reset": reset });
            assert_ne!(play(other).await.0, fresh.0, "{name} {reset}");
            assert_eq!(play(same).await, fresh, "{name} {reset}");
        }
    }
    let pixels = json!({ "seed": 7, "task": "click-test", "observation": "none", "screenshot": true, "actions": ["coord"] });
    let (first, _) = play(pixels).await;
    assert!(!first.text.contains("RootWebArea") && first.text.contains("mouse_click(x, y"));
    let (first, _) = play(json!({ "seed": 7, "task": "click-test", "observation": "dom" })).await;
    assert!(first.text.contains("<button") && first.media.is_empty(), "{}", first.text);
    resources.close_programs().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn chromium_that_ends_fails_its_episodes_and_others_begin_anew() {
    let resources = Resources::default();
    let task = test_task("site", json!({ "seed": 1 }));
    let (mut env, first) = begun(&task, &resources).await;
    resources.close_programs().await;
    let error = env.step(&"noop()".into()).await.unwrap_err();
    assert!(matches!(error, EnvironmentError::Browser(_)), "{error}");
    assert_eq!(error.boundary(), Boundary::Environment);
    assert!(env.oracle_action().is_none());
    env.close().await.unwrap();
    let (mut env, again) = begun(&task, &resources).await;
    assert_eq!(again, first);
    env.close().await.unwrap();
    resources.close_programs().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn chromium_windows_are_shared_by_more_episodes_than_there_are() {
    if !has_pages() {
        return;
    }
    let resources = Resources::default();
    let plays = (0..20).map(|seed| {
        let resources = resources.clone();
        let name = if seed % 3 == 0 { "click-link" } else { "click-test-2" };
        let parameters = json!({ "seed": seed, "task": name, "reset": "in-page" });
        tokio::spawn(async move {
            let (mut env, _) = begun(&test_task("miniwob", parameters), &resources).await;
            let steps = by_oracle(env.as_mut(), 20).await;
            env.close().await.unwrap();
            (earned(&steps), name, told(&steps))
        })
    });
    let mut failed = Vec::new();
    for play in plays.collect::<Vec<_>>() {
        let (earned, name, told) = play.await.unwrap();
        if earned != 1.0 {
            failed.push((name, told));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
    resources.close_programs().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn chromium_suites_are_valid() {
    let resources = Resources::default();
    for (name, splits, limit) in [
        ("miniwob", &["train", "test-oracle", "train-fast", "test-pixels"][..], 4),
        ("miniwob", &["train-small", "test-small-others"][..], 4),
        // Not with screenshots: whether the mouse shows in a picture is for the browser's own time.
        ("site", &["test"][..], 8),
        ("web-shop", &["test"][..], 2),
    ] {
        if name == "miniwob" && !has_pages() {
            continue;
        }
        let suite = open_suite(name, &SuiteOptions::default()).unwrap();
        let go_on = |_, _| ControlFlow::Continue(());
        let report =
            crate::validate_suite(suite.as_ref(), splits, Some(limit), &resources, go_on).await;
        let report = report.unwrap();
        assert!(report.is_valid(), "{name}: {:#?}", report.failures);
        assert_eq!(report.num_tasks, limit * splits.len());
    }
    resources.close_programs().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn chromium_folders_of_pages_are_sites_with_webarenas_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("www");
    std::fs::create_dir(&pages).unwrap();
    std::fs::write(pages.join("index.html"), "<title>Home</title><a href=team.html>Team</a>")
        .unwrap();
    std::fs::write(pages.join("team.html"), "<title>Team</title><p id=lead>Ada leads.</p>")
        .unwrap();
    let file = folder.path().join("tasks.json");
    let tasks = json!([
        { "task_id": 1, "sites": ["own"], "intent": "Who leads?", "start_url": "http://site.test/",
          "eval": { "eval_types": ["string_match"], "reference_answers": { "exact_match": "Ada" } } },
        { "task_id": 2, "sites": ["own"], "intent": "Show the team.", "start_url": "http://site.test/",
          "eval": { "eval_types": ["url_match", "program_html"], "reference_url": "http://site.test/team.html",
            "program_html": [{ "url": "last", "locator": "document.querySelector('#lead').textContent",
              "required_contents": { "must_include": ["Ada"] } }] } },
    ]);
    std::fs::write(&file, tasks.to_string()).unwrap();
    let suite = open_suite(file.to_str().unwrap(), &SuiteOptions::default()).unwrap();
    let resources = Resources::default();
    for (index, answer, solves) in
        [(0, "Ada", true), (0, "Bob", false), (1, "Done.", true), (1, "", false)]
    {
        let (mut env, first) = begun(&suite.task("test", index).unwrap(), &resources).await;
        assert!(first.text.contains("link 'Team'"), "{}", first.text);
        let line = first.text.lines().find(|line| line.contains("link 'Team'")).unwrap();
        let bid = line.split(['[', ']']).nth(1).unwrap();
        // An episode that a limit ends is judged as it stands.
        if !answer.is_empty() {
            let step = env.step(&format!("click('{bid}')").into()).await.unwrap();
            assert!(step.observation.text.contains("Ada leads."), "{}", step.observation.text);
            env.step(&format!("send_msg_to_user('{answer}')").into()).await.unwrap();
        }
        assert_eq!(env.verify().await.unwrap().unwrap().success, solves, "{index} {answer}");
        env.close().await.unwrap();
    }
    resources.close_programs().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn chromium_shows_the_shop_whose_first_purchase_counts() {
    let resources = Resources::default();
    let parameters = json!({ "seed": 2_000_000, "products": 5_000, "part": "test" });
    let task = test_task("web-shop", parameters.clone());
    for uses_tools in [false, true] {
        let mut env = open_environment(&task, &resources).unwrap();
        if uses_tools {
            env.use_tools();
        }
        let first = env.reset(Seed::from_u64(1)).await.unwrap();
        assert!(first.text.contains("textbox 'Search'"), "{}", first.text);
        let steps = by_oracle(env.as_mut(), 30).await;
        let (_, last) = steps.last().unwrap();
        assert!(last.terminated && last.success && earned(&steps) == 1.0, "{:#?}", told(&steps));
        assert!(env.step(&"noop()".into()).await.is_err(), "it is over");
        env.close().await.unwrap();
    }
    // The reader buys the same as in words, for as much.
    let mut in_words = open_environment(&test_task("shop", parameters), &resources).unwrap();
    in_words.reset(Seed::from_u64(1)).await.unwrap();
    let mut worth = 0.0;
    while let Some(action) = in_words.expert_action() {
        worth += in_words.step(&action).await.unwrap().reward();
    }
    let (mut env, _) = begun(&task, &resources).await;
    let mut bought = 0.0;
    while let Some(action) = env.expert_action() {
        bought += env.step(&action).await.unwrap().reward();
    }
    assert!(worth > 0.0 && bought == worth, "{bought} for {worth}");
    // Addresses are what buttons are: what does not stand on a page is not bought, and nothing is bought twice.
    let (mut env, _) = begun(&task, &resources).await;
    for url in [
        "http://webshop.test/visit/0/click?what=buy+now",
        "http://webshop.test/visit/9/click?what=buy+now",
        "http://webshop.test/visit/0/click?what=b000000000",
        "http://webshop.test/visit/0/search?words=",
        "http://elsewhere.test/",
        "javascript:document.title='bought'",
    ] {
        let step = env.step(&format!("goto({})", spar_python::repr_str(url)).into()).await.unwrap();
        assert!(step.rewards.is_empty() && !step.terminated, "{url}");
    }
    env.step(&"goto('http://webshop.test/visit/0/search?words=shirt')".into()).await.unwrap();
    let page = env.step(&"noop()".into()).await.unwrap().observation.text;
    let line =
        page.lines().find(|line| line.contains("link 'B0")).unwrap_or_else(|| panic!("{page}"));
    let bid = line.split(['[', ']']).nth(1).unwrap();
    env.step(&format!("click('{bid}')").into()).await.unwrap();
    let page = env.step(&"noop()".into()).await.unwrap().observation.text;
    let line = page.lines().find(|line| line.contains("button 'Buy Now'")).unwrap();
    let bid = line.split(['[', ']']).nth(1).unwrap();
    let step = env.step(&format!("click('{bid}')").into()).await.unwrap();
    assert!(step.terminated && !step.success, "{}", step.observation.text);
    env.close().await.unwrap();
    resources.close_programs().await;
}

/// An application that keeps what it is told, in a sandbox of this machine's namespaces.
const APPLICATION: &str = r#"
import http.server, urllib.parse
notes = []
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if "user=ada" not in self.headers.get("Cookie", ""):
            self.send_response(200)
            self.send_header("Set-Cookie", "user=ada")
        else:
            self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        who = "ada" if "user=ada" in self.headers.get("Cookie", "") else "nobody"
        page = "<title>Notes</title><p id=who>" + who + "</p><ul>" + "".join("<li>" + note + "</li>" for note in notes)
        page += "</ul><form method=post action=/add><input name=note aria-label=Note><button>Add</button></form>"
        self.wfile.write(page.encode())
    def do_POST(self):
        sent = self.rfile.read(int(self.headers["Content-Length"])).decode()
        notes.extend(urllib.parse.parse_qs(sent).get("note", []))
        self.send_response(303)
        self.send_header("Location", "http://site.test/")
        self.end_headers()
    def log_message(self, form, *arguments):
        print("x" * 5000)
http.server.ThreadingHTTPServer(("127.0.0.1", 8123), Handler).serve_forever()
"#;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn chromium_applications_in_sandboxes_are_sites() {
    let backend = spar_sandbox::registry::open("local").unwrap();
    if let Err(error) = backend.probe().await {
        println!("not run: {error}");
        return;
    }
    let pool = SandboxPool::new(backend, PoolConfig::default()).unwrap();
    let mut sandboxes = Sandboxes::new(Arc::new(pool));
    sandboxes.image = "host".parse().unwrap();
    let resources = Resources::with_sandboxes(sandboxes);
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("app")).unwrap();
    std::fs::write(folder.path().join("app/app.py"), APPLICATION).unwrap();
    let served = folder.path().join("serve.toml");
    std::fs::write(&served, "command = 'python3 app.py'\nport = 8123\n").unwrap();
    let file = folder.path().join("tasks.json");
    let tasks = json!([{ "task_id": 1, "sites": ["notes"], "intent": "Add the note Buy milk.", "start_url": "http://site.test/",
        "eval": { "eval_types": ["program_html"], "program_html": [{ "url": "http://site.test/",
            "locator": "document.querySelector('li').textContent + document.querySelector('#who').textContent",
            "required_contents": { "exact_match": "Buy milkada" } }] } }]);
    std::fs::write(&file, tasks.to_string()).unwrap();
    let open =
        || open_suite(file.to_str().unwrap(), &SuiteOptions::default()).unwrap().task("test", 0);
    // A second episode knows nothing of the first.
    for note in ["Buy milk", "", "Buy milk"] {
        let (mut env, first) = begun(&open().unwrap(), &resources).await;
        assert!(!first.text.contains("StaticText 'Buy milk'"), "{}", first.text);
        let bid = |text: &str, of: &str| {
            let line =
                text.lines().find(|line| line.contains(of)).unwrap_or_else(|| panic!("{text}"));
            line.split(['[', ']']).nth(1).unwrap().to_owned()
        };
        if !note.is_empty() {
            let place = bid(&first.text, "textbox 'Note'");
            let step = env.step(&format!("fill('{place}', '{note}')").into()).await.unwrap();
            let place = bid(&step.observation.text, "button 'Add'");
            let step = env.step(&format!("click('{place}')").into()).await.unwrap();
            assert!(
                step.observation.text.contains(&format!("StaticText '{note}'")),
                "{}",
                step.observation.text
            );
        }
        let step = env.step(&"goto('http://elsewhere.test/')".into()).await.unwrap();
        assert!(!step.valid || step.observation.text.contains("err"), "{}", step.observation.text);
        env.step(&"send_msg_to_user('Done.')".into()).await.unwrap();
        let verdict = env.verify().await.unwrap().unwrap();
        assert_eq!(verdict.success, !note.is_empty());
        env.close().await.unwrap();
    }
    // What does not come up is told with its last words.
    std::fs::write(&served, "command = 'echo no such luck; exit 3'\nport = 8123\nready_secs = 1\n")
        .unwrap();
    let mut env = open_environment(&open().unwrap(), &resources).unwrap();
    let Err(EnvironmentError::Sandbox { source, .. }) = env.reset(Seed::from_u64(1)).await else {
        panic!("it begins");
    };
    let told = std::error::Error::source(&source).map(ToString::to_string).unwrap_or_default();
    assert!(
        source.to_string().contains("port 8123") && told.contains("no such luck"),
        "{source}: {told}"
    );
    std::fs::write(&served, "command = ' '\nport = 8123\n").unwrap();
    let error = open_environment(&open().unwrap(), &resources).map(drop).unwrap_err().to_string();
    assert!(error.contains("`serve.command`"), "{error}");
    resources.close_programs().await;
}

/// The episodes that docs/web.md shows.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn chromium_plays_the_documented_episodes_so() {
    let resources = Resources::default();
    let page = include_str!("../../../docs/web.md");
    for (environment, parameters) in [
        ("miniwob", json!({ "seed": 3, "task": "enter-password" })),
        ("site", json!({ "seed": 2_000_008 })),
    ] {
        if environment == "miniwob" && !has_pages() {
            continue;
        }
        let mut env = open_environment(&test_task(environment, parameters), &resources).unwrap();
        // By calls, so that the actions are not listed before the page; told in words.
        env.use_tools();
        let first = env.reset(Seed::from_u64(1)).await.unwrap();
        let mut told = format!("{}\n", first.text);
        for (action, step) in by_oracle(env.as_mut(), 20).await {
            let shown = &step.observation.results[0].text;
            told.push_str(&format!("\n> {action}\n{shown}\n"));
            for part in &step.rewards {
                told.push_str(&format!("[{} {}]\n", part.name, part.value));
            }
        }
        for part in env.verify().await.unwrap().map(|it| it.parts).unwrap_or_default() {
            told.push_str(&format!("[{} {}]\n", part.name, part.value));
        }
        env.close().await.unwrap();
        assert!(page.contains(&told), "docs/web.md is to show:\n{told}");
    }
    resources.close_programs().await;
}
