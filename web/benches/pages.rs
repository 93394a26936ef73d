//! Steps per second on MiniWoB++'s pages, side by side with the package's own Selenium environment.
//!
//! `MINIWOB_PYTHON` is a Python with `miniwob`, `selenium` and `gymnasium`, for which `chromedriver` is on the path (on Debian: `chromium-driver`): then
//! both sides are measured by turns in one run, without screenshots, on the same tasks: clicks on elements drawn at random, ten at the most, then the
//! next seed. Like for like spar shows elements and clicks by script, as Selenium's environment does; BrowserGym's way is its accessibility tree and
//! the browser's mouse. `MINIWOB_SECONDS` (default 5) is how long each figure is measured, `MINIWOB_TASKS` names other tasks, with commas,
//! `MINIWOB_PAGES` (default 1) is how many pages are played at one time, against as many processes of Selenium's environment.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::RngExt;
use serde_json::Value;
use spar_core::Seed;
use spar_web::miniwob::{Episode, Observing, Options, Pages, Reset};
use spar_web::{Browsers, Input};

const TASKS: &str =
    "click-checkboxes,click-button,click-tab-2,enter-text,email-inbox,use-autocomplete";
const ROUNDS: u64 = 3;
const MOST_STEPS: usize = 10;
const WAYS: [(&str, Reset, Input, Observing); 4] = [
    ("like for like, pages that go on", Reset::InPage, Input::Script, Observing::Dom),
    ("like for like, fresh pages", Reset::Load, Input::Script, Observing::Dom),
    ("BrowserGym's way, pages that go on", Reset::InPage, Input::Devices, Observing::Axtree),
    ("BrowserGym's way, fresh pages", Reset::Load, Input::Devices, Observing::Axtree),
];

fn main() {
    // Cargo's tests start benches for nothing but to see that they do.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let pages = match Pages::shared() {
        Ok(pages) => pages,
        Err(error) => return println!("not run: {error}; {}", error.hint().unwrap_or_default()),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime starts");
    runtime.block_on(compare(&pages));
}

/// What was measured.
#[derive(Debug, Clone, Copy)]
struct Figure {
    steps_per_second: f64,
    /// Time of processors, of all processes that have a part in it.
    cpu_ms_per_step: f64,
}

async fn compare(pages: &Arc<Pages>) {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().expect("a whole number"))
    };
    let time = Duration::from_secs(number("MINIWOB_SECONDS", 5));
    let num_pages = number("MINIWOB_PAGES", 1);
    let tasks = std::env::var("MINIWOB_TASKS").unwrap_or_else(|_| TASKS.to_owned());
    let browsers = Browsers::default();
    let mut references: Vec<Reference> =
        (0..num_pages).filter_map(|_| Reference::start()).collect();
    let others: Vec<u32> = references.iter().map(|reference| reference.child.id()).collect();
    let mut all = [const { Vec::new() }; WAYS.len()];
    println!(
        "steps per second (milliseconds of processors a step), with the resets between episodes; MiniWoB++'s pages, clicks at random, {num_pages} at one time"
    );
    for task in tasks.split(',') {
        let mut own = [const { Vec::new() }; WAYS.len()];
        let mut other = Vec::new();
        for round in 0..ROUNDS {
            let seed = 100_000 * (round + 1);
            for (way, figures) in WAYS.iter().zip(&mut own) {
                let before = cpu_seconds(std::process::id(), &others);
                let plays = (0..num_pages).map(|page| {
                    let (browsers, pages) = (browsers.clone(), Arc::clone(pages));
                    let (task, seed) = (task.to_owned(), seed + 10_000 * page);
                    let options = Options {
                        reset: way.1,
                        input: way.2,
                        observing: way.3,
                        ..Options::default()
                    };
                    tokio::spawn(async move {
                        play(&browsers, &pages, &task, seed, options, time).await
                    })
                });
                let mut steps = 0;
                let mut rate = 0.0;
                for play in plays.collect::<Vec<_>>() {
                    let (played, seconds) = play.await.expect("no page fails");
                    steps += played;
                    rate += played as f64 / seconds;
                }
                let spent = cpu_seconds(std::process::id(), &others) - before;
                let cpu_ms_per_step = 1000.0 * spent / steps as f64;
                figures.push(Figure { steps_per_second: rate, cpu_ms_per_step });
            }
            if !references.is_empty() {
                let cpu = || others.iter().map(|id| cpu_seconds(*id, &[])).sum::<f64>();
                // Its browser starts, and the page is loaded, before the clock does.
                references.iter_mut().for_each(|of| of.ask(task, Duration::ZERO, seed));
                references.iter_mut().for_each(|of| _ = of.answer());
                let before = cpu();
                references.iter_mut().zip(0..).for_each(|(reference, page)| {
                    reference.ask(task, time, seed + 10_000 * page);
                });
                let played: Vec<(f64, f64)> =
                    references.iter_mut().map(Reference::answer).collect();
                let steps: f64 = played.iter().map(|(steps, _)| steps).sum();
                other.push(Figure {
                    steps_per_second: played.iter().map(|(steps, seconds)| steps / seconds).sum(),
                    cpu_ms_per_step: 1000.0 * (cpu() - before) / steps,
                });
            }
        }
        println!("{task}");
        if !other.is_empty() {
            println!("  Selenium: {}", written(&other));
        }
        for ((way, figures), ratios) in WAYS.iter().zip(&own).zip(&mut all) {
            print!("  {}: {}", way.0, written(figures));
            if !other.is_empty() {
                let of = |figure: fn(&Figure) -> f64| {
                    let both = figures.iter().zip(&other);
                    median(
                        &both.map(|(own, other)| figure(own) / figure(other)).collect::<Vec<_>>(),
                    )
                };
                let ratio = of(|figure| figure.steps_per_second);
                print!(
                    "; {ratio:.1} times, {:.1} by processors",
                    1.0 / of(|it| it.cpu_ms_per_step)
                );
                ratios.push(ratio);
            }
            println!();
        }
    }
    for (way, ratios) in WAYS.iter().zip(&all).filter(|(_, ratios)| !ratios.is_empty()) {
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        println!("{}: median over tasks {:.1} times, least {least:.1}", way.0, median(ratios));
    }
    browsers.close().await;
}

