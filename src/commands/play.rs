//! `spar play`.

use std::process::ExitCode;

use anyhow::ensure;
use spar::agent::EpisodeConfig;
use spar::core::{Action, Observation, Seed, ToolCall, ToolSpec};
use spar::envs::{Environment, environment_registry};
use spar::sandboxes::OpenSandboxes;
use spar::tasks::{Suite, Task};
use tokio::sync::mpsc;

use super::environments::{open_sandboxes, within};
use super::play_lines::{Lines, Offered};
use super::play_seats::play_seats;
use super::suites::{Purpose, default_splits, open_wrapped_suite};
use super::{cancel_on_ctrl_c, print, stopped};
use crate::cli::PlayArguments;

const HELP: &str = "\
  type a command, the beginning of one, or its number in the list
  ?         lists the commands that can be carried out now
  ? WORD    lists those with a word in them
  ...?      lists what may stand in place of the mark, in a call of a tool; so does the tab key
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
    let mut env = sandboxes.ungraded_opener()(&task)?;
    let seats = env.seats().to_vec();
    if seats.len() > 1 {
        env.close().await?;
        return play_seats(arguments, suite.about(), task, &seats, sandboxes).await;
    }
    ensure!(
        arguments.seat.is_none() && arguments.against.is_empty(),
        "take a seat: one acts in this task, so --seat and --against have no effect"
    );
    let observation = env.reset(Seed::from_u64(arguments.seed).derive("play", 0)).await?;
    let about = suite.about();
    print(&format!("{}: {about}\nType `?` for commands, `:help` for more.\n\n", task.id))?;
    let mut game = Game { env, observation, task, turns: 0, reward: 0.0, is_over: false };
    game.show()?;
    let mut lines = Lines::open()?;
    let cancellation = cancel_on_ctrl_c();
    loop {
        if game.is_over {
            break;
        }
        let offered = Offered::new(game.env.tools().to_vec(), &game.observation);
        let line = tokio::select! {
            line = lines.next(&offered) => line,
            () = cancellation.cancelled() => return Ok(stopped()),
        };
        let Some(line) = line else {
            print("\n")?;
            break;
        };
        match line.trim() {
            "" => {}
            ":quit" | ":q" => break,
            ":help" => print(HELP)?,
            ":hint" => match game.env.oracle_action() {
                Some(action) => print(&format!("  try: {action}\n"))?,
                None => print("  there is no way to solve it from here that is known\n")?,
            },
            question if question.starts_with('?') => game.list(question[1..].trim())?,
            command if command.starts_with(':') => {
                print(&format!("  `{command}` is unknown; `:help` lists what there is\n"))?;
            }
            begun if offered.asked(begun).is_some() => {
                let found = offered.asked(begun).unwrap_or_default();
                print(&found.iter().map(|text| format!("  {text}\n")).collect::<String>())?;
            }
            command => match resolve(command, &game.observation) {
                Meaning::Action(action) => {
                    let action = typed(&action, &game.env.tools());
                    tokio::select! {
                        () = cancellation.cancelled() => return Ok(stopped()),
                        stepped = game.step(&action) => stepped?,
                    }
                }
                Meaning::Several(actions) => {
                    print(&actions.iter().map(|a| format!("  {a}\n")).collect::<String>())?;
                }
            },
        }
    }
    game.env.close().await?;
    print(&game.result())?;
    Ok(ExitCode::SUCCESS)
}

/// A game in progress.
struct Game {
    env: Box<dyn Environment>,
    observation: Observation,
    task: Task,
    turns: u32,
    reward: f64,
    is_over: bool,
}

impl Game {
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
            let offered = tools.iter().filter(|tool| tool.name.contains(word));
            let line = |tool: &ToolSpec| {
                format!("  {} {}  {}\n", tool.name, tool.parameters, tool.description)
            };
            return print(&offered.map(line).collect::<String>());
        }
        let Some(actions) = &self.observation.admissible else {
            return print("  this environment lists no commands\n");
        };
        let numbered = actions.iter().enumerate().filter(|(_, action)| action.contains(word));
        print(&numbered.map(|(n, action)| format!("{:4}  {action}\n", n + 1)).collect::<String>())
    }

    async fn step(&mut self, action: &Action) -> anyhow::Result<()> {
        let mut step = self.env.step(action).await?;
        let mut details = String::new();
        self.turns += 1;
        let is_last = !step.terminated && self.turns >= self.task.max_turns;
        self.is_over = step.terminated || is_last;
        if self.is_over
            && let Some(verdict) = self.env.verify().await?
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

/// The action that a line means: a call, where it is the name of a tool with its arguments as a JSON object or none,
/// and else its words.
fn typed(line: &str, tools: &[ToolSpec]) -> Action {
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, "{}"));
    let arguments = serde_json::from_str(rest.trim());
    match (tools.iter().any(|tool| tool.name == name), arguments) {
        (true, Ok(arguments)) => Action::calls(vec![ToolCall::new(name, arguments)]),
        _ => line.into(),
    }
}

/// What a person meant by a line.
enum Meaning {
    Action(String),
    /// It is the beginning of several commands.
    Several(Vec<String>),
}

/// A number of the list, a command, or the beginning of one; anything else is for the environment
/// to answer.
fn resolve(line: &str, observation: &Observation) -> Meaning {
    let actions = observation.admissible.as_deref().unwrap_or_default();
    if actions.iter().any(|action| **action == *line) {
        return Meaning::Action(line.to_owned());
    }
    let number = line.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    if let Some(action) = number.and_then(|number| actions.get(number)) {
        return Meaning::Action(action.to_string());
    }
    let begun: Vec<String> =
        actions.iter().filter(|action| action.starts_with(line)).map(ToString::to_string).collect();
    match &*begun {
        [] => Meaning::Action(line.to_owned()),
        [only] => Meaning::Action(only.clone()),
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
    fn calls_are_typed_as_names_with_their_arguments() {
        let tools = [ToolSpec::new("pay", "", serde_json::json!({}))];
        let call = typed(r#"pay {"amount": 3}"#, &tools);
        assert_eq!(call.tool_calls()[0].arguments["amount"], 3);
        assert_eq!(typed("pay", &tools).tool_calls().len(), 1);
        for words in ["pay three", "pays {}", "look"] {
            assert_eq!(typed(words, &tools), words.into());
        }
    }

    #[test]
    fn numbers_and_beginnings_stand_for_commands() {
        let actions = ["go to bed 1", "go to desk 1", "look"];
        let admissible = Some(actions.map(Into::into).into());
        let observation = Observation { admissible, ..Observation::default() };
        let meant = |line| match resolve(line, &observation) {
            Meaning::Action(action) => action,
            Meaning::Several(actions) => format!("{} of them", actions.len()),
        };
        assert_eq!(meant("2"), "go to desk 1");
        assert_eq!(meant("l"), "look");
        assert_eq!(meant("go to d"), "go to desk 1");
        assert_eq!(meant("go"), "2 of them");
        assert_eq!(meant("9"), "9");
        assert_eq!(meant("fly"), "fly");
    }
}
