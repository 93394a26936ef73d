//! What evaluations and runs spend, where they stop, and what must not be written.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Ran, finish, run, spar, succeed, workplace};

/// A server, and what it was asked.
struct Server {
    address: String,
    requests: Arc<AtomicUsize>,
}

/// What a request is answered with.
type Answer = dyn Fn(usize, &Value) -> (&'static str, Value) + Send + Sync;

impl Server {
    /// One that answers by the number of the request and its body, after a while.
    fn start(
        delay: Duration,
        answer: impl Fn(usize, &Value) -> (&'static str, Value) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let (count, answer): (_, Arc<Answer>) = (Arc::clone(&requests), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (count, answer) = (Arc::clone(&count), Arc::clone(&answer));
                let mut stream = stream.unwrap();
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    let (mut line, mut length) = (String::new(), 0);
                    while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
                        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                            length = value.trim().parse().unwrap();
                        }
                        line.clear();
                    }
                    let mut body = vec![0; length];
                    if reader.read_exact(&mut body).is_err() {
                        return;
                    }
                    let body: Value = serde_json::from_slice(&body).unwrap();
                    let number = count.fetch_add(1, Ordering::SeqCst);
                    std::thread::sleep(delay);
                    let (status, body) = answer(number, &body);
                    let body = body.to_string();
                    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
                    // The client may have hung up.
                    let _ = write!(stream, "{head}connection: close\r\n\r\n{body}");
                });
            }
        });
        Self { address, requests }
    }

    fn count(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

/// An answer that tells its tokens: 100 of the prompt, 40 of them cached, and 10 of its own.
fn told(text: &str) -> (&'static str, Value) {
    let usage = json!({
        "prompt_tokens": 100, "completion_tokens": 10,
        "prompt_tokens_details": { "cached_tokens": 40 },
        "completion_tokens_details": { "reasoning_tokens": 3 },
    });
    let message = json!({ "role": "assistant", "content": text });
    (
        "200 OK",
        json!({ "choices": [{ "message": message, "finish_reason": "stop" }], "usage": usage }),
    )
}

/// The report of an evaluation.
fn report(ran: &Ran) -> Value {
    serde_json::from_str(&ran.out)
        .unwrap_or_else(|error| panic!("{error}\n{}\n{}", ran.out, ran.err))
}

/// What the ledger in a folder comes to.
fn ledger(folder: &Path) -> spar::agent::spend::SpendReport {
    let config = spar::agent::spend::SpendConfig::default();
    spar::agent::spend::read_ledger(&folder.join("spend.jsonl"), &config).unwrap().unwrap()
}

/// Questions of one turn each.
fn questions(count: usize, judged: bool) -> tempfile::TempDir {
    let folder = workplace();
    let graders = if judged { ", \"graders\": [{\"kind\": \"judge\"}]" } else { "" };
    let line = |number| format!("{{\"prompt\": \"{number} + 1?\", \"answer\": 7{graders}}}\n");
    let lines: String = (0..count).map(line).collect();
    fs::write(folder.path().join("quiz.jsonl"), lines).unwrap();
    folder
}

fn eval<'a>(server: &'a Server, extra: &[&'a str]) -> Vec<&'a str> {
    let arguments =
        ["eval", "--endpoint", &server.address, "--model", "m", "--suite", "quiz.jsonl"];
    [&arguments[..], extra].concat()
}

const PRICES: &str = "input=1000000,cached_input=500000,output=2000000";

#[test]
fn the_cost_stands_beside_the_score() {
    let folder = questions(4, true);
    let player = Server::start(Duration::ZERO, |_, _| told("7"));
    let judge = Server::start(Duration::ZERO, |_, body| {
        let said = body["messages"].as_array().unwrap().last().unwrap()["content"].clone();
        let (_, rest) = said.as_str().unwrap().rsplit_once("verdict ").unwrap();
        let (mark, _) = rest.split_once(':').unwrap();
        told(&format!("verdict {mark}: {{\"score\": 10}}"))
    });
    fs::write(
        folder.path().join("prices.toml"),
        "[models.wise]\ninput = 0.0\noutput = 1000000.0\n[models.other]\ninput = 1\noutput = 1\n",
    )
    .unwrap();
    let judged =
        ["--judge", &judge.address, "--judge-model", "wise", "--judge-prices", "prices.toml"];
    let arguments = [&judged[..], &["--prices", PRICES, "--save", "kept", "--json"]].concat();
    let ran = run(folder.path(), &eval(&player, &arguments));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let report = report(&ran);
    let evaluation = &report["evaluations"][0];
    // An answer costs 60 + 20 + 20, a verdict 10.
    let spend = &evaluation["spend"];
    assert_eq!(spend["accounts"]["policy"]["cost"], 400.0, "{spend}");
    assert_eq!(spend["accounts"]["judge"]["cost"], 40.0);
    let tokens = ["input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens", "requests"];
    assert_eq!(tokens.map(|name| spend["total"][name].as_u64().unwrap()), [800, 320, 80, 24, 8]);
    assert_eq!((&spend["cost"], &spend["cost_per_episode"]), (&440.0.into(), &110.0.into()));
    assert_eq!(
        (&spend["cost_per_task"], &spend["cost_per_success"]),
        (&110.0.into(), &110.0.into())
    );
    assert_eq!(evaluation["overall"]["spend"]["cost"], 440.0);
    assert_eq!(evaluation["tasks"][0]["spend"]["cost"], 110.0);
    // With the question whether the endpoint answers.
    assert_eq!((&report["spend"]["cost"], player.count()), (&540.0.into(), 5));
    let ledger = fs::read_to_string(folder.path().join("kept/spend.jsonl")).unwrap();
    assert_eq!(ledger.lines().filter(|line| line.contains("\"ended\"")).count(), 8, "{ledger}");
    let shown = succeed(folder.path(), &["show", "kept", "--json", "--limit", "9"]).out;
    assert!(shown.replace(' ', "").contains("\"cost\":110.0"), "{shown}");
    // And in words.
    let ran = run(folder.path(), &eval(&player, &[&judged[..], &["--prices", PRICES]].concat()));
    assert!(
        ran.out.contains("cost/episode") && ran.out.contains("cost 440 USD: 110 per episode"),
        "{}",
        ran.out
    );
}

#[test]
fn what_nobody_tells_is_unknown() {
    let folder = questions(3, false);
    let silent = Server::start(Duration::ZERO, |number, _| match number {
        // The first question of the first episode fails once.
        1 => ("503 Service Unavailable", json!({})),
        _ => {
            let message = json!({ "role": "assistant", "content": "7" });
            ("200 OK", json!({ "choices": [{ "message": message, "finish_reason": "stop" }] }))
        }
    });
    let ran = run(folder.path(), &eval(&silent, &["--prices", PRICES, "--json"]));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let spend = report(&ran)["evaluations"][0]["spend"].clone();
    assert_eq!(spend["total"]["requests"], 4, "the one that was sent again is counted: {spend}");
    // A server that fails may have sampled.
    assert_eq!((&spend["total"]["failed"], &spend["total"]["unknown"]), (&Value::Null, &4.into()));
    assert!(spend["cost"].is_null() && spend["cost_per_episode"].is_null(), "{spend}");
    let ran = run(folder.path(), &eval(&silent, &["--prices", PRICES]));
    assert!(ran.out.contains("the tokens of 3 requests are unknown; cost unknown"), "{}", ran.out);
    // A limit on what nobody can count, or at no price.
    for (extra, told) in [
        (&["--max-cost", "1"][..], "max_cost needs the prices of `policy`"),
        (&["--prices", "input=1,output=2,currency=EUR"], "EUR"),
        (&["--prices", "absent.toml"], "absent.toml"),
        (&["--max-cost=-1", "--prices", PRICES], "max_cost is -1"),
    ] {
        let ran = run(folder.path(), &eval(&silent, extra));
        assert_eq!(ran.code, Some(1), "{}", ran.out);
        assert!(ran.err.contains(told), "{}", ran.err);
    }
    let idle = ["eval", "--policy", "oracle", "--suite", "quiz.jsonl", "--max-cost", "1"];
    assert!(run(folder.path(), &idle).err.contains("--hour-price"));
}

#[test]
fn a_limit_stops_an_evaluation_and_keeps_what_was_played() {
    let folder = questions(40, false);
    let player = Server::start(Duration::from_millis(20), |_, _| told("7"));
    // Of the 12 requests one asks whether there is anybody.
    let limited = ["--max-requests", "12", "--concurrency", "8", "--save", "kept", "--json"];
    let ran = run(folder.path(), &eval(&player, &limited));
    assert_eq!(ran.code, Some(3), "{}\n{}", ran.out, ran.err);
    assert_eq!(player.count(), 12, "not one more");
    let report = report(&ran);
    let evaluation = &report["evaluations"][0];
    assert_eq!(evaluation["is_stopped"], true);
    let episodes = evaluation["overall"]["episodes"].as_u64().unwrap();
    // What was answered is played to its end, unless it was told to stop behind its last answer.
    assert!((1..=11).contains(&episodes), "{evaluation}");
    assert_eq!(evaluation["overall"]["success_rate"], 1.0);
    assert_eq!(
        (&evaluation["counts"]["refills"], &evaluation["counts"]["policy_failures"]),
        (&0.into(), &0.into())
    );
    let stopped = &report["spend"]["stopped_at"];
    assert_eq!((&stopped["limit"], &stopped["value"]), (&"max_requests".into(), &12.0.into()));
    assert!(ran.err.contains("stopped at limit max_requests 12: 12 were spent"), "{}", ran.err);
    let kept = spar::agent::JsonlStore::read(folder.path().join("kept")).unwrap();
    assert_eq!(kept.map(Result::unwrap).count() as u64, episodes, "what was finished is kept");

    // By cost, with many at a time: never beyond the limit, and not far below it.
    let player = Server::start(Duration::from_millis(20), |_, _| told("7"));
    let prices = "input=0,output=1000000";
    let limited = [
        "--prices",
        prices,
        "--max-cost",
        "205",
        "--max-tokens",
        "20",
        "--concurrency",
        "40",
        "--json",
    ];
    let ran = run(folder.path(), &eval(&player, &limited));
    assert_eq!(ran.code, Some(3), "{}\n{}", ran.out, ran.err);
    let report = self::report(&ran);
    let cost = report["spend"]["cost"].as_f64().unwrap();
    // 10 for an answer, which might have cost 20.
    assert!(cost <= 205.0 && cost > 205.0 - 20.0 - 10.0, "{cost}");
    assert_eq!(report["spend"]["total"]["unknown"].as_u64().unwrap_or(0), 0);
}

#[test]
fn a_limit_stops_games_against_others_and_tells_what_was_played() {
    let folder = workplace();
    let player = Server::start(Duration::from_millis(20), |_, _| told("[4]"));
    let who = ["eval", "--endpoint", &player.address, "--model", "m", "--against", "random"];
    let what = ["--suite", "noughts", "--split", "test", "--limit", "40"];
    let limited = ["--max-requests", "12", "--concurrency", "4", "--json", "--out", "results.json"];
    let ran = run(folder.path(), &[&who[..], &what, &limited].concat());
    assert_eq!(ran.code, Some(3), "{}\n{}", ran.out, ran.err);
    assert_eq!(player.count(), 12, "not one more");
    let report = report(&ran);
    assert_eq!(report["is_complete"], false);
    assert_eq!(report["spend"]["stopped_at"]["limit"], "max_requests");
    assert!(ran.err.contains("stopped at limit max_requests 12: 12 were spent"), "{}", ran.err);
    assert_eq!(fs::read_to_string(folder.path().join("results.json")).unwrap(), ran.out);
}

#[test]
fn a_killed_evaluation_has_told_what_it_spent() {
    let folder = questions(40, false);
    let player = Server::start(Duration::from_millis(50), |_, _| told("7"));
    let limited = ["--concurrency", "4", "--save", "kept", "--prices", PRICES];
    let mut child = spar(folder.path(), &eval(&player, &limited)).spawn().unwrap();
    while player.count() < 9 {
        assert!(child.try_wait().unwrap().is_none(), "it ended");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let asked = player.count() as u64;
    let policy = ledger(&folder.path().join("kept")).accounts["policy"];
    // All that was asked, the first question too; at the most one for each episode had not arrived yet.
    assert!(policy.requests >= asked && policy.requests <= asked + 4, "{policy:?}, {asked}");
    assert!(policy.unknown >= 1 && policy.unknown <= 4, "{policy:?}");
    assert_eq!(policy.cost, 100.0 * (policy.requests - policy.unknown) as f64);
}

#[test]
fn a_run_stops_at_its_limit_and_goes_on_with_a_higher_one() {
    let folder = workplace();
    let folder = folder.path();
    let metrics = |name: &str| {
        fs::read_to_string(folder.join("runs").join(name).join("metrics.jsonl")).unwrap()
    };
    succeed(folder, &["train", "tiny.toml", "--name", "whole"]);
    let spent = ledger(&folder.join("runs/whole")).accounts;
    let whole = spent["policy"].output_tokens;
    assert!(whole > 0 && spent["policy"].input_tokens > whole);
    let limit = format!("spend.max_output_tokens={}", whole / 2);
    let ran = run(folder, &["train", "tiny.toml", "--name", "part", "--set", &limit]);
    assert_eq!(ran.code, Some(3), "{}\n{}", ran.out, ran.err);
    assert!(ran.err.contains("stopped at limit max_output_tokens"), "{}", ran.err);
    // Without a higher one it has nothing left to spend.
    let ran = run(folder, &["resume", "runs/part"]);
    assert_eq!(ran.code, Some(3), "{}\n{}", ran.out, ran.err);
    let more = (10 * whole).to_string();
    succeed(folder, &["resume", "runs/part", "--max-output-tokens", &more]);
    assert_eq!(metrics("part"), metrics("whole"), "it goes on as if nobody had stopped it");
    let spent = ledger(&folder.join("runs/part")).accounts;
    assert!(spent["policy"].output_tokens > whole, "what was played twice was spent twice");
    let timings = fs::read_to_string(folder.join("runs/whole/timings.jsonl")).unwrap();
    assert!(timings.contains("\"output_tokens\""), "{timings}");
    for told in [
        succeed(folder, &["show", "runs/whole"]).out,
        succeed(folder, &["compare", "--series", "a=runs/whole"]).out,
    ] {
        assert!(told.contains(&format!("{whole} output tokens; no price")), "{told}");
    }
    for (set, told) in [
        ("spend.max_cost=1.0", "hour_price"),
        ("spend.max_requests=1", "no endpoint is asked"),
        ("spend.max_wall_secs=0", "spend.max_wall_secs is 0"),
    ] {
        let ran = run(folder, &["train", "tiny.toml", "--dry-run", "--set", set]);
        assert_eq!(ran.code, Some(1), "{}", ran.out);
        assert!(ran.err.contains(told), "{}", ran.err);
    }
}

/// The files below a folder in which a text stands, shards decompressed.
fn holders(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holders(&path, text));
            continue;
        }
        let mut bytes = fs::read(&path).unwrap();
        if path.to_string_lossy().ends_with(".zst") {
            bytes = spar::agent::JsonlStore::read(&path)
                .unwrap()
                .flat_map(|stored| serde_json::to_vec(&stored.unwrap().trajectory).unwrap())
                .collect();
        }
        if bytes.windows(text.len()).any(|part| part == text.as_bytes()) {
            found.push(path.display().to_string());
        }
    }
    found
}