fn written(figures: &[Figure]) -> String {
    let of = |figure: fn(&Figure) -> f64| median(&figures.iter().map(figure).collect::<Vec<_>>());
    format!("{:.1} ({:.1} ms)", of(|it| it.steps_per_second), of(|it| it.cpu_ms_per_step))
}

/// Steps of random clicks, and the seconds that they took.
async fn play(
    browsers: &Browsers,
    pages: &Arc<Pages>,
    task: &str,
    seed: u64,
    options: Options,
    time: Duration,
) -> (u64, f64) {
    let mut draw = Seed::from_u64(seed).rng();
    // The window is there before the clock starts, as the reference's is.
    let first = Episode::begin(browsers, pages, task, seed, options).await;
    let (mut episode, _) = first.expect("an episode begins");
    let (mut steps, mut episodes) = (0_u64, 0);
    let began = Instant::now();
    while began.elapsed() < time {
        let mut shown = episode.again(seed + episodes).await.expect("the next one begins");
        episodes += 1;
        for _ in 0..MOST_STEPS {
            let bids = bids(&shown.text);
            let action = match bids.len() {
                0 => "noop()".to_owned(),
                len => format!("click('{}')", bids[draw.random_range(0..len)]),
            };
            shown = episode.act(&action).await.expect("the browser works");
            steps += 1;
            if shown.is_over {
                break;
            }
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    episode.leave();
    (steps, seconds)
}

/// The numbers of elements in a tree or in HTML.
fn bids(text: &str) -> Vec<&str> {
    let of_tree = |line: &'_ str| -> Option<(usize, usize)> {
        let inner = line.strip_prefix('[')?;
        Some((1, inner.find(']')?))
    };
    let of_html = |line: &'_ str| -> Option<(usize, usize)> {
        let begin = line.find(" bid=\"")? + 6;
        Some((begin, line[begin..].find('"')?))
    };
    let lines = text.lines().map(str::trim_start);
    lines
        .filter_map(|line| {
            let (begin, length) = of_tree(line).or_else(|| of_html(line))?;
            Some(&line[begin..begin + length])
        })
        .collect()
}

/// Seconds of processors that a process and its descendants have had, some of them left out; as far as Linux tells.
fn cpu_seconds(root: u32, without: &[u32]) -> f64 {
    const TICKS_PER_SECOND: f64 = 100.0;
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    let mut ticks: HashMap<u32, f64> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let text = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let Some((_, fields)) = text.rsplit_once(')') else { continue };
        let fields: Vec<f64> =
            fields.split_whitespace().map(|field| field.parse().unwrap_or(0.0)).collect();
        children.entry(fields[1] as u32).or_default().push(id);
        ticks.insert(id, fields[11] + fields[12]);
    }
    let mut todo = vec![root];
    let mut sum = 0.0;
    while let Some(id) = todo.pop() {
        sum += ticks.get(&id).copied().unwrap_or(0.0);
        let below = children.get(&id).into_iter().flatten();
        todo.extend(below.filter(|id| !without.contains(id)));
    }
    sum / TICKS_PER_SECOND
}

fn median(of: &[f64]) -> f64 {
    let mut sorted = of.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        _ if sorted.is_empty() => f64::NAN,
        0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
        _ => sorted[middle],
    }
}

/// The package's own environment, in a process of Python.
struct Reference {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Reference {
    fn start() -> Option<Self> {
        let python = std::env::var_os("MINIWOB_PYTHON")?;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/reference.py");
        let mut child = Command::new(python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the Python of MINIWOB_PYTHON starts");
        let answers = BufReader::new(child.stdout.take().expect("it is piped"));
        Some(Self { child, answers })
    }

    fn ask(&mut self, task: &str, time: Duration, seed: u64) {
        let input = self.child.stdin.as_mut().expect("it is piped");
        writeln!(input, "{task} {} {seed}", time.as_secs_f64()).expect("the reference listens");
    }

    /// Steps, and the seconds that they took.
    fn answer(&mut self) -> (f64, f64) {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the reference answers");
        let told: Value = serde_json::from_str(&line).expect("the reference plays the task");
        let figure = |name: &str| told[name].as_f64().expect("a number");
        (figure("steps"), figure("seconds"))
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
