//! Bandit: find the button that pays most often.
//!
//! Messages are those of TextArena 0.7.4 (MIT), word for word.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::Value;

use crate::GameError;
use crate::game::{Rules, check_range, read_settings};
use crate::table::{MessageKind, Table};

const NAME: &str = "bandit";

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    buttons: Vec<String>,
    p_gap: f64,
    num_turns: u32,
    include_summary: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let buttons = ["red", "blue", "green", "yellow", "purple"].map(str::to_owned).to_vec();
        Self { buttons, p_gap: 0.1, num_turns: 20, include_summary: false }
    }
}

#[derive(Debug, Clone)]
struct Bandit {
    settings: Settings,
    best: usize,
    means: Vec<f64>,
    /// How often each button was pressed, and how often it paid.
    pressed: Vec<(u32, u32)>,
}

pub(crate) fn open(settings: &Value) -> Result<Box<dyn Rules>, GameError> {
    let settings: Settings = read_settings(NAME, settings)?;
    let refuse = |detail: String| Err(GameError::Settings { game: NAME, detail });
    check_range(NAME, ("buttons (their number)", settings.buttons.len()), 2..=20)?;
    check_range(NAME, ("num_turns", settings.num_turns), 1..=10_000)?;
    check_range(NAME, ("p_gap", settings.p_gap), 0.0..=0.8)?;
    for (at, button) in settings.buttons.iter().enumerate() {
        let is_word = (1..=40).contains(&button.len())
            && button.chars().all(|letter| letter.is_ascii_alphanumeric());
        if !is_word || settings.buttons[..at].contains(button) {
            return refuse(format!(
                "button `{button}` is no word of up to 40 letters and digits of its own"
            ));
        }
    }
    let count = settings.buttons.len();
    Ok(Box::new(Bandit {
        settings,
        best: 0,
        means: vec![0.0; count],
        pressed: vec![(0, 0); count],
    }))
}

/// What `\[(.*)\]` takes: from the first bracket behind which its line has a closing one, up to the last of these.
fn inside(action: &str) -> Option<&str> {
    action.split('\n').find_map(|line| {
        let (start, end) = (line.find('[')? + 1, line.rfind(']')?);
        line.get(start..end)
    })
}

impl Rules for Bandit {
    fn max_turns(&self) -> Option<u32> {
        Some(self.settings.num_turns)
    }

    fn begin(&mut self, table: &mut Table) {
        let Settings { buttons, p_gap, num_turns, .. } = &self.settings;
        let (count, high) = (buttons.len(), 0.5 - p_gap / 2.0);
        self.best = table.rng.below(count as u64) as usize;
        self.means = (0..count)
            .map(|button| match button == self.best {
                true => 0.5 + p_gap / 2.0,
                false => table.rng.uniform(0.1, high),
            })
            .collect();
        self.pressed = vec![(0, 0); count];
        table.say(
            MessageKind::Prompt,
            format_args!(
                "You are in a room with {count} buttons: {}. Each button is associated with a Bernoulli distribution \
                 with a fixed but unknown mean; the means for the buttons could be different.\n\
                 For each button, when you press it, you will get a reward that is sampled from associated distribution.\n\
                 You have {num_turns} time steps and, on each time step, you can choose any button and receive the reward.\n\
                 Your goal is to strategically choose buttons at each time step to collect information about their \
                 reward distribution, that will let you choose the button with the highest mean reward correctly at the \
                 end of {num_turns} turns.",
                buttons.join(", ")
            ),
        );
    }

    fn act(&mut self, table: &mut Table, action: &str) {
        let num_turns = self.settings.num_turns;
        match inside(action) {
            None => table.invalid_alone(
                || -1.0,
                format_args!("The player did not respond with a valid action format."),
            ),
            Some(named) => match self.settings.buttons.iter().position(|button| button == named) {
                None => table
                    .invalid_alone(|| -1.0, format_args!("An invalid button has been selected.")),
                Some(button) if table.turn == num_turns => {
                    // The package holds the button against all means, so that none is ever right: what it pays is how
                    // much the choice costs a press, which is nothing for the best.
                    let most = self.means.iter().copied().fold(f64::MIN, f64::max);
                    let (cost, is_best) = (most - self.means[button], button == self.best);
                    table.set_outcome(cost, is_best, "You chose an incorrect button.");
                }
                Some(button) => {
                    let pays = table.rng.random() < self.means[button];
                    let (pressed, paid) = &mut self.pressed[button];
                    *pressed += 1;
                    *paid += u32::from(pays);
                    table.say(
                        MessageKind::Description,
                        format_args!(
                            "You pressed the {named} button and received a reward of {}.",
                            if pays { "1.0" } else { "0.0" }
                        ),
                    );
                    if self.settings.include_summary {
                        table.say_with(MessageKind::Board, |text| {
                            text.push_str("Summary:");
                            for (name, (pressed, paid)) in
                                self.settings.buttons.iter().zip(&self.pressed)
                            {
                                let mean = match pressed {
                                    0 => 0.0,
                                    pressed => f64::from(*paid) / f64::from(*pressed),
                                };
                                let _ = write!(
                                    text,
                                    "\n{name}: {} (played {pressed} times)",
                                    spar_python::fixed(mean, 2)
                                );
                            }
                        });
                    }
                }
            },
        }
        if table.turn + 1 == num_turns {
            table.say(
                MessageKind::Message,
                format_args!(
                    "You have exhausted your budget for trying out different choices and observe their rewards. Now \
                     make a deduction about what the best choice is."
                ),
            );
        }
        table.end_move(false);
    }

    fn legal(&self, _: &Table) -> Option<Vec<String>> {
        Some(self.settings.buttons.iter().map(|button| format!("[{button}]")).collect())
    }

    /// Every button in turn, then those whose upper bound is highest (UCB1; Auer, Cesa-Bianchi and Fischer, 2002), and in
    /// the end the best mean.
    fn expert(&mut self, table: &Table, _: f64) -> Option<String> {
        let is_last = table.turn == self.settings.num_turns;
        let worth = |(pressed, paid): (u32, u32)| match (pressed, is_last) {
            (0, true) => 0.0,
            (0, false) => f64::MAX,
            (pressed, is_last) => {
                let (pressed, turn) = (f64::from(pressed), f64::from(table.turn.max(1)));
                let bonus = if is_last { 0.0 } else { (2.0 * turn.ln() / pressed).sqrt() };
                f64::from(paid) / pressed + bonus
            }
        };
        let worths = self.pressed.iter().map(|pressed| worth(*pressed)).enumerate();
        let (best, _) = worths.rev().max_by(|(_, one), (_, two)| one.total_cmp(two))?;
        Some(format!("[{}]", self.settings.buttons[best]))
    }

    fn oracle(&mut self, _: &Table) -> Option<String> {
        Some(format!("[{}]", self.settings.buttons[self.best]))
    }

    fn copy(&self) -> Box<dyn Rules> {
        Box::new(self.clone())
    }
}
