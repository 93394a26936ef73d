//! Environments that are played by calls of tools.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use rand::RngExt;
use serde_json::{Value, json};
use spar::agent::{
    Cancellation, Episode, EpisodeConfig, JsonlStore, Player, ScaffoldChoice, cut_samples,
    run_episode,
};
use spar::core::{GrammarSource, Policy, PolicyVersion, ScoringRequest, Seat, Seed, ToolSpec};
use spar::envs::{Resources, open_environment};
use spar::parsers::{CallRules, CallWords, parser_registry};
use spar::policy::{
    GrammarCompiler, GrammarWalk, LocalPolicy, ModelConfig, Tokenizer, TokenizerConfig, Weights,
    initial_parameters,
};
use spar::tasks::{SuiteOptions, open_suite};

use crate::support::{run, succeed, workplace};

#[test]
fn calls_are_played_kept_shown_and_played_again() {
    let folder = workplace();
    let folder = folder.path();
    let eval = ["eval", "--suite", "ledger", "--split", "test", "--limit", "20", "--json"];
    // Where none is named, it is the one that offers tools.
    for (scaffold, named) in [("react", &["--scaffold", "react"][..]), ("default", &[])] {
        let played = ["--policy", "oracle", "--save", scaffold];
        let report = succeed(folder, &[&eval[..], &played, named].concat()).out;
        let report: Value = serde_json::from_str(&report).unwrap();
        let score = &report["evaluations"][0]["overall"];
        assert_eq!(
            (&score["episodes"], &score["success_rate"]),
            (&20.into(), &1.0.into()),
            "{report:#}"
        );
        let again = succeed(folder, &["replay", scaffold, "--json"]).out;
        let again: Value = serde_json::from_str(&again).unwrap();
        assert_eq!((&again["trajectories"], &again["mismatches"]), (&20.into(), &0.into()));
        let shown = succeed(folder, &["show", scaffold, "--episode", "1"]).out;
        assert!(shown.contains("Your task is to: enter {") && shown.contains("= Paid "), "{shown}");
    }
    // Chance calls tools as well, and whoever does nothing calls none.
    for player in ["random", "no-op"] {
        let played = ["--policy", player, "--save", player];
        let report = succeed(folder, &[&eval[..], &played].concat()).out;
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["evaluations"][0]["overall"]["episodes"], 20, "{report:#}");
        let shown = succeed(folder, &["show", player, "--episode", "1"]).out;
        assert_eq!(shown.contains("do nothing at all"), player == "no-op", "{shown}");
    }
}

#[test]
fn what_does_not_fit_is_refused_before_anything_starts() {
    let folder = workplace();
    let folder = folder.path();
    let refused = |arguments: &[&str], told: &str| {
        let ran = run(folder, &[&["eval", "--limit", "1", "--save", "kept"], arguments].concat());
        assert_ne!(ran.code, Some(0));
        assert!(ran.err.contains(told), "{}", ran.err);
        assert!(!folder.join("kept").exists());
    };
    let in_words = ["--policy", "oracle", "--suite", "ledger", "--scaffold", "plain"];
    refused(&in_words, "scaffold `tools` does");
    let tools = ["--policy", "oracle", "--scaffold", "tools"];
    refused(&[&tools[..], &["--suite", "household"]].concat(), "`household` has no tools");
    refused(&[&tools[..], &["--parser", "tags"]].concat(), "parser `tags` reads no calls");
    refused(&["--policy", "oracle", "--scaffold", "tool"], "known are `tools`");
    let recipe = "[data]\nsuite = 'ledger'\ntrain = 'train'\ndev = 'dev'\ntest = ['test']\n";
    std::fs::write(folder.join("words.toml"), recipe).unwrap();
    let ran = run(folder, &["train", "words.toml"]);
    assert!(ran.code != Some(0) && ran.err.contains("scaffold `tools` does"), "{}", ran.err);
    let listed = succeed(folder, &["list", "scaffolds"]).out;
    assert!(["plain", "react", "tools"].iter().all(|name| listed.contains(name)), "{listed}");
}

#[test]
fn a_tiny_policy_learns_to_call_tools_from_demonstrations() {
    let folder = workplace();
    let settings = [
        "train",
        "ledger",
        "--name",
        "book",
        "--json",
        "--set",
        "reinforce.iterations=2",
        "--set",
        "evaluation.every=2",
        "--set",
        r#"data.test=["test"]"#,
        "--set",
        "evaluation.test_tasks=50",
        "--set",
        "keep.trajectories_every=1",
    ];
    let summary: Value = serde_json::from_str(&succeed(folder.path(), &settings).out).unwrap();
    let rate = summary["splits"]["test"][1]["success_rate"].as_f64().unwrap();
    assert!(rate > 0.9, "{summary:#}");
    // Tools change when the book is opened, so that every episode has two samples, and what was sampled is recomputed
    // with the log-probabilities that it had.
    assert_eq!(summary["max_drift"], 0.0);
    let again = succeed(folder.path(), &["replay", "runs/book", "--json"]).out;
    let again: Value = serde_json::from_str(&again).unwrap();
    assert_eq!((&again["trajectories"], &again["mismatches"]), (&256.into(), &0.into()));
}

