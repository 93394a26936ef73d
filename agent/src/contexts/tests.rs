//! Tests of what policies are shown.

use std::sync::Arc;

use spar_core::{Action, Message, Observation, ParsedAction, Policy, Role, ToolSpec, Trajectory};
use spar_tasks::Task;

use super::*;
use crate::policies::ScriptedPolicy;
use crate::{EpisodeConfig, ScaffoldChoice};

fn task() -> Task {
    Task {
        id: "t".to_owned(),
        environment: "e".to_owned(),
        parameters: serde_json::Value::Null,
        instruction: "be good".to_owned(),
        max_turns: 3,
        tags: Vec::new(),
        graders: Vec::new(),
    }
}

fn observation(text: &str) -> Observation {
    Observation {
        text: text.to_owned(),
        instruction: Some("heat it".into()),
        admissible: Some([Arc::from("go"), Arc::from("wait")].into()),
        ..Observation::default()
    }
}

fn episode(context: &ContextConfig) -> EpisodeConfig {
    EpisodeConfig { context: context.clone(), ..EpisodeConfig::default() }
}

fn play(config: &ContextConfig, turns: usize) -> Vec<Prompt> {
    let policy = ScriptedPolicy::new(Vec::<String>::new());
    let (config, task) = (episode(config), task());
    let no_tools = Arc::default();
    let mut context =
        Context::new(&config, Some(&policy), &task, &observation("o0"), Arc::default(), false);
    let mut tokens: Vec<u32> = Vec::new();
    (0..turns)
        .map(|turn| {
            let prompt = context.prompt(&no_tools).unwrap();
            tokens.truncate(prompt.tokens.kept);
            tokens.extend(&prompt.tokens.appended);
            assert_eq!(tokens, *prompt.ids);
            let encode = |message: &Arc<Message>| policy.encode(None, message);
            let encoded: Vec<u32> = prompt.messages.iter().flat_map(encode).collect();
            assert_eq!(encoded, *prompt.ids, "tokens and messages tell the same");
            let answer = Message::new(Role::Assistant, format!("a{turn}"));
            let sampled = policy.encode(None, &answer);
            tokens.extend(&sampled);
            context.push_answer(&answer.text(), &ParsedAction::of("go"), &sampled);
            context.push_observation(&observation(&format!("o{}", turn + 1)), Some("go"));
            prompt
        })
        .collect()
}

fn texts(prompt: &Prompt) -> Vec<String> {
    prompt.messages.iter().map(|message| message.text().into_owned()).collect()
}

#[test]
fn everything_is_appended() {
    let prompts = play(&ContextConfig::default(), 3);
    assert_eq!(texts(&prompts[2]), ["be good", "o0", "a0", "o1", "a1", "o2"]);
    assert_eq!(prompts[0].tokens.kept, 0);
    assert!(prompts[2].tokens.kept > prompts[1].ids.len());
}

#[test]
fn a_window_keeps_the_first_observation_and_the_last_turns() {
    let config =
        ContextConfig { window_turns: Some(1), instruction: false, ..ContextConfig::default() };
    let prompts = play(&config, 4);
    assert_eq!(texts(&prompts[0]), ["o0"]);
    assert_eq!(texts(&prompts[1]), ["o0", "a0", "o1"]);
    assert_eq!(texts(&prompts[3]), ["o0", "a2", "o3"]);
    assert_eq!(prompts[1].tokens.kept, prompts[0].ids.len() + 3);
}

#[test]
fn observations_carry_what_was_asked_for() {
    let config =
        ContextConfig { reminder: true, list_admissible: true, ..ContextConfig::default() };
    let prompts = play(&config, 2);
    assert_eq!(texts(&prompts[1])[3], "o1\nAdmissible actions:\n- go\n- wait\n> heat it");
}

