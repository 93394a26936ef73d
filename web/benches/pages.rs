//! Steps per second on MiniWoB++'s pages, side by side with the package's own Selenium environment.
//!
//! `MINIWOB_PYTHON` is a Python with `miniwob`, `selenium` and `gymnasium`, for which `chromedriver` is on the path (on Debian: `chromium-driver`): then
//! both sides are measured by turns in one run, one window each, without screenshots, on the same tasks: clicks on elements drawn at random, ten at the
//! most, then the next seed. `MINIWOB_SECONDS` (default 5) is how long each figure is measured, `MINIWOB_TASKS` names other tasks, with commas.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::RngExt;
use serde_json::Value;
use spar_core::Seed;
use spar_web::Browsers;
use spar_web::miniwob::{Episode, Options, Pages, Reset, Shown};

const TASKS: &str =
    "click-checkboxes,click-button,click-tab-2,enter-text,email-inbox,use-autocomplete";
const ROUNDS: u64 = 3;
const MOST_STEPS: usize = 10;

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

async fn compare(pages: &Arc<Pages>) {
    let seconds: u64 =
        std::env::var("MINIWOB_SECONDS").map_or(5, |text| text.parse().expect("whole seconds"));
    let tasks = std::env::var("MINIWOB_TASKS").unwrap_or_else(|_| TASKS.to_owned());
    let browsers = Browsers::default();
    let mut reference = Reference::start();
    let mut all = [Vec::new(), Vec::new()];
    println!(
        "steps per second, with the resets between episodes; MiniWoB++'s pages, clicks at random"
    );
    for task in tasks.split(',') {
        let mut rates: [Vec<f64>; 3] = Default::default();
        for round in 0..ROUNDS {
            let (seed, time) = (1000 * (round + 1), Duration::from_secs(seconds));
            for (at, reset) in [Reset::Load, Reset::InPage].into_iter().enumerate() {
                rates[at].push(play(&browsers, pages, task, seed, reset, time).await);
            }
            if let Some(reference) = &mut reference {
                rates[2].push(reference.play(task, seconds, seed));
            }
        }
        let [loaded, in_page] = [median(&rates[0]), median(&rates[1])];
        print!("{task}: {loaded:.1} in fresh pages, {in_page:.1} in pages that go on");
        if reference.is_some() {
            let ratios = [0, 1].map(|at| {
                median(
                    &rates[at]
                        .iter()
                        .zip(&rates[2])
                        .map(|(own, other)| own / other)
                        .collect::<Vec<_>>(),
                )
            });
            print!(
                "; Selenium {:.1}: {:.1} and {:.1} times",
                median(&rates[2]),
                ratios[0],
                ratios[1]
            );
            for (ratios, all) in ratios.into_iter().zip(&mut all) {
                all.push(ratios);
            }
        }
        println!();
    }
    if !all[0].is_empty() {
        let least = |of: &[f64]| of.iter().copied().fold(f64::INFINITY, f64::min);
        println!(
            "median over tasks: {:.1} times in fresh pages (least {:.1}), {:.1} in pages that go on (least {:.1})",
            median(&all[0]),
            least(&all[0]),
            median(&all[1]),
            least(&all[1])
        );
    }
    browsers.close().await;
}

/// Steps per second of random clicks.
async fn play(
    browsers: &Browsers,
    pages: &Arc<Pages>,
    task: &str,
    seed: u64,
    reset: Reset,
    time: Duration,
) -> f64 {
    let options = Options { reset, ..Options::default() };
    let mut draw = Seed::from_u64(seed).rng();
    // The window is there before the clock starts, as the reference's is.
    let first = Episode::begin(browsers, pages, task, seed, options.clone()).await;
    let (mut episode, _) = first.expect("an episode begins");
    let (mut steps, mut episodes) = (0_u64, 0);
    let began = Instant::now();
    while began.elapsed() < time {
        let mut shown = begin(&mut episode, browsers, pages, seed + episodes, &options).await;
        episodes += 1;
        for _ in 0..MOST_STEPS {
            let bids: Vec<&str> = bids(&shown.text);
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
    let rate = steps as f64 / began.elapsed().as_secs_f64();
    episode.leave();
    rate
}

async fn begin(
    episode: &mut Episode,
    browsers: &Browsers,
    pages: &Arc<Pages>,
    seed: u64,
    options: &Options,
) -> Shown {
    if options.reset == Reset::InPage {
        return episode.again(seed).await.expect("the page goes on");
    }
    let task = episode.task().to_owned();
    let begun = Episode::begin(browsers, pages, &task, seed, options.clone()).await;
    let (fresh, shown) = begun.expect("an episode begins");
    std::mem::replace(episode, fresh).leave();
    shown
}

fn bids(text: &str) -> Vec<&str> {
    let lines = text.lines().map(str::trim_start).filter_map(|line| line.strip_prefix('['));
    lines.filter_map(|line| line.split_once(']').map(|(bid, _)| bid)).collect()
}

fn median(of: &[f64]) -> f64 {
    let mut sorted = of.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
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

    fn play(&mut self, task: &str, seconds: u64, seed: u64) -> f64 {
        let input = self.child.stdin.as_mut().expect("it is piped");
        writeln!(input, "{task} {seconds} {seed}").expect("the reference listens");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the reference answers");
        let told: Value = serde_json::from_str(&line).expect("the reference plays the task");
        let figure = |name: &str| told[name].as_f64().expect("a number");
        figure("steps") / figure("seconds")
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