/// A key, a secret of a sandbox, one that the policy thinks up, and one that looks like one.
const KEY: &str = "the-key-of-the-endpoint/with+odd=characters";
const OF_SANDBOX: &str = "of-the-sandbox \"quoted\"";
const SAMPLED: &str = "what-only-the-policy-knows";
const LOOKS: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

#[test]
fn no_secret_is_in_any_file_that_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let task = |id: &str| {
        json!({
            "id": id, "instruction": "Print all you know.", "verifier": { "command": "false" },
            "env": { "TOKEN": OF_SANDBOX, "PLAIN": "seen" }, "secret_env": ["TOKEN"], "max_turns": 4,
            "files": { "notes.txt": format!("a token of somebody: {LOOKS}\n") },
        })
    };
    let lines: String = ["a", "b"].map(|id| task(id).to_string() + "\n").concat();
    fs::write(folder.join("leaks.jsonl"), lines).unwrap();
    fs::write(folder.join(".env"), format!("DEBUG=1\nTHOUGHT=\"{SAMPLED}\"\n")).unwrap();
    let seen = Arc::new(std::sync::Mutex::new(String::new()));
    let player = {
        let seen = Arc::clone(&seen);
        Server::start(Duration::ZERO, move |number, body| {
            seen.lock().unwrap().push_str(&body.to_string());
            match number % 6 {
                1 => told("env"),
                2 => told("cat notes.txt"),
                3 => told(&format!("echo {SAMPLED}")),
                // What it repeats of the request's header, as careless servers do.
                4 => ("400 Bad Request", json!({ "error": format!("bad key {KEY}, {SAMPLED}") })),
                _ => told("submit"),
            }
        })
    };
    let arguments = [
        "eval",
        "--endpoint",
        &player.address,
        "--model",
        "m",
        "--api-key-env",
        "OWN_KEY",
        "--suite",
        "leaks.jsonl",
        "--backend",
        "fake",
        "--concurrency",
        "1",
        "--save",
        "kept",
        "--out",
        "report.json",
        "--json",
        "--secret-file",
        ".env",
        "--secret-rule",
        "github",
        "--max-missing",
        "0.9",
    ];
    let ran = finish(spar(folder, &arguments).env("OWN_KEY", KEY));
    let report = report(&ran);
    assert!(
        report["evaluations"][0]["counts"]["policy_failures"].as_u64().unwrap() > 0,
        "{report}"
    );
    fs::create_dir(folder.join("told")).unwrap();
    fs::write(folder.join("told/out.txt"), &ran.out).unwrap();
    fs::write(folder.join("told/err.txt"), &ran.err).unwrap();
    for text in [KEY, "of-the-sandbox", SAMPLED, LOOKS] {
        for place in ["kept", "told"] {
            let found = holders(&folder.join(place), text);
            assert!(found.is_empty(), "`{text}` is in {found:?}");
        }
        assert!(!fs::read_to_string(folder.join("report.json")).unwrap().contains(text));
        // Nor has the policy seen what the sandbox showed.
        let is_its_own = [SAMPLED].contains(&text);
        assert!(
            is_its_own || !seen.lock().unwrap().contains(text),
            "`{text}` was shown to the policy"
        );
    }
    for mark in ["[redacted TOKEN]", "[redacted github]", "[redacted THOUGHT]", "PLAIN=seen"] {
        assert!(!holders(&folder.join("kept"), mark).is_empty(), "{mark} is nowhere");
    }
    assert!(!holders(&folder.join("kept/failed"), "[redacted OWN_KEY]").is_empty(), "{}", ran.err);
}