#[test]
fn what_the_text_does_not_name_is_listed_once() {
    let config =
        ContextConfig { instruction: false, list_unnamed: true, ..ContextConfig::default() };
    let seen = |text: &str, actions: &[&str]| Observation {
        admissible: Some(actions.iter().map(|action| Arc::from(*action)).collect()),
        ..observation(text)
    };
    let first =
        seen("You see a cabinet 10, and a bed 2.", &["go to bed 2", "go to cabinet 10", "look"]);
    let (config, task) = (episode(&config), task());
    let mut context = Context::new(&config, None, &task, &first, Arc::default(), false);
    let near = ["go to bed 2", "open cabinet 1", "open cabinet 10", "take pen 3 from cabinet 10"];
    context.push_observation(&seen("The cabinet 10 is closed.", &near), None);
    context.push_observation(&seen("Nothing happens.", &near), None);
    let shown = context.prompt(&Arc::default()).unwrap();
    let listed = "The cabinet 10 is closed.\nAlso admissible:\n- open cabinet 1\n- take pen 3 from cabinet 10";
    assert_eq!(texts(&shown), [&*first.text, listed, "Nothing happens."]);
}

#[test]
fn what_is_left_stands_in_the_order_in_which_it_was_named() {
    let config = ContextConfig {
        instruction: false,
        list_untried: ListUntried::Always,
        max_untried: Some(2),
        ..ContextConfig::default()
    };
    let seen = |text: &str| Observation {
        admissible: Some(
            ["go away", "go to bed 1", "go to bed 2", "go to desk 1", "look"].map(Arc::from).into(),
        ),
        ..observation(text)
    };
    let first = seen("You see a desk 1, and a bed 2.");
    let (config, task) = (episode(&config), task());
    let mut context = Context::new(&config, None, &task, &first, Arc::default(), false);
    let mut next = |action: Option<&str>| {
        context.push_observation(&seen("o"), action);
        context.prompt(&Arc::default()).unwrap().messages.last().unwrap().text().into_owned()
    };
    assert_eq!(next(None), "o");
    assert_eq!(next(Some("look")), "o");
    assert_eq!(next(Some("go off")), "o\nNot tried yet:\n- go to desk 1\n- go to bed 2");
    assert_eq!(next(Some("go to desk 1")), "o\nNot tried yet:\n- go to bed 2\n- go away");
    assert_eq!(next(Some("go to bed 2")), "o\nNot tried yet:\n- go away\n- go to bed 1");
}

#[test]
fn of_what_differs_in_numbers_alone_one_is_listed() {
    let config = ContextConfig {
        instruction: false,
        list_untried: ListUntried::Always,
        ..ContextConfig::default()
    };
    let first = observation("You see a desk 1, a bed 2, a bed 1, and a desk 2.");
    let (config, task) = (episode(&config), task());
    let mut context = Context::new(&config, None, &task, &first, Arc::default(), false);
    let mut next = |action: &str| {
        let admissible =
            ["go to bed 1", "go to bed 2", "go to desk 1", "go to desk 2"].map(Arc::from);
        let observation = Observation { admissible: Some(admissible.into()), ..observation("o") };
        context.push_observation(&observation, Some(action));
        context.prompt(&Arc::default()).unwrap().messages.last().unwrap().text().into_owned()
    };
    assert_eq!(next("go off"), "o\nNot tried yet:\n- go to desk 1\n- go to bed 2");
    assert_eq!(next("go to bed 2"), "o\nNot tried yet:\n- go to desk 1\n- go to bed 1");
    assert_eq!(next("go to bed 1"), "o\nNot tried yet:\n- go to desk 1");
    assert_eq!(next("go to desk 1"), "o\nNot tried yet:\n- go to desk 2");
}

