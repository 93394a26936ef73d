//! `spar play`.

use std::process::ExitCode;

use anyhow::ensure;
use spar::agent::EpisodeConfig;
use spar::agent::policies::{HOW_TO_CALL, as_typed, list_tools, typed_action};
use spar::core::{Action, EndReason, Limit, Observation, Seed, Trajectory};
use spar::envs::{Actions, Environment, actions_of_task, environment_registry, takes_toolsets};
use spar::sandboxes::OpenSandboxes;
use spar::tasks::{Suite, Task};
use tokio::sync::mpsc;

use super::environments::{open_sandboxes, within};
use super::play_judging::Judged;
use super::play_lines::{Lines, Offered};
use super::play_record::{add_turn, begun};
use super::play_seats::play_seats;
use super::suites::{Purpose, default_splits, open_wrapped_suite};
use super::{cancel_on_ctrl_c, print, stopped};
use crate::cli::PlayArguments;

const HELP: &str = "  type a command, the beginning of one, or its number in the list
  ?         lists the commands that can be carried out now
  ? WORD    lists those with a word in them
";
/// The same where tools are called.
const HELP_WITH_TOOLS: &str = "  type a call of a tool: NAME {\"ARGUMENT\": 1} or NAME(ARGUMENT=1), several one behind the other
  \"WORDS    says words, where an answer or the end of a turn is no call
  ?         lists the tools that can be called now
  ? WORD    lists those with a word in their name
  ...?      lists what may stand in place of the mark, in a call of a tool; so does the tab key
";
const HELP_OF_COMMANDS: &str = "  :say TEXT says a text that looks like something else; alone it takes lines up to one that is a dot
  :hint     shows the next command of a solution
  :quit     leaves the game
";

/// A person plays a task in the terminal.
pub(crate) async fn play(arguments: &PlayArguments) -> anyhow::Result<ExitCode> {
    let (suite, split, task) = choose(arguments)?;
    // A person may think for as long as it takes.
    let episode = EpisodeConfig { command_time_secs: 86_400, ..EpisodeConfig::default() };
    let typed = &arguments.environment;
    let sandboxes = open_sandboxes(typed, None, Some(1), suite.as_ref(), &split, &episode).await?;
    within(sandboxes, async |sandboxes| play_task(arguments, suite.as_ref(), task, sandboxes).await)
        .await
}

async fn play_task(
    arguments: &PlayArguments,
    suite: &dyn Suite,
    task: Task,
    sandboxes: &OpenSandboxes,
) -> anyhow::Result<ExitCode> {
    let (judged, mut env) = Judged::open(&task, sandboxes)?;
    let seats = env.seats().to_vec();
    if seats.len() > 1 {
        env.close().await?;
        return play_seats(arguments, suite.about(), judged, &seats).await;
    }
    ensure!(
        arguments.seat.is_none() && arguments.against.is_empty(),
        "take a seat: one acts in this task, so --seat and --against have no effect"
    );
    let left_out = judged.told();
    let mut game = Game::begin(env, judged.task, arguments.seed).await?;
    let how = match game.has_tools() {
        true => format!("{HOW_TO_CALL} `?` lists the tools, `:help` tells more."),
        false => "Type `?` for commands, `:help` for more.".to_owned(),
    };
    print(&format!("{}: {}\n{left_out}{how}\n\n", game.task.id, suite.about()))?;
    game.show()?;
    let cancellation = cancel_on_ctrl_c();
    tokio::select! {
        () = cancellation.cancelled() => return Ok(stopped()),
        played = game.play(Lines::open()?) => played?,
    }
    game.env.close().await?;
    print(&game.result())?;
    Ok(ExitCode::SUCCESS)
}

/// Whether a person plays a task by calls of tools: where it takes calls, or where one acts in it and it takes them as well. A
/// shell is worked at in words, which are its commands, and so are those talked to who understand words.
pub(super) fn is_played_by_calls(task: &Task, seats: usize) -> bool {
    match actions_of_task(task) {
        Some(Actions::Calls) => true,
        Some(Actions::Both) => seats == 1 && !takes_toolsets(&task.environment),
        Some(Actions::Words) | None => false,
    }
}

/// Lines up to one that is a dot; none where the input ends before.
async fn said_in_lines(lines: &mut Lines) -> Option<String> {
    let mut text = Vec::new();
    loop {
        match lines.next(&Offered::default()).await?.as_str() {
            "." => return Some(text.join("\n")),
            line => text.push(line.to_owned()),
        }
    }
}

