use serde_json::{Value as Json, json};
use spar_core::{Action, Seed, ToolCall};
use spar_tasks::{SuiteOptions, Task, open_suite};

use super::Bfcl;
use crate::Environment;

fn task(parameters: Json) -> Task {
    Task {
        id: "bfcl/test/0".to_owned(),
        environment: "bfcl".to_owned(),
        parameters,
        instruction: String::new(),
        max_turns: 50,
        tags: Vec::new(),
        graders: Vec::new(),
    }
}

/// Two turns: a function is withheld until the second.
fn withheld() -> Bfcl {
    let said = |text: &str| json!([{"role": "user", "content": text}]);
    Bfcl::open(&task(json!({
        "kind": "multi_turn",
        "id": "t_0",
        "question": [said("Open a ticket `a`."), []],
        "initial_config": {"TicketAPI": {"current_user": "ann"}},
        "involved_classes": ["TicketAPI"],
        "ground_truth": [["create_ticket('a')"], ["logout()"]],
        "missed_function": {"1": ["logout"]},
    })))
    .unwrap()
}

fn call(name: &str, arguments: Json) -> Action {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    Action::calls(vec![ToolCall::new(name, arguments)])
}

async fn played_by_oracle(env: &mut Bfcl) -> (f64, bool) {
    env.reset(Seed::from_u64(1)).await.unwrap();
    let mut reward = 0.0;
    for _ in 0..20 {
        let action = env.oracle_action().unwrap();
        let step = env.step(&action).await.unwrap();
        reward += step.reward();
        if step.terminated {
            return (reward, step.success);
        }
    }
    panic!("the episode does not end");
}

#[tokio::test]
async fn gold_calls_solve_the_tasks_that_ship_and_nothing_does_not() {
    let suite = open_suite("bfcl", &SuiteOptions::default()).unwrap();
    for split in ["train", "dev", "test", "turns"] {
        for index in 0..12 {
            let task = suite.task(split, index).unwrap();
            for uses_tools in [false, true] {
                let mut env = Bfcl::open(&task).unwrap();
                if uses_tools {
                    env.use_tools();
                }
                assert_eq!(played_by_oracle(&mut env).await, (1.0, true), "{}", task.id);
                env.reset(Seed::from_u64(1)).await.unwrap();
                let mut step = env.step(&Action::text("Done.")).await.unwrap();
                while !step.terminated {
                    step = env.step(&Action::text("Done.")).await.unwrap();
                }
                assert_eq!((step.reward(), step.success), (0.0, false), "{}", task.id);
            }
        }
    }
}