#[test]
fn what_a_seat_alone_is_told_stands_behind_the_task_in_the_system_message() {
    let opening = |has_own: bool, instruction: bool| {
        let (config, task) = (ContextConfig { instruction, ..ContextConfig::default() }, task());
        let config = episode(&config);
        let first = observation("o0");
        let mut context = Context::new(&config, None, &task, &first, Arc::default(), has_own);
        let messages = context.prompt(&Arc::default()).unwrap().messages;
        messages.iter().map(|message| message.text().into_owned()).collect::<Vec<_>>()
    };
    assert_eq!(opening(true, true), ["be good\n\nheat it", "o0"]);
    assert_eq!(opening(false, true), ["be good", "o0"]);
    assert_eq!(opening(true, false), ["o0"]);
}

#[test]
fn who_repeats_an_action_is_told_what_is_left() {
    let config = ContextConfig {
        instruction: false,
        list_untried: ListUntried::Repeated,
        ..ContextConfig::default()
    };
    let (config, task) = (episode(&config), task());
    let mut context = Context::new(&config, None, &task, &observation("o0"), Arc::default(), false);
    let mut next = |action: Option<&str>| {
        let admissible =
            ["go to bed 1", "go to bed 2", "go to desk 1", "goad", "look"].map(Arc::from);
        let observation = Observation { admissible: Some(admissible.into()), ..observation("o") };
        context.push_observation(&observation, action);
        context.prompt(&Arc::default()).unwrap().messages.last().unwrap().text().into_owned()
    };
    assert_eq!(next(Some("go to bed 1")), "o");
    assert_eq!(next(Some("go to desk 1")), "o");
    assert_eq!(next(None), "o");
    assert_eq!(next(Some("go to bed 1")), "o\nNot tried yet:\n- go to bed 2");
    assert_eq!(next(Some("go to bed 2")), "o");
    // Nothing is left.
    assert_eq!(next(Some("go to bed 2")), "o");
}

fn scaffolded(scaffold: &str, context: ContextConfig) -> EpisodeConfig {
    let scaffold = ScaffoldChoice::named(scaffold).unwrap();
    EpisodeConfig { scaffold, context, ..EpisodeConfig::default() }
}

fn tools(names: &[&str]) -> Arc<[ToolSpec]> {
    let tool = |name: &&str| ToolSpec::new(*name, "A tool.", serde_json::json!({}));
    names.iter().map(tool).collect()
}

fn called(id: &str) -> (ParsedAction, Observation) {
    let call = spar_core::ToolCall {
        id: id.to_owned(),
        ..spar_core::ToolCall::new("f", Default::default())
    };
    let results = vec![spar_core::ToolResult::new(&call, "done")];
    let observation = Observation { results, ..Observation::default() };
    (ParsedAction::of(Action::calls(vec![call])), observation)
}

#[test]
fn calls_and_results_are_messages_of_their_own_where_the_model_knows_them() {
    let config = scaffolded("tools", ContextConfig::default());
    let (task, first) = (task(), Observation::new("o0"));
    let mut context = Context::new(&config, None, &task, &first, tools(&["f"]), false);
    let (parsed, observation) = called("c1");
    context.prompt(&tools(&["f"])).unwrap();
    context.push_answer("f()", &parsed, &[]);
    context.push_observation(&observation, None);
    let messages = context.prompt(&tools(&["f"])).unwrap().messages;
    let roles: Vec<_> = messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::Tool]);
    assert_eq!(messages[2].tool_calls[0].name, "f");
    assert_eq!(messages[3].tool_call_id.as_deref(), Some("c1"));
    assert_eq!((&*messages[3].text(), &*messages[2].text()), ("done", ""));
    // In words they are words.
    let config = scaffolded("react", ContextConfig::default());
    let mut context = Context::new(&config, None, &task, &first, tools(&["f"]), false);
    context.prompt(&tools(&["f"])).unwrap();
    context.push_answer("Action: f\nAction Input: {}", &parsed, &[]);
    context.push_observation(&observation, None);
    let messages = context.prompt(&tools(&["f", "g"])).unwrap().messages;
    assert!(messages[0].text().contains("f: A tool.") && messages[0].text().contains("g: A tool."));
    assert_eq!(messages[2].text(), "Action: f\nAction Input: {}");
    assert_eq!((messages[3].role, &*messages[3].text()), (Role::User, "Observation: done\n"));
}