/// A game in progress.
struct Game {
    env: Box<dyn Environment>,
    observation: Observation,
    task: Task,
    turns: u32,
    reward: f64,
    is_over: bool,
    /// What judges see.
    record: Trajectory,
}

impl Game {
    async fn begin(mut env: Box<dyn Environment>, task: Task, seed: u64) -> anyhow::Result<Self> {
        if is_played_by_calls(&task, 1) {
            env.use_tools();
        }
        let seed = Seed::from_u64(seed).derive("play", 0);
        let observation = env.reset(seed).await?;
        let record = begun(&*env, &task, seed, observation.clone());
        Ok(Self { env, observation, task, turns: 0, reward: 0.0, is_over: false, record })
    }

    /// Carries out what is typed, until the game is over or the person leaves it.
    async fn play(&mut self, mut lines: Lines) -> anyhow::Result<()> {
        while !self.is_over {
            let offered = Offered::new(self.env.tools().to_vec(), &self.observation);
            let Some(line) = lines.next(&offered).await else {
                print("\n")?;
                break;
            };
            let action = match line.trim() {
                ":quit" | ":q" => break,
                ":say" => said_in_lines(&mut lines).await.map(Action::text),
                line => self.understand(line, &offered)?,
            };
            if let Some(action) = action {
                self.step(&action).await?;
            }
        }
        Ok(())
    }

    fn has_tools(&self) -> bool {
        !self.env.tools().is_empty()
    }

    fn show(&self) -> anyhow::Result<()> {
        for result in &self.observation.results {
            let mark = if result.is_error { "error: " } else { "" };
            print(&format!("{mark}{}\n", result.text.trim_end()))?;
        }
        print(&format!("{}\n\n", self.observation.text.trim_end()))
    }

    fn list(&self, word: &str) -> anyhow::Result<()> {
        let tools = self.env.tools();
        if !tools.is_empty() {
            return print(&list_tools(&tools, word));
        }
        let Some(actions) = &self.observation.admissible else {
            return print("  this environment lists no commands\n");
        };
        let numbered = actions.iter().enumerate().filter(|(_, action)| action.contains(word));
        print(&numbered.map(|(n, action)| format!("{:4}  {action}\n", n + 1)).collect::<String>())
    }

    /// The action that a line means; none where it asks something, which is answered, or cannot be understood, which is told.
    fn understand(&self, line: &str, offered: &Offered) -> anyhow::Result<Option<Action>> {
        let tools = self.env.tools();
        match line {
            "" => {}
            ":help" => {
                print(if self.has_tools() { HELP_WITH_TOOLS } else { HELP })?;
                print(HELP_OF_COMMANDS)?;
            }
            ":hint" => match self.env.oracle_action() {
                Some(action) => print(&format!("  try: {}\n", as_typed(&action, &tools)))?,
                None => print("  there is no way to solve it from here that is known\n")?,
            },
            question if question.starts_with('?') => self.list(question[1..].trim())?,
            command if command.starts_with(':') && !command.starts_with(":say ") => {
                print(&format!("  `{command}` is unknown; `:help` lists what there is\n"))?;
            }
            begun if offered.asked(begun).is_some() => {
                let found = offered.asked(begun).unwrap_or_default();
                print(&found.iter().map(|text| format!("  {text}\n")).collect::<String>())?;
            }
            line => match resolve(line, &self.observation) {
                Meaning::Listed(action) => return Ok(Some(action.into())),
                Meaning::Several(actions) => {
                    print(&actions.iter().map(|a| format!("  {a}\n")).collect::<String>())?;
                }
                Meaning::Other => match typed_action(line, &tools) {
                    Ok(action) => return Ok(Some(action)),
                    Err(told) => print(&format!("  {told}\n"))?,
                },
            },
        }
        Ok(None)
    }