#[tokio::test]
async fn a_withheld_function_is_offered_at_its_turn() {
    let mut env = withheld();
    env.use_tools();
    env.reset(Seed::from_u64(1)).await.unwrap();
    let offers = |env: &Bfcl| env.tools().iter().any(|tool| tool.name == "logout");
    assert!(!offers(&env));
    let step = env.step(&call("create_ticket", json!({"title": "a"}))).await.unwrap();
    assert!(step.observation.results[0].text.starts_with(r#"{"id": 1, "title": "a""#));
    let step = env.step(&Action::text("Done.")).await.unwrap();
    assert!(step.observation.text.starts_with("I have updated some more functions"));
    assert!(offers(&env));
    env.step(&call("logout", json!({}))).await.unwrap();
    let step = env.step(&Action::text("Done.")).await.unwrap();
    let parts: Vec<_> = step.rewards.iter().map(|part| (&*part.name, part.value)).collect();
    assert_eq!(parts, [("state", 0.5), ("response", 0.5)]);

    // In words its description comes with the turn.
    let mut env = withheld();
    let first = env.reset(Seed::from_u64(1)).await.unwrap();
    assert!(first.text.contains("create_ticket") && !first.text.contains("\"logout\""));
    let step = env.step(&Action::text("[create_ticket(title='a')]")).await.unwrap();
    assert!(step.observation.text.starts_with("[{'role': 'tool', 'name': \"create_ticket("));
    let step = env.step(&Action::text("That is all.")).await.unwrap();
    assert!(step.observation.text.contains("\"logout\""));
}

#[tokio::test]
async fn a_step_too_many_ends_the_episode_with_nothing() {
    let mut env = withheld();
    env.use_tools();
    env.reset(Seed::from_u64(1)).await.unwrap();
    let action = call("ticket_get_login_status", json!({}));
    for _ in 0..20 {
        assert!(!env.step(&action).await.unwrap().terminated);
    }
    let step = env.step(&action).await.unwrap();
    assert!(step.terminated && !step.success && step.rewards.is_empty());
    assert!(env.step(&action).await.is_err(), "it is over");
}

#[tokio::test]
async fn a_fork_goes_on_alone() {
    let mut env = withheld();
    env.use_tools();
    env.reset(Seed::from_u64(1)).await.unwrap();
    env.step(&call("create_ticket", json!({"title": "a"}))).await.unwrap();
    let mut fork = env.fork().await.unwrap().unwrap();
    env.step(&call("close_ticket", json!({"ticket_id": 1}))).await.unwrap();
    let step = fork.step(&call("get_ticket", json!({"ticket_id": 1}))).await.unwrap();
    assert!(step.observation.results[0].text.contains("\"status\": \"Open\""));
}

#[tokio::test]
async fn single_turns_are_judged_by_their_first_answer() {
    let entry = |category: &str, answer: Json| {
        let kind = if category == "simple_java" { "String" } else { "string" };
        task(json!({
            "kind": "single_turn",
            "id": "s_0",
            "category": category,
            "question": [[{"role": "user", "content": "Weather in Oslo?"}]],
            "function": [{"name": "weather.get", "description": "Tells.", "parameters": {
                "type": "dict", "required": ["city"],
                "properties": {"city": {"type": kind, "description": "City."}},
            }}],
            "possible_answer": answer,
        }))
    };
    let gold = json!([{"weather.get": {"city": ["Oslo", "Oslo, Norway"]}}]);
    let irrelevant = ("irrelevance", Json::Null);
    for (category, answer) in
        [("simple_python", gold.clone()), ("simple_java", gold.clone()), irrelevant]
    {
        for uses_tools in [false, true] {
            let mut env = Bfcl::open(&entry(category, answer.clone())).unwrap();
            if uses_tools {
                env.use_tools();
            }
            assert_eq!(played_by_oracle(&mut env).await, (1.0, true), "{category}");
        }
    }
    let mut env = Bfcl::open(&entry("simple_python", gold)).unwrap();
    env.use_tools();
    env.reset(Seed::from_u64(1)).await.unwrap();
    assert_eq!(env.tools()[0].name, "weather_get");
    let step = env.step(&call("weather_get", json!({"city": "Bergen"}))).await.unwrap();
    assert!(step.terminated && !step.success);
}

#[tokio::test]
async fn gold_values_are_written_in_the_words_of_their_language() {
    let java = json!([
        ["boolean", null, true],
        ["integer", null, 7],
        ["long", null, 150],
        ["float", null, 0.5],
        ["double", null, 0.25],
        ["String", null, "CALL totalSales(?, 'a')"],
        ["any", null, "mapArea"],
        ["Array", "String", ["user:online", "user:away"]],
        ["Array", "long", [1, 2]],
        ["ArrayList", "String", ["GC pause", "stop"]],
        ["ArrayList", "long", [101, 202]],
        ["ArrayList", "integer", []],
        ["HashMap", null, {"limit": [50], "schemaFilter": ["public"], "isOpen": [true]}],
    ]);
    let script = json!([
        ["Boolean", null, false],
        ["integer", null, 7],
        ["Bigint", null, 12],
        ["float", null, 30.5],
        ["String", null, "one, two"],
        ["array", "String", ["bookA", "bookB"]],
        ["array", "float", [10.5, 15.5]],
        ["dict", null, {"nm": ["BarChart"], "rows": [[1, 2]], "start": ["/home/user"]}],
    ]);
    for (category, values) in [("simple_java", java), ("simple_javascript", script)] {
        let (mut properties, mut accepted) = (serde_json::Map::new(), serde_json::Map::new());
        for (at, row) in values.as_array().unwrap().iter().enumerate() {
            let mut details = json!({"type": row[0], "description": "A value."});
            if !row[1].is_null() {
                details["items"] = json!({"type": row[1]});
            }
            properties.insert(format!("p{at}"), details);
            accepted.insert(format!("p{at}"), json!([row[2]]));
        }
        let required: Vec<&String> = properties.keys().collect();
        let entry = json!({
            "kind": "single_turn", "id": "s_0", "category": category,
            "question": [[{"role": "user", "content": "Do it."}]],
            "function": [{"name": "all.values", "description": "Takes all.", "parameters": {
                "type": "dict", "required": required, "properties": properties,
            }}],
            "possible_answer": [{"all.values": accepted}],
        });
        for uses_tools in [false, true] {
            let mut env = Bfcl::open(&task(entry.clone())).unwrap();
            if uses_tools {
                env.use_tools();
            }
            assert_eq!(played_by_oracle(&mut env).await, (1.0, true), "{category} {uses_tools}");
        }
    }
}

#[tokio::test]
async fn hostile_answers_end_in_text_or_the_turn() {
    let deep = (0..120).fold(json!(1), |inner, _| json!([inner]));
    let mut env = withheld();
    env.use_tools();
    env.reset(Seed::from_u64(1)).await.unwrap();
    for arguments in [
        json!({"title": deep}),
        json!({"title": "a\u{0}\u{202e}'\"\\\n`$(rm -rf /)"}),
        json!({"title": [{"x": null}], "priority": "high"}),
        json!({"a b": 1, "class": 2}),
    ] {
        let step = env.step(&call("create_ticket", arguments)).await.unwrap();
        assert_eq!(step.observation.results.len(), 1);
    }
    let step =
        env.step(&call("create_ticket", json!({"title": "x".repeat(10 << 20)}))).await.unwrap();
    assert!(step.observation.results[0].is_error, "it ends the turn");
    let mut env = withheld();
    env.reset(Seed::from_u64(1)).await.unwrap();
    for text in ["[__import__('os').system('x')]", "[exit()]", "[create_ticket(title=eval(x=1))]"] {
        let step = env.step(&Action::text(text)).await.unwrap();
        assert!(step.observation.text.contains("Error during execution"), "{text}");
    }
    let nested = format!("[create_ticket(title={}1{})]", "[".repeat(5000), "]".repeat(5000));
    env.step(&Action::text(nested)).await.unwrap();
}

/// Plays a release by its gold calls: `BFCL_DATA` names its folder `data`; says so where it is not there.
#[tokio::test]
async fn the_release_is_solved_by_its_gold_calls() {
    let Some(data) = std::env::var_os("BFCL_DATA") else {
        eprintln!("not run: BFCL_DATA does not name the data of a release");
        return;
    };
    let suite = open_suite(&data.to_string_lossy(), &SuiteOptions::default()).unwrap();
    for (split, len) in suite.manifest().splits.clone() {
        let mut lost = Vec::new();
        let indices: Vec<usize> = (0..len).step_by(1 + len / 40).collect();
        for &index in &indices {
            let task = suite.task(&split, index).unwrap();
            for uses_tools in [false, true] {
                let mut env = Bfcl::open(&task).unwrap();
                if uses_tools {
                    env.use_tools();
                }
                if !played_by_oracle(&mut env).await.1 {
                    lost.push((index, uses_tools));
                }
            }
        }
        // Accepted values of single turns do not always satisfy the checker themselves.
        let allowed = if split.starts_with("multi_turn") { 0 } else { indices.len() / 4 };
        assert!(lost.len() <= allowed, "{split}: {lost:?} of {}", indices.len());
    }
}