#[test]
fn other_tools_begin_a_prompt_that_keeps_what_is_equal() {
    let config = scaffolded("tools", ContextConfig::default());
    let policy = ScriptedPolicy::new(Vec::<String>::new());
    let (task, first) = (task(), Observation::new("o0"));
    let mut context = Context::new(&config, Some(&policy), &task, &first, tools(&["f"]), false);
    let begun = context.prompt(&tools(&["f"])).unwrap();
    let (parsed, observation) = called("c1");
    let sampled = policy.encode_answer("f()");
    context.push_answer("f()", &parsed, &sampled);
    context.push_observation(&observation, None);
    let same = context.prompt(&tools(&["f"])).unwrap();
    assert_eq!(same.tokens.kept, begun.ids.len() + sampled.len());
    context.push_answer("f()", &parsed, &sampled);
    context.push_observation(&observation, None);
    let other = context.prompt(&tools(&["g"])).unwrap();
    // A scripted policy's tokens tell nothing of tools: up to the answer, which is laid out anew, they are equal.
    assert_eq!(other.tokens.kept, begun.ids.len());
    assert_eq!(other.ids.len(), other.tokens.kept + other.tokens.appended.len());
}

#[test]
fn thoughts_are_kept_or_left_out_of_later_turns() {
    let policy = ScriptedPolicy::new(Vec::<String>::new());
    let written = "<think>\nleft?\n</think>\n\ngo";
    let (task, first) = (task(), Observation::new("o0"));
    let second = |rule, window_turns| {
        let context = ContextConfig {
            reasoning: rule,
            window_turns,
            instruction: false,
            ..ContextConfig::default()
        };
        let config = scaffolded("plain", context);
        let mut context =
            Context::new(&config, Some(&policy), &task, &first, Arc::default(), false);
        let begun = context.prompt(&Arc::default()).unwrap().ids.len();
        context.push_answer(written, &ParsedAction::of("go"), &policy.encode_answer(written));
        context.push_observation(&Observation::new("o1"), None);
        let prompt = context.prompt(&Arc::default()).unwrap();
        let text: String =
            prompt.ids.iter().filter_map(|id| char::from_u32(*id)).filter(char::is_ascii).collect();
        (prompt.tokens.kept - begun, text, prompt.messages[1].reasoning().into_owned())
    };
    let whole = policy.encode_answer(written).len();
    for window in [None, Some(4)] {
        let (kept, text, thoughts) = second(ReasoningRule::Inline, window);
        assert_eq!((kept, &*thoughts), (whole, ""));
        assert_eq!(text, format!("o0{written}o1"));
        let (kept, text, thoughts) = second(ReasoningRule::Keep, window);
        assert_eq!((kept, &*thoughts), (whole, "left?"));
        assert_eq!(text, format!("o0{written}o1"));
        let (kept, text, thoughts) = second(ReasoningRule::Strip, window);
        assert_eq!((kept, &*text, &*thoughts), (0, "o0goo1", ""));
    }
}