#[test]
fn what_was_written_before_is_cleaned_afterwards() {
    let folder = questions(3, false);
    let folder = folder.path();
    let player = Server::start(Duration::ZERO, |_, _| told(&format!("it is {SAMPLED}, 7")));
    let ran = run(folder, &eval(&player, &["--save", "kept"]));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    fs::write(folder.join("kept/notes.json"), json!({ "said": SAMPLED, "tokens": 3 }).to_string())
        .unwrap();
    assert_eq!(holders(&folder.join("kept"), SAMPLED).len(), 2);
    let redact = |extra: &[&str]| {
        let arguments =
            [&["redact", "kept", "--secret-env", "THOUGHT", "--json"][..], extra].concat();
        finish(spar(folder, &arguments).env("THOUGHT", SAMPLED))
    };
    let count = || {
        succeed(folder, &["show", "kept", "--json", "--limit", "9"]).out.matches("\"task\"").count()
    };
    let before = count();
    let ran = redact(&["--check"]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    let found: Value = serde_json::from_str(&ran.out).unwrap();
    let places: u64 =
        found.as_array().unwrap().iter().map(|it| it["places"].as_u64().unwrap()).sum();
    assert_eq!(places, 4, "{found}");
    assert_eq!(holders(&folder.join("kept"), SAMPLED).len(), 2, "nothing has changed");
    assert_eq!(redact(&[]).code, Some(0));
    assert_eq!(holders(&folder.join("kept"), SAMPLED).len(), 0);
    assert!(!holders(&folder.join("kept"), "it is [redacted THOUGHT], 7").is_empty());
    assert_eq!(count(), before, "all records are there");
    assert_eq!(redact(&["--check"]).out.trim(), "[]");
    // What is not looked through is told.
    std::os::unix::fs::symlink(folder.join("elsewhere"), folder.join("kept/link")).unwrap();
    let ran = redact(&["--check"]);
    assert_eq!((ran.code, ran.out.contains("it is a link")), (Some(1), true), "{}", ran.out);
    let ran = run(folder, &["redact", "kept"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("none is known"), "{}", ran.err);
}
