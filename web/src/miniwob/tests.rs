//! Tests with a real browser and the package from PyPI.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::{BrowserOptions, Browsers, Input};

/// Tasks of which script and devices show the same.
const PLAYED_BY_SCRIPT: [&str; 12] = [
    "click-button",
    "click-button-sequence",
    "click-checkboxes",
    "click-dialog",
    "click-link",
    "click-option",
    "click-tab",
    "click-test-2",
    "enter-password",
    "enter-text",
    "focus-text-2",
    "use-autocomplete",
];

fn browsers() -> Browsers {
    let options = BrowserOptions {
        patience: Duration::from_secs(20),
        max_windows: 2,
        ..BrowserOptions::default()
    };
    Browsers::new(options)
}

/// The pages, or why the test is not run.
fn pages() -> Option<Arc<Pages>> {
    Pages::shared().map_err(|error| println!("not run: {error}")).ok()
}

/// The names in `SPAR_MINIWOB_TASKS`, or every `step`th of all; every one where all forms of tests are asked for.
fn chosen(names: &[String], step: usize) -> Vec<String> {
    match std::env::var("SPAR_MINIWOB_TASKS") {
        Ok(chosen) => chosen.split(',').map(str::to_owned).collect(),
        Err(_) if std::env::var_os("SPAR_TEST_ALL").is_some() => names.to_vec(),
        Err(_) => names.iter().step_by(step).cloned().collect(),
    }
}

/// What differs first where two texts should not.
fn difference(task: &str, wanted: &str, found: &str) -> Option<String> {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (wanted, found) = (lines(wanted), lines(found));
    let longer = wanted.len().max(found.len());
    let place = (0..longer).find(|place| wanted.get(*place) != found.get(*place))?;
    Some(format!("{task}, line {place}: {:?} and {:?}", wanted.get(place), found.get(place)))
}