/// Tells the number of messages first, so that nothing said behind it is laid out as before.
const REWRITING: &str = "{%- if tools -%}{{ '<|im_start|>system\\n' + (tools | tojson) + '<|im_end|>\\n' }}\
    {%- endif -%}{{ messages | length }}{%- for m in messages -%}\
    {{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{%- endfor -%}\
    {{ '<|im_start|>assistant\\n' }}";

/// A tokenizer with the marks of another family and this chat template.
fn with_template(folder: &Path, template: &str) -> Tokenizer {
    let games = [["You keep a book.", "open the book"], ["Pay 3 from ada to ben.", "close it"]];
    let own = Tokenizer::train(games, &TokenizerConfig::default()).unwrap();
    own.save(folder).unwrap();
    let path = folder.join("tokenizer.json");
    let mut file: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    file["normalizer"] = Value::Null;
    for (index, mark) in ["<|endoftext|>", "<|im_start|>", "<|im_end|>"].into_iter().enumerate() {
        file["added_tokens"][index]["content"] = mark.into();
    }
    file["decoder"] = file["decoder"]["decoders"][0].clone();
    std::fs::write(path, file.to_string()).unwrap();
    let config = json!({ "eos_token": "<|im_end|>", "chat_template": template });
    std::fs::write(folder.join("tokenizer_config.json"), config.to_string()).unwrap();
    Tokenizer::load(folder).unwrap()
}