#[test]
fn thoughts_that_an_endpoint_tells_apart_are_kept() {
    let (task, first) = (task(), Observation::new("o0"));
    let thoughts = |scaffold, rule, text: &str, parsed: &ParsedAction| {
        let context = ContextConfig { reasoning: rule, ..ContextConfig::default() };
        let config = scaffolded(scaffold, context);
        let mut context = Context::new(&config, None, &task, &first, tools(&["f"]), false);
        context.push_answer(text, parsed, &[]);
        let messages = context.prompt(&tools(&["f"])).unwrap().messages;
        let last = Arc::clone(messages.last().unwrap());
        (last.reasoning().into_owned(), last.text().into_owned(), last.to_openai())
    };
    let told = |action: Action, spans| ParsedAction::Action {
        action,
        spans,
        reasoning: Some("left?".to_owned()),
    };
    let in_words = told(Action::from("go"), std::iter::once(0..2).collect());
    let calls = called("c1").0.action().unwrap().clone();
    let by_call = told(calls, Vec::new());
    for (scaffold, text, parsed) in [("plain", "go", &in_words), ("tools", "", &by_call)] {
        let (kept, said, sent) = thoughts(scaffold, ReasoningRule::Keep, text, parsed);
        assert_eq!((&*kept, &*said), ("left?", text));
        assert_eq!(sent["reasoning_content"], "left?");
        for rule in [ReasoningRule::Strip, ReasoningRule::Inline] {
            let (kept, said, _) = thoughts(scaffold, rule, text, parsed);
            assert_eq!((&*kept, &*said), ("", text));
        }
    }
    // What a parser has found in the text stands there already.
    let text = "Thought: left?\nAction: f\nAction Input: {}";
    let config = scaffolded("react", ContextConfig::default());
    let read = config.parser().parse(text, &tools(&["f"]));
    assert!(matches!(&read, ParsedAction::Action { reasoning: Some(it), .. } if it == "left?"));
    let (kept, said, _) = thoughts("react", ReasoningRule::Keep, text, &read);
    assert_eq!((&*kept, &*said), ("", text));
}

#[test]
fn the_conversation_of_a_record_is_what_the_policy_was_shown() {
    let config = EpisodeConfig::default();
    let task = task();
    let turn = |number: usize| {
        serde_json::json!({
            "prompt": { "kept": 0, "appended": [] }, "author": "policy", "text": format!("a{number}"),
            "injected": if number == 1 {
                serde_json::json!([{ "role": "user", "parts": [{ "text": "hint" }] }])
            } else {
                serde_json::json!([])
            },
            "sampled": { "ids": [], "logprobs": [], "versions": [] },
            "parsed": { "kind": "action", "text": "go" }, "state_key": "",
            "policy_time": { "secs": 0, "nanos": 0 },
            "environment_time": { "secs": 0, "nanos": 0 },
            "step": {
                "observation": observation(&format!("o{}", number + 1)), "rewards": [],
                "terminated": false, "success": false, "valid": true,
                "wall_time": { "secs": 0, "nanos": 0 }
            },
        })
    };
    let record = serde_json::json!({
        "version": spar_core::TRAJECTORY_VERSION, "episode": 7, "task": "t", "environment": "e",
        "seed": spar_core::Seed::from_u64(5), "policy": "policy",
        "first_observation": observation("o0"), "turns": [turn(0), turn(1)],
        "end": { "kind": "terminated" }, "success": false, "wall_time": { "secs": 0, "nanos": 0 },
    });
    let trajectory = Trajectory::from_json(record.to_string().as_bytes()).unwrap();
    let told: Vec<_> = config
        .conversation(&task, &trajectory)
        .iter()
        .map(|message| (message.role, message.text().into_owned()))
        .collect();
    // The same as it came about, turn by turn.
    let mut context = Context::new(&config, None, &task, &observation("o0"), Arc::default(), false);
    for number in 0..2 {
        if number == 1 {
            context.push_message(Message::new(Role::User, "hint"));
        }
        let _ = context.prompt(&Arc::default()).unwrap();
        context.push_answer(&format!("a{number}"), &ParsedAction::of("go"), &[]);
        context.push_observation(&observation(&format!("o{}", number + 1)), Some("go"));
    }
    let shown = context.prompt(&Arc::default()).unwrap().messages;
    let shown: Vec<_> =
        shown.iter().map(|message| (message.role, message.text().into_owned())).collect();
    assert_eq!(told, shown);
    assert_eq!(told.iter().filter(|(role, _)| *role == Role::Assistant).count(), 2);
    assert!(told.contains(&(Role::User, "hint".to_owned())));
}
