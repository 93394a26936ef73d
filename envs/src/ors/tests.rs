//! Episodes on servers that work, and on servers that break.

use serde_json::{Value, json};
use spar_core::registry::to_options;
use spar_core::{Action, Boundary, Seed, Step, ToolCall};
use spar_ors::{FakeFault, FakeServer};

use crate::{Environment, EnvironmentError, Ors, Resources, test_task};

fn opened(url: &str, options: Value, resources: &Resources) -> Result<Ors, EnvironmentError> {
    let mut server = json!({ "url": url, "call_secs": 1.5 });
    server.as_object_mut().unwrap().extend(to_options(&options));
    let parameters = json!({ "server": server, "split": "train", "index": 4 });
    Ors::open(&test_task("ors", parameters), resources)
}

async fn begun(running: &FakeServer, options: Value) -> Ors {
    let mut env = opened(&running.url(), options, &Resources::default()).unwrap();
    let first = env.reset(Seed::from_u64(0)).await.unwrap();
    assert_eq!(first.text, "What is 4 + 1?");
    env
}

async fn step(
    env: &mut dyn Environment,
    calls: &[(&str, Value)],
) -> Result<Step, EnvironmentError> {
    let call = |(name, arguments): &(&str, Value)| ToolCall::new(*name, to_options(arguments));
    env.step(&Action::calls(calls.iter().map(call).collect())).await
}

fn texts(step: &Step) -> Vec<&str> {
    step.observation.results.iter().map(|result| result.text.as_str()).collect()
}

#[tokio::test]
async fn an_episode_is_played_to_its_end_and_nothing_is_earned_behind_it() {
    let running = FakeServer::start(None).await.unwrap();
    let mut env = begun(&running, json!({})).await;
    let names: Vec<_> = env.tools().iter().map(|spec| spec.name.clone()).collect();
    assert_eq!(names, ["add", "answer", "look"]);
    let words = env.step(&"5".into()).await.unwrap();
    assert!(!words.valid && !words.terminated && words.rewards.is_empty());
    let calls =
        [("add", json!({ "a": 4, "b": 1 })), ("add", json!({ "a": "x" })), ("look", json!({}))];
    let moved = step(&mut env, &calls).await.unwrap();
    assert_eq!(texts(&moved)[..2], ["5", "Tool input validation error: a, b"]);
    assert!(moved.observation.results[1].is_error && !moved.valid && !moved.terminated);
    assert_eq!(moved.observation.results[2].media[0].media_type, "image/png");
    let answer = ("answer", json!({ "answer": "5" }));
    let end = step(&mut env, &[answer.clone(), answer.clone()]).await.unwrap();
    assert_eq!(texts(&end), ["Correct!", "The task is over."]);
    assert!(end.terminated && end.success && end.reward() == 1.0);
    assert!(matches!(
        step(&mut env, &[answer]).await,
        Err(EnvironmentError::Misused { when: "after the end", .. })
    ));
    env.close().await.unwrap();
    assert_eq!(running.sessions(), 0);
    let mut env = begun(&running, json!({})).await;
    let wrong = step(&mut env, &[("answer", json!({ "answer": "4" }))]).await.unwrap();
    assert!(wrong.terminated && !wrong.success && wrong.reward() == 0.0);
}

#[tokio::test]
async fn hostile_arguments_reach_the_server_or_are_told() {
    let running = FakeServer::start(None).await.unwrap();
    let mut env = begun(&running, json!({})).await;
    let mut deep = json!(1);
    for _ in 0..120 {
        deep = json!([deep]);
    }
    let long = "x".repeat(1 << 20);
    let calls = [
        ("add", json!({ "a": deep })),
        ("add", json!({ "a": long })),
        ("../../health", json!({})),
        ("add", json!({ "a": f64::MAX, "\u{0}": "\u{202e}'; --" })),
    ];
    let told = step(&mut env, &calls).await.unwrap();
    let told = texts(&told);
    assert!(told[0].contains("levels deep") && told[1].contains("longer than"), "{told:?}");
    assert!(told[2].starts_with("There is no tool") && told[3].contains("validation"), "{told:?}");
}

#[tokio::test]
async fn forks_have_sessions_of_their_own_and_places_are_bounded() {
    let running = FakeServer::start(None).await.unwrap();
    let resources = Resources::default();
    let options = json!({ "sessions": 1, "wait_secs": 1 });
    let mut env = opened(&running.url(), options, &resources).unwrap();
    env.reset(Seed::from_u64(0)).await.unwrap();
    let mut early = env.fork().await.unwrap().expect("nothing was called");
    env.prepare().await.unwrap();
    let refused = early.prepare().await.unwrap_err();
    assert!(refused.is_refusal(), "{refused}");
    let sum = [("add", json!({ "a": 1, "b": 1 }))];
    step(&mut env, &sum).await.unwrap();
    assert!(env.fork().await.unwrap().is_none(), "it is brought there by its calls");
    env.close().await.unwrap();
    early.prepare().await.unwrap();
    assert_eq!(texts(&step(early.as_mut(), &sum).await.unwrap()), ["2"]);
    early.close().await.unwrap();
    assert_eq!(running.sessions(), 0);
    let mut env = begun(&running, json!({ "repeatable": false })).await;
    step(&mut env, &sum).await.unwrap();
    assert!(env.fork().await.err().unwrap().to_string().contains("not `repeatable`"));
}

#[tokio::test]
async fn what_a_server_does_wrong_fails_the_episode_or_ends_it_and_is_never_scored() {
    let sum = [("add", json!({ "a": 1, "b": 1 })), ("answer", json!({ "answer": "5" }))];
    for fault in
        [FakeFault::Raises, FakeFault::InfiniteReward, FakeFault::Heartbeats, FakeFault::Refuses]
    {
        let running = FakeServer::start(Some(fault)).await.unwrap();
        let mut env = begun(&running, json!({ "call_secs": 0.5 })).await;
        let error = step(&mut env, &sum).await.unwrap_err();
        assert!(matches!(error, EnvironmentError::TaskServer(_)), "{error}");
        assert_eq!(error.boundary(), Boundary::Environment);
        let mut env = begun(&running, json!({ "call_secs": 0.5, "on_failure": "end" })).await;
        let ended = step(&mut env, &sum).await.unwrap();
        assert!(ended.terminated && !ended.success && ended.rewards.is_empty());
        assert!(texts(&ended)[0].starts_with("This came to nothing: ORS server"));
        assert_eq!(texts(&ended)[1], "The task is over.");
    }
    let nobody = opened("http://127.0.0.1:9", json!({ "start_secs": 1 }), &Resources::default());
    let error = nobody.unwrap().reset(Seed::from_u64(0)).await.unwrap_err();
    assert!(crate::validate::chain(&error).contains("could not be reached"), "{error}");
    let told = opened("nowhere", json!({ "environment": "a/b" }), &Resources::default());
    let told = told.err().unwrap().to_string();
    assert!(told.contains("url is `nowhere`") && told.contains("environment"), "{told}");
}