#[test]
fn a_template_that_rewrites_what_was_said_begins_samples_that_are_right() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = with_template(folder.path(), REWRITING);
    assert!(!tokenizer.has_message_layout() && tokenizer.has_layout());
    let vocab_size = tokenizer.vocab_size();
    let model = ModelConfig { vocab_size, hidden_size: 32, ..ModelConfig::default() };
    let weights = Arc::new(Weights::new(&model, initial_parameters(&model, Seed::from_u64(1))));
    let policy =
        LocalPolicy::new("local", Arc::new(tokenizer), weights, PolicyVersion(0), 1).unwrap();

    let task = open_suite("ledger", &SuiteOptions::default()).unwrap().task("test", 0).unwrap();
    let mut environment = open_environment(&task, &Resources::default()).unwrap();
    let mut config = EpisodeConfig { max_turns: Some(4), ..EpisodeConfig::default() };
    config.scaffold = ScaffoldChoice::named("tools").unwrap();
    config.sampling.max_tokens = 12;
    let episode = Episode {
        id: 1,
        task: &task,
        player: Player::Policy(&policy),
        seat: Seat::FIRST,
        seed: Seed::from_u64(3),
        environment_seed: Seed::from_u64(4),
        cancellation: &Cancellation::new(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let trajectory = runtime.block_on(run_episode(environment.as_mut(), &episode, &config));
    assert_eq!(trajectory.turns.len(), 4, "{:?}", trajectory.end);
    assert_eq!(trajectory.tools[0].tools[0].name, "open");

    // Every turn begins a sample, which repeats what it keeps as observed and ends with what was sampled.
    let samples = cut_samples(&trajectory).unwrap();
    assert_eq!(samples.len(), 4);
    let mut tokens: Vec<u32> = Vec::new();
    for (turn, sample) in trajectory.turns.iter().zip(&samples) {
        let (before, sampled) = (tokens.len(), &turn.sampled);
        assert!(turn.prompt.kept < before || before == 0);
        tokens.truncate(turn.prompt.kept);
        tokens.extend(&turn.prompt.appended);
        let prompt = tokens.clone();
        tokens.extend(&sampled.ids);
        assert_eq!(sample.tokens, tokens);
        assert_eq!(&sample.behavior_logprobs[prompt.len()..], &sampled.logprobs[..]);
        // What was drawn has the probability that it was drawn with, behind just this prompt.
        let request = ScoringRequest { prompt_ids: prompt.into(), target_ids: sampled.ids.clone() };
        let scored = runtime.block_on(policy.score(request)).unwrap();
        for (scored, sampled) in scored.iter().zip(&sampled.logprobs) {
            assert!((scored - sampled).abs() < 1e-4, "{scored} and {sampled}");
        }
    }
}

const MARK: &str = "<tool_call>";

/// A text of the grammar, drawn token by token; absent where it has not come to its end after many.
fn draw(
    compiler: &GrammarCompiler,
    grammar: &GrammarSource,
    tokenizer: &Tokenizer,
    has_words: bool,
    seed: Seed,
) -> Option<String> {
    let mut walk = GrammarWalk::new(&compiler.compile(grammar).unwrap(), tokenizer.end_of_turn());
    let (mut rng, mut drawn) = (seed.rng(), Vec::new());
    let (mut forced, mut allowed) = (Vec::new(), Vec::new());
    for _ in 0..400 {
        walk.next(&mut forced, &mut allowed).unwrap();
        let from = if forced.is_empty() { &allowed } else { &forced[..1].to_vec() };
        // The end, the marks of JSON, and what goes on with the mark of a call more often than one in hundreds, so that
        // texts end.
        let text = tokenizer.decode(&drawn);
        let begun =
            (0..MARK.len()).rev().find(|at| text.ends_with(&MARK[..*at])).unwrap_or_default();
        let next = (has_words && !text.contains(MARK)).then(|| MARK.as_bytes()[begun]);
        let likely =
            |id: &&u32| match (tokenizer.end_of_turn() == **id, tokenizer.token_bytes(**id)) {
                (true, _) => true,
                (false, [byte]) => next.map_or(b"\"}".contains(byte), |next| next == *byte),
                (false, _) => false,
            };
        let likely: Vec<u32> = from.iter().filter(likely).copied().collect();
        let from = if rng.random_bool(0.9) && !likely.is_empty() { &likely } else { from };
        let token = from[rng.random_range(0..from.len())];
        if token == tokenizer.end_of_turn() {
            return Some(tokenizer.decode(&drawn));
        }
        drawn.push(token);
        walk.advance(token);
    }
    None
}

#[test]
fn answers_that_are_held_to_calls_are_calls_with_arguments_of_the_schemas() {
    let schema = json!({
        "type": "object",
        "properties": {
            "text": { "type": "string", "maxLength": 8 },
            "count": { "type": "integer", "minimum": 0, "maximum": 99 },
            "unit": { "enum": ["m", "k\"m/</tool_call>"] },
        },
        "required": ["text", "unit"],
    });
    let tools = [
        ToolSpec::new("measure", "Measures.", schema),
        ToolSpec::new("end.all-1", "Ends.", json!({})),
    ];
    let tokenizer = Arc::new(Tokenizer::train([["a"]], &TokenizerConfig::default()).unwrap());
    let compiler = GrammarCompiler::new(&tokenizer, tokenizer.vocab_size()).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for row in parser_registry().iter() {
        let parser = (row.open.open)();
        for (max_calls, words) in [1, 3].into_iter().flat_map(|num| {
            [CallWords::Nowhere, CallWords::Before, CallWords::Instead].map(|words| (num, words))
        }) {
            let rules = CallRules { max_calls, words };
            let Some(grammar) = parser.call_grammar(&tools, rules) else { continue };
            let (mut whole, has_words) = (0, words != CallWords::Nowhere);
            for index in 0..40 {
                let seed = Seed::from_u64(5).derive(row.name, index).derive("calls", max_calls);
                let Some(text) = draw(&compiler, &grammar, &tokenizer, has_words, seed) else {
                    continue;
                };
                whole += 1;
                let read = parser.parse(&text, &tools);
                let action = match read {
                    Ok(parsed) => parsed.action,
                    Err(_) if words == CallWords::Instead && text.trim().is_empty() => continue,
                    Err(error) => panic!("{} {rules}: {text:?}: {error}", row.name),
                };
                let calls = action.tool_calls();
                assert!(calls.len() <= max_calls, "{text:?}");
                assert!(words != CallWords::Nowhere || action.said().is_empty(), "{text:?}");
                assert!(
                    words == CallWords::Instead || !calls.is_empty(),
                    "{} {rules}: {text:?}",
                    row.name
                );
                for call in calls {
                    seen.insert((row.name, call.name.clone()));
                    if call.name == "end.all-1" {
                        assert!(call.arguments.is_empty(), "{text:?}");
                        continue;
                    }
                    assert_eq!(call.name, "measure");
                    assert!(call.arguments["text"].as_str().unwrap().chars().count() <= 8);
                    assert!(
                        ["m", "k\"m/</tool_call>"]
                            .contains(&call.arguments["unit"].as_str().unwrap())
                    );
                    let count = call.arguments.get("count");
                    assert!(count.is_none_or(|it| it.as_u64().unwrap() < 100), "{text:?}");
                    assert!(call.arguments.len() == 2 + usize::from(count.is_some()));
                }
                if words == CallWords::Nowhere {
                    // What a demonstrator writes for these calls is a text of the grammar: the same.
                    assert_eq!(parser.write(&action, &tools).unwrap(), text);
                }
            }
            assert!(whole >= 10, "{} {rules}: {whole} of 40 came to an end", row.name);
        }
    }
    let names: Vec<&str> = seen.iter().map(|(parser, _)| *parser).collect();
    assert_eq!(
        names,
        ["hermes", "hermes", "json_object", "json_object", "llama3_json", "llama3_json"]
    );
}

#[test]
fn a_policy_that_is_held_to_calls_is_trained_on_what_it_could_draw() {
    let folder = workplace();
    let settings = [
        "train",
        "ledger",
        "--name",
        "held",
        "--json",
        "--set",
        "episode.tool_grammar={}",
        "--set",
        "episode.invalid_penalty=0.1",
        "--set",
        "episode.penalize_invalid=true",
        "--set",
        "episode.sampling.max_tokens=48",
        "--set",
        "warm_start.iterations=1",
        "--set",
        "warm_start.tasks=8",
        "--set",
        "reinforce.iterations=2",
        "--set",
        "reinforce.tasks=4",
        "--set",
        "reinforce.max_turns=2",
        "--set",
        "evaluation.every=2",
        "--set",
        "evaluation.dev_tasks=4",
        "--set",
        r#"data.test=[]"#,
        "--set",
        "keep.trajectories_every=1",
    ];
    let summary: Value = serde_json::from_str(&succeed(folder.path(), &settings).out).unwrap();
    assert_eq!(summary["max_drift"], 0.0);
    // A model that has seen nearly nothing opens the book: there is nothing else to be written.
    let kept = JsonlStore::read(folder.path().join("runs/held/trajectories")).unwrap();
    let played: Vec<_> = kept.map(|stored| stored.unwrap().trajectory).collect();
    assert_eq!(played.len(), 2 * 4 * 8);
    for trajectory in &played {
        let first = &trajectory.turns[0];
        assert_eq!(first.parsed.action().unwrap().tool_calls()[0].name, "open");
        let hash = first.sampled.grammar.unwrap();
        assert!(matches!(&*trajectory.grammars[&hash], GrammarSource::Lark { .. }));
        assert!(trajectory.grammars.len() <= 2, "a grammar for each set of tools");
    }
}

#[test]
fn three_kinds_of_tools_are_learnt_under_the_grammars_of_their_schemas() {
    let folder = workplace();
    let settings: Vec<&str> = [
        "warm_start.iterations=2",
        "warm_start.tasks=12",
        "reinforce.iterations=2",
        "reinforce.tasks=4",
        "reinforce.group_size=2",
        "episode.sampling.max_tokens=60",
        "evaluation.every=2",
        "evaluation.dev_tasks=4",
        "evaluation.test_tasks=2",
        "keep.trajectories_every=1",
    ]
    .iter()
    .flat_map(|setting| ["--set", setting])
    .collect();
    let run = [&["train", "tools-small", "--name", "three", "--json"][..], &settings].concat();
    let summary: Value = serde_json::from_str(&succeed(folder.path(), &run).out).unwrap();
    assert_eq!(summary["max_drift"], 0.0);
    let kept = JsonlStore::read(folder.path().join("runs/three/trajectories")).unwrap();
    let kept: Vec<_> = kept.map(|stored| stored.unwrap().trajectory).collect();
    let (mut played, mut open) = (BTreeMap::new(), 0);
    for trajectory in &kept {
        *played.entry(trajectory.environment.clone()).or_insert(0) += 1;
        for turn in &trajectory.turns {
            // Nothing is listed: what could be drawn is a token that was forced, or what the grammar of a hash says.
            let hash = turn.sampled.grammar.expect("every answer is held to a grammar");
            let source = &trajectory.grammars[&hash];
            assert_eq!(source.hash(), hash);
            assert!(
                matches!(&**source, GrammarSource::Lark { grammar } if grammar.contains("%json"))
            );
            assert!(turn.sampled.allowed.iter().all(|list| list.len() < 2));
            open += turn.sampled.allowed.iter().filter(|list| list.is_empty()).count();
        }
        // Training is given the same grammars, at the places of the answers.
        for sample in cut_samples(trajectory).unwrap() {
            let spans = &sample.grammars;
            assert!(!spans.is_empty());
            assert!(
                spans.iter().all(|span| trajectory.grammars.contains_key(&span.grammar.hash()))
            );
        }
    }
    // Search has twice the share of the others.
    let counts = ["search", "sql", "apps"].map(|name| played[name]);
    assert_eq!((kept.len(), counts), (16, [8, 4, 4]));
    assert!(open > 100, "{open} tokens were drawn");
    for split in ["search", "sql", "apps"] {
        assert_eq!(summary["splits"][split][1]["episodes"], 2, "{summary:#}");
    }
}