fn seeds() -> u64 {
    std::env::var("SPAR_MINIWOB_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(1)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn chromium_miniwob_loads_its_tasks_and_equal_seeds_show_equal_pages() {
    let Some(pages) = pages() else { return };
    let browsers = browsers();
    assert_eq!(pages.tasks(), task_rows().map(|row| row.name).collect::<Vec<_>>());
    let mut told = Vec::new();
    for task in chosen(pages.tasks(), 16) {
        let options = Options { grows: false, observing: Observing::Both, ..Options::default() };
        let begun = Episode::begin(&browsers, &pages, &task, 5, options);
        let (mut episode, first) = begun.await.unwrap_or_else(|error| panic!("{task}: {error}"));
        assert!(!episode.goal().is_empty() && first.text.contains("RootWebArea"), "{task}");
        let again = episode.again(5).await.unwrap();
        told.extend(difference(&task, &first.text, &again.text));
        assert!(!first.is_over, "{task}");
        // What ends an episode by going away earns nothing.
        let left = episode.act("goto('about:blank')").await.unwrap();
        assert!(left.is_over && left.reward == 0.0, "{task}");
        episode.leave();
    }
    browsers.close().await;
    assert!(told.is_empty(), "{told:#?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn chromium_miniwob_windows_know_nothing_of_episodes_before() {
    let Some(pages) = pages() else { return };
    assert!(!pages.keep_anything(), "MiniWoB++'s own pages keep nothing");
    let pages = Arc::new(pages.keeping());
    let browsers = browsers();
    let (first, second) = ("click-button", "click-link");
    let store = "document.cookie = 'a=1'; localStorage.a = 1; sessionStorage.a = 1;";
    let stored = "document.cookie + localStorage.length + sessionStorage.length";
    let options = Options { grows: false, observing: Observing::Both, ..Options::default() };
    let begin = |task: &'static str| Episode::begin(&browsers, &pages, task, 5, options.clone());
    let (mut fresh, shown) = begin(second).await.unwrap();
    let untouched = fresh.tab().evaluate(stored).await.unwrap();
    let back = fresh.act("go_back()").await.unwrap();
    assert!(!back.is_over, "there is nothing to go back to");
    let (mut worn, _) = begin(first).await.unwrap();
    worn.tab().evaluate(store).await.unwrap();
    let again = worn.again_with(second, 5).await.unwrap();
    assert_eq!(again.text, shown.text);
    assert_eq!(worn.tab().evaluate(stored).await.unwrap(), untouched);
    assert_eq!(worn.act("go_back()").await.unwrap(), back);
    fresh.leave();
    worn.leave();
    browsers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn chromium_miniwob_shows_the_same_in_a_page_that_goes_on() {
    let Some(pages) = pages() else { return };
    let browsers = browsers();
    let mut told = Vec::new();
    for task in chosen(pages.tasks(), 24) {
        let observing = match tasks::is_safe_in_page(&task, true) {
            true => Observing::Both,
            false => Observing::Dom,
        };
        if !tasks::is_safe_in_page(&task, false) {
            continue;
        }
        let options =
            Options { grows: false, observing, reset: Reset::InPage, ..Options::default() };
        let (mut fresh, first) =
            Episode::begin(&browsers, &pages, &task, 5, options.clone()).await.unwrap();
        fresh.leave();
        // Two other episodes before it, with the first moves of the player by rules or clicks.
        let (mut worn, mut shown) =
            Episode::begin(&browsers, &pages, &task, 6, options).await.unwrap();
        for seed in [7, 5] {
            for _ in 0..4 {
                let button = shown.view.elements().iter().find(|element| element.tag == "button");
                let action = next_action(&task, worn.goal(), &shown.view, Input::Devices);
                let action =
                    action.or_else(|| button.map(|button| format!("click('{}')", button.bid)));
                let Some(action) = action.filter(|_| !shown.is_over) else { break };
                shown = worn.act(&action).await.unwrap();
            }
            shown = worn.again(seed).await.unwrap();
        }
        told.extend(difference(&task, &first.text, &shown.text));
        fresh = worn;
        fresh.leave();
    }
    browsers.close().await;
    assert!(told.is_empty(), "{told:#?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn chromium_miniwob_is_played_by_script() {
    let Some(pages) = pages() else { return };
    let browsers = browsers();
    let options = Options {
        reset: Reset::InPage,
        observing: Observing::Dom,
        input: Input::Script,
        actions: ["bid", "coord"].map(str::to_owned).to_vec(),
        ..Options::default()
    };
    let mut failed = Vec::new();
    for task in chosen(&PLAYED_BY_SCRIPT.map(str::to_owned), 4) {
        let begun = Episode::begin(&browsers, &pages, &task, 100, options.clone()).await;
        let (mut episode, mut shown) = begun.unwrap_or_else(|error| panic!("{task}: {error}"));
        let mut by_devices = {
            let options = Options { input: Input::Devices, ..options.clone() };
            Episode::begin(&browsers, &pages, &task, 100, options).await.unwrap()
        };
        assert_eq!((shown.text.as_str(), shown.is_over), (by_devices.1.text.as_str(), false));
        let mut reward = 0.0;
        for _ in 0..20 {
            let action = next_action(&task, episode.goal(), &shown.view, Input::Devices);
            let Some(action) = action.filter(|_| !shown.is_over) else { break };
            shown = episode.act(&action).await.unwrap();
            by_devices.1 = by_devices.0.act(&action).await.unwrap();
            reward += shown.reward;
            if shown.text != by_devices.1.text || shown.error != by_devices.1.error {
                failed.push(format!("{task}, {action}: {shown:?} and {:?}", by_devices.1));
            }
        }
        if reward != 1.0 {
            failed.push(format!("{task}: {reward}"));
        }
        // As a script does it, whatever is in front.
        shown = episode.again(103).await.unwrap();
        reward = 0.0;
        for _ in 0..20 {
            let action = next_action(&task, episode.goal(), &shown.view, Input::Script);
            let Some(action) = action.filter(|_| !shown.is_over) else { break };
            let is_simple = action.starts_with("click(") || action.starts_with("fill(");
            assert!(is_simple || !only_clicks_and_fills(&task, Input::Script), "{action}");
            shown = episode.act(&action).await.unwrap();
            reward += shown.reward;
        }
        if reward != 1.0 {
            failed.push(format!("{task} by script: {reward}"));
        }
        // What needs the devices works all the same.
        episode.again(102).await.unwrap();
        let scrolled = episode.act("scroll(0, 20)").await.unwrap();
        assert_eq!((scrolled.error, scrolled.is_over), (None, false), "{task}");
        let missing = "ValueError: Could not find element with bid \"9999\"";
        for bid in ["9999", ""] {
            episode.again(101).await.unwrap();
            let told = episode.act(&format!("click('{bid}')")).await.unwrap().error.unwrap();
            assert_eq!(told, missing.replace("9999", bid), "{task}");
        }
        episode.leave();
        by_devices.0.leave();
    }
    browsers.close().await;
    assert!(failed.is_empty(), "{failed:#?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn chromium_miniwob_is_solved_by_players_and_not_by_cheats() {
    let Some(pages) = pages() else { return };
    let browsers = browsers();
    let names: Vec<String> = tasks_with_oracle().into_iter().map(str::to_owned).collect();
    let mut failed = Vec::new();
    for task in chosen(&names, 12) {
        let options = Options {
            grows: false,
            reset: Reset::InPage,
            observing: Observing::None,
            ..Options::default()
        };
        let (mut episode, mut shown) =
            Episode::begin(&browsers, &pages, &task, 100, options).await.unwrap();
        for seed in 100..100 + seeds() {
            if seed > 100 {
                shown = episode.again(seed).await.unwrap();
            }
            let (mut said, mut reward) = (Vec::new(), 0.0);
            for _ in 0..20 {
                let Some(action) = next_action(&task, episode.goal(), &shown.view, Input::Devices)
                    .filter(|_| !shown.is_over)
                else {
                    break;
                };
                shown = episode.act(&action).await.unwrap();
                reward += shown.reward;
                said.push(format!("{action} {}", shown.error.as_deref().unwrap_or_default()));
            }
            if reward != 1.0 {
                let last: Vec<&String> = said.iter().rev().take(3).collect();
                failed.push(format!("{task} {seed} {:?}: {last:?}", episode.goal()));
            }
        }
        episode.leave();
    }
    for line in &failed {
        println!("{line}");
    }
    assert!(failed.is_empty(), "{} failed", failed.len());
    for cheat in [
        "goto('javascript:core.endEpisode(1)')",
        "goto('javascript:WOB_RAW_REWARD_GLOBAL=1;WOB_DONE_GLOBAL=true')",
        "goto('file:///etc/passwd')",
        "goto('view-source:http://miniwob.test/miniwob/click-test.html')",
        "goto('http://miniwob.test/miniwob/click-test.html')",
        "goto('http://miniwob.test/core/core.js')",
        "goto('data:text/html,<script>opener</script>')",
        "new_tab()",
        "keyboard_press('F5')",
        "press('0', 'Control+u')",
        "press('0', 'F12')",
        "report_infeasible('x')",
        "tab_close()",
    ] {
        let options = Options {
            actions: ["bid", "nav", "tab", "coord", "infeas"].map(str::to_owned).to_vec(),
            ..Options::default()
        };
        let (mut episode, _) =
            Episode::begin(&browsers, &pages, "click-test", 1, options).await.unwrap();
        let mut shown = episode.act(cheat).await.unwrap();
        assert!(shown.reward == 0.0 && !shown.text.contains("root:"), "{cheat}");
        if !shown.is_over {
            shown = episode.act("noop(5000)").await.unwrap();
        }
        assert!(shown.reward == 0.0 && !shown.is_success, "{cheat}: {}", shown.text);
        episode.leave();
    }
    browsers.close().await;
}
