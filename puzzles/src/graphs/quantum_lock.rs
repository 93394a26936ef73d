//! Buttons that change a number and a light.

use std::collections::HashSet;

use crate::prelude::*;

options! {
    /// Options of `quantum_lock`.
    QuantumLockOptions {
        /// Largest difficulty of a puzzle, 1 to 100. Default 10.
        difficulty: i64 = 10,
    }
    |given, problems| {
        problems.between("difficulty", given.difficulty, 1, 100);
    }
}

/// Puzzles drawn before options are taken to give none that can be solved; the package's recursion ends there.
const MOST_TRIES: u64 = 900;
/// A number this large never comes back to a target.
const LARGEST: i128 = 1_000_000_000_000_000_000_000_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq)]
struct Button {
    kind: &'static str,
    value: i64,
    active: &'static str,
}

impl Button {
    /// The number behind a press; absent where the button is not active.
    fn press(&self, value: i128, is_green: bool) -> Option<i128> {
        if self.active != "any" && self.active != color(is_green) {
            return None;
        }
        let by = i128::from(self.value);
        Some(match self.kind {
            "add" => value + by,
            "subtract" => value - by,
            _ => (value * by).clamp(-LARGEST, LARGEST),
        })
    }
}

fn color(is_green: bool) -> &'static str {
    if is_green { "green" } else { "red" }
}

/// Three buttons, a light and a number that is to become another one.
pub(crate) struct QuantumLock;

impl Generator for QuantumLock {
    type Options = QuantumLockOptions;

    fn item(options: &QuantumLockOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let difficulty = rng.int(1, options.difficulty)?;
        for _ in 0..MOST_TRIES {
            let buttons = draw_buttons(rng, difficulty)?;
            let base = 5.0 + (difficulty as f64).powf(1.5);
            let variance = rng.int(-((base * 0.2) as i64), (base * 0.3) as i64)?;
            let target = 8.max((base + variance as f64) as i64);
            let most = 15.min(6 + (difficulty as f64 * 1.5) as usize);
            let Some(solution) = solve(&buttons, target, most) else { continue };
            rng.below(1);
            let told = buttons.iter().zip('A'..).map(|(Button { kind, value, active }, name)| {
                format!("{name}: {} {value} (when {active})", crate::text::title(kind))
            });
            let question = format!(
                "In front of you are some buttons, a light, and a number. The light will toggle between red and green whenever you press a button. Each button performs a mathematical operation to the number, but the operation may depend on the state of the light.\nYou must press the shortest correct sequence of buttons to reach the target value. Your answer should be a sequence of buttons separated by '→', for example: A → B → C\n\nStart: 0 (red)\nTarget: {target}\nButtons:\n{}",
                joined(told, "\n")
            );
            let facts: Vec<Value> = buttons.iter().zip('A'..).map(|(button, name)| {
                json!({ "name": name.to_string(), "type": button.kind, "value": button.value, "active_state": button.active })
            }).collect();
            return Ok(Item::new(question, joined(solution, " → "))
                .with("target_value", target)
                .with("buttons", facts));
        }
        Err(ItemError::TooManyTries { tries: MOST_TRIES })
    }

    fn score(_: &QuantumLockOptions, answer: Option<&str>, item: &Item) -> f64 {
        let Some(answer) = answer else { return 0.0 };
        let pressed = |text: &str| -> Vec<char> {
            text.to_uppercase().chars().filter(|letter| ('A'..='C').contains(letter)).collect()
        };
        let (given, gold) = (pressed(answer), pressed(item.gold()));
        if given == gold {
            return 1.0;
        }
        let buttons: Vec<Button> = item
            .fact("buttons")
            .as_array()
            .into_iter()
            .flatten()
            .map(|fact| {
                let known = |name: &str, all: [&'static str; 3]| {
                    all.into_iter().find(|one| fact[name] == *one).unwrap_or(all[0])
                };
                Button {
                    kind: known("type", ["multiply", "add", "subtract"]),
                    value: fact["value"].as_i64().unwrap_or(1),
                    active: known("active_state", ["any", "green", "red"]),
                }
            })
            .collect();
        let (mut value, mut is_green) = (0, false);
        for letter in &given {
            let Some(button) = buttons.get(*letter as usize - 'A' as usize) else { continue };
            if let Some(next) = button.press(value, is_green) {
                value = next;
                is_green = !is_green;
            }
        }
        match value == i128::from(item.int("target_value")) {
            true if given.len() == gold.len() => 1.0,
            true => 0.5,
            false => 0.0,
        }
    }
}

fn draw_buttons(rng: &mut Random, difficulty: i64) -> Result<Vec<Button>, ItemError> {
    let small: &[i64] = if difficulty >= 5 { &[2, 3] } else { &[1, 2] };
    let factors: &[i64] = if difficulty >= 7 { &[2, 3] } else { &[2] };
    let kinds = [("add", small), ("subtract", small), ("multiply", factors)];
    let mut buttons: Vec<Button> = Vec::new();
    while buttons.len() < 3 {
        let (kind, values) = *rng.choice(&kinds)?;
        let value = *rng.choice(values)?;
        let active = *rng.weighted_choices(&["any", "green", "red"], &[4.0, 2.0, 1.0], 1)?[0];
        let button = Button { kind, value, active };
        if !buttons.contains(&button) {
            buttons.push(button);
        }
    }
    Ok(buttons)
}

/// The shortest sequence of buttons, the first that a search in the package's order finds.
fn solve(buttons: &[Button], target: i64, most: usize) -> Option<Vec<char>> {
    // Values with the light, how many buttons led there, and from where by which.
    let mut reached = vec![(0_i128, false, 0, 0, ' ')];
    let mut seen = HashSet::new();
    let mut at = 0;
    while let Some(&(value, is_green, steps, _, _)) = reached.get(at) {
        if value == i128::from(target) {
            let (mut path, mut back) = (Vec::new(), at);
            while back != 0 {
                path.push(reached[back].4);
                back = reached[back].3;
            }
            path.reverse();
            return Some(path);
        }
        if steps < most && seen.insert((value, is_green)) {
            for (button, name) in buttons.iter().zip('A'..) {
                if let Some(next) = button.press(value, is_green) {
                    reached.push((next, !is_green, steps + 1, at, name));
                }
            }
        }
        at += 1;
    }
    None
}