    async fn step(&mut self, action: &Action) -> anyhow::Result<()> {
        let mut step = self.env.step(action).await?;
        let mut details = String::new();
        self.turns += 1;
        let is_last = !step.terminated && self.turns >= self.task.max_turns;
        self.is_over = step.terminated || is_last;
        add_turn(&mut self.record, action, step.clone());
        if is_last {
            self.record.end = EndReason::Truncated { limit: Limit::Turns };
        }
        if self.is_over
            && let Some(verdict) = self.env.grade(&self.record).await?
        {
            verdict.apply(&mut step);
            details = verdict.details;
        }
        self.reward += step.reward();
        let success = step.success;
        self.observation = step.observation;
        if !details.is_empty() {
            let text = &mut self.observation.text;
            let end = text.trim_end().len();
            text.truncate(end);
            text.push_str(&format!("\n[{details}]"));
        }
        self.show()?;
        if is_last {
            print("That was the last turn.\n")?;
        }
        if success {
            print("Solved!\n")?;
        }
        Ok(())
    }

    fn result(&self) -> String {
        let end = if self.is_over { "after" } else { "left after" };
        format!("{end} {} turns with reward {:.2}\n", self.turns, self.reward)
    }
}

/// What a person meant by a line.
enum Meaning {
    /// One of the actions that are listed.
    Listed(String),
    /// It is the beginning of several commands.
    Several(Vec<String>),
    /// None that is listed.
    Other,
}

/// A number of the list, a command, or the beginning of one.
fn resolve(line: &str, observation: &Observation) -> Meaning {
    let actions = observation.admissible.as_deref().unwrap_or_default();
    if actions.iter().any(|action| **action == *line) {
        return Meaning::Listed(line.to_owned());
    }
    let number = line.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    if let Some(action) = number.and_then(|number| actions.get(number)) {
        return Meaning::Listed(action.to_string());
    }
    let begun: Vec<String> =
        actions.iter().filter(|action| action.starts_with(line)).map(ToString::to_string).collect();
    match &*begun {
        [] => Meaning::Other,
        [only] => Meaning::Listed(only.clone()),
        _ => Meaning::Several(begun),
    }
}

/// The suite, the split and the task that were asked for.
fn choose(arguments: &PlayArguments) -> anyhow::Result<(Box<dyn Suite>, String, Task)> {
    let of_environment = environment_registry()
        .iter()
        .find(|entry| entry.name == arguments.name)
        .and_then(|e| e.suite);
    let name = of_environment.unwrap_or(&arguments.name);
    let suite = open_wrapped_suite(name, arguments.data.as_deref(), &arguments.wrapping.wrap)?;
    let split = match &arguments.split {
        Some(split) => split.clone(),
        None => default_splits(suite.as_ref(), None, Purpose::Training)?.remove(0),
    };
    let len = suite.len(&split)?;
    let drawn = || {
        let seed = Seed::from_u64(arguments.seed).derive("task", &split);
        (seed.as_u64() % len as u64) as usize
    };
    anyhow::ensure!(len > 0, "take a task of split `{split}`: it has none");
    let index = arguments.index.unwrap_or_else(drawn);
    let task = suite.task(&split, index)?;
    Ok((suite, split, task))
}

/// Lines of standard input, read on a thread that nothing waits for.
pub(super) fn read_lines() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_beginnings_stand_for_commands() {
        let actions = ["go to bed 1", "go to desk 1", "look"];
        let admissible = Some(actions.map(Into::into).into());
        let observation = Observation { admissible, ..Observation::default() };
        let meant = |line| match resolve(line, &observation) {
            Meaning::Listed(action) => action,
            Meaning::Other => "nothing listed".to_owned(),
            Meaning::Several(actions) => format!("{} of them", actions.len()),
        };
        assert_eq!(meant("2"), "go to desk 1");
        assert_eq!(meant("l"), "look");
        assert_eq!(meant("go to d"), "go to desk 1");
        assert_eq!(meant("go"), "2 of them");
        assert_eq!(meant("9"), "nothing listed");
        assert_eq!(meant("fly"), "nothing listed");
    }

    #[test]
    fn people_play_by_calls_where_words_are_no_commands_and_no_talk() {
        for (suite, seats, is_by_calls) in [
            ("bfcl", 1, true),
            ("sql", 1, true),
            ("toolbox", 1, true),
            ("tau2", 2, true),
            ("errand", 2, false),
            ("terminal", 1, false),
            ("frozen-lake", 1, false),
        ] {
            let opened = spar::tasks::open_suite(suite, &Default::default()).unwrap();
            let task = opened.task(&opened.manifest().splits[0].0, 0).unwrap();
            assert_eq!(is_played_by_calls(&task, seats), is_by_calls, "{suite}");
        }
    }
}
