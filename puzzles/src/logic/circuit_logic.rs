//! Circuits drawn with characters.

use std::collections::BTreeMap;

use crate::prelude::*;

const INTERNAL: [(&str, char); 3] = [("AND", '&'), ("NAND", '↑'), ("XOR", '⊕')];
const FINAL: [(&str, char); 4] = [("OR", '+'), ("NOR", '↓'), ("XOR", '⊕'), ("AND", '&')];

options! {
    /// Options of `circuit_logic`.
    CircuitLogicOptions {
        /// Fewest gates before the last one, at least 1. Default 3.
        min_terms: i64 = 3,
        /// Most gates before the last one, up to 50. Default 5.
        max_terms: i64 = 5,
        /// Fewest inputs of a gate, at least 1. Default 2.
        min_inputs: i64 = 2,
        /// Most inputs of a gate, up to 50. Default 4.
        max_inputs: i64 = 4,
        /// How often an input is negated, 0 to 1. Default 0.3.
        neg_prob: f64 = 0.3,
        /// Whether inputs go to several gates. Default true.
        allow_reuse: bool = true,
    }
    |given, problems| {
        problems.span(("min_terms", "max_terms"), (given.min_terms, given.max_terms), (1, 50));
        problems.span(("min_inputs", "max_inputs"), (given.min_inputs, given.max_inputs), (1, 50));
        problems.between("neg_prob", given.neg_prob, 0.0, 1.0);
    }
}

/// A circuit of gates with the values of its inputs; its output is asked for.
pub(crate) struct CircuitLogic;

/// An input of a gate.
struct Wire {
    /// The place of the name in the order in which names came up.
    input: usize,
    is_negated: bool,
    row: usize,
}

struct Gate {
    name: &'static str,
    sign: char,
    wires: Vec<Wire>,
}

/// A canvas of characters.
struct Canvas {
    width: usize,
    rows: Vec<Vec<char>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Towards {
    Right,
    Down,
}

impl Canvas {
    /// Writes characters from a place on, as far as the canvas goes.
    fn put(
        &mut self,
        x: usize,
        y: i64,
        characters: &[char],
        towards: Towards,
    ) -> Result<(), ItemError> {
        if x >= self.width || y >= self.rows.len() as i64 {
            return Err(ItemError::raised(format_args!(
                "_matrix_put: point ({x}, {y}) out of bounds!"
            )));
        }
        let (mut x, mut y) = (x, y);
        for character in characters {
            if x >= self.width || y < 0 || y >= self.rows.len() as i64 {
                break;
            }
            self.rows[y as usize][x] = *character;
            match towards {
                Towards::Right => x += 1,
                Towards::Down => y += 1,
            }
        }
        Ok(())
    }
}

impl Generator for CircuitLogic {
    type Options = CircuitLogicOptions;

    fn item(options: &CircuitLogicOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let num_terms = rng.int(options.min_terms, options.max_terms)?;
        let (last, last_sign) = *rng.choice(&FINAL)?;
        let mut names: Vec<String> = Vec::new();
        let mut gates = Vec::new();
        let mut row = 0;
        for _ in 0..num_terms {
            let (name, sign) = *rng.choice(&INTERNAL)?;
            let mut wires = Vec::new();
            for _ in 0..rng.int(options.min_inputs, options.max_inputs)? {
                let input = match options.allow_reuse && !names.is_empty() && rng.random() < 0.5 {
                    true => rng.below(names.len() as u64) as usize,
                    false => {
                        names.push(column_name(names.len()));
                        names.len() - 1
                    }
                };
                wires.push(Wire { input, is_negated: rng.random() < options.neg_prob, row });
                row += 1;
            }
            gates.push(Gate { name, sign, wires });
            row += 1;
        }
        // Inputs are listed in the order of their names.
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_by(|a, b| names[*a].cmp(&names[*b]));
        let expression = expression(&gates, &names, last_sign);
        let picture = drawing(&gates, &names, &order, last_sign, expression.chars().count())?;
        let mut values = BTreeMap::new();
        for &input in &order {
            values.insert(input, *rng.choice(&[false, true])?);
        }
        let outputs: Vec<bool> = gates
            .iter()
            .map(|gate| {
                let mut inputs =
                    gate.wires.iter().map(|wire| values[&wire.input] != wire.is_negated);
                match gate.name {
                    "AND" => inputs.all(|value| value),
                    "NAND" => !inputs.all(|value| value),
                    _ => inputs.fold(false, |parity, value| parity != value),
                }
            })
            .collect();
        let result = match last {
            "OR" => outputs.contains(&true),
            "NOR" => !outputs.contains(&true),
            "XOR" => outputs.iter().fold(false, |parity, value| parity != *value),
            _ => !outputs.contains(&false),
        };
        let negation = if options.neg_prob > 0.0 { "\n>o: Negate" } else { "" };
        let given = joined(
            order.iter().map(|input| format!("  {} = {}", names[*input], u8::from(values[input]))),
            "\n",
        );
        let question = format!(
            "Below is a randomly generated logic circuit.\n\n{picture}\n\n\nLegend for gates:\n&&: AND\n↑↑: NAND\n⊕⊕: XOR{negation}\n{last_sign}{last_sign}: {last}\n\nGiven the following input assignments:\n{given}\n\nWhat is the final output?"
        );
        Ok(Item::new(question, u8::from(result)).with("expression", expression))
    }

    fn score(_: &CircuitLogicOptions, answer: Option<&str>, item: &Item) -> f64 {
        let Some(answer) = answer.filter(|answer| !answer.is_empty()) else { return 0.0 };
        match answer == item.gold() {
            true => 1.0,
            false if strip(answer) == item.gold() => 1.0 / answer.chars().count() as f64,
            false => 0.0,
        }
    }
}

/// `A` to `Z`, `AA` and so on.
fn column_name(place: usize) -> String {
    let (mut rest, mut letters) = (place + 1, Vec::new());
    while rest > 0 {
        letters.push(char::from(b'A' + ((rest - 1) % 26) as u8));
        rest = (rest - 1) / 26;
    }
    letters.into_iter().rev().collect()
}

fn expression(gates: &[Gate], names: &[String], last_sign: char) -> String {
    let term = |gate: &Gate| {
        let inputs = gate
            .wires
            .iter()
            .map(|wire| format!("{}{}", names[wire.input], if wire.is_negated { "'" } else { "" }));
        format!("({})", joined(inputs, &gate.sign.to_string()))
    };
    joined(gates.iter().map(term), &last_sign.to_string())
}

/// The picture of a circuit.
fn drawing(
    gates: &[Gate],
    names: &[String],
    order: &[usize],
    last_sign: char,
    expression_width: usize,
) -> Result<String, ItemError> {
    use Towards::{Down, Right};

    let line = |length: usize| vec!['─'; length];
    let inputs = order.len();
    let wires: usize = gates.iter().map(|gate| gate.wires.len()).sum();
    let height = inputs + wires + gates.len() - 1;
    let label_width = names.iter().map(String::len).max().unwrap_or_default() + 2;
    // 1. Columns: labels, a column for each input, negations and gates, the last gate, the output.
    let negations = label_width + inputs * 2;
    let last_gate = negations + 7 + gates.len() + 1;
    let width = last_gate + 3 + 8 + expression_width;
    let mut canvas = Canvas { width, rows: vec![vec![' '; width]; height] };
    let base = inputs;
    // 2. The output and the last gate.
    let out_row = base + (height - base) / 2;
    let out: Vec<char> = "──── OUT".chars().collect();
    canvas.put(width - 8 - expression_width, out_row as i64, &out, Right)?;
    let center = out_row as i64 - gates.len() as i64 / 2;
    if gates.len() == 1 {
        canvas.put(last_gate, center, &line(3), Right)?;
    } else {
        canvas.put(last_gate, center, &line(gates.len()), Down)?;
        canvas.put(last_gate + 1, center, &vec!['│'; gates.len()], Down)?;
        canvas.put(last_gate + 2, center, &vec![last_sign; gates.len()], Down)?;
        canvas.put(last_gate + 3, center, &vec![last_sign; gates.len()], Down)?;
    }
    // 3. Negations and gates.
    let mut y = base;
    for gate in gates {
        let is_gate = gate.wires.len() > 1;
        let negated = |sign: char| -> Vec<char> {
            gate.wires.iter().map(|wire| if wire.is_negated { sign } else { '─' }).collect()
        };
        let count = gate.wires.len();
        let all = |sign: char| vec![if is_gate { sign } else { '─' }; count];
        let layers = [
            line(count),
            negated('>'),
            negated('o'),
            line(count),
            all('│'),
            all(gate.sign),
            all(gate.sign),
        ];
        for (place, layer) in layers.iter().enumerate() {
            canvas.put(negations + place, y as i64, layer, Down)?;
        }
        y += count + 1;
    }
    // 4. Inputs with their columns.
    for (y, &input) in order.iter().enumerate() {
        let name = &names[input];
        let mut label: Vec<char> = format!("{name}: ").chars().collect();
        label.extend(line(label_width - (name.len() + 2)));
        canvas.put(0, y as i64, &label, Right)?;
    }
    for y in 0..inputs {
        let mut row = line(inputs * 2 - 1 - y * 2);
        row.push('┐');
        canvas.put(label_width, y as i64, &row, Right)?;
    }
    for (y, &input) in order.iter().enumerate() {
        let column = label_width + inputs * 2 - 1 - y * 2;
        let mut breaks: Vec<usize> = gates
            .iter()
            .flat_map(|gate| &gate.wires)
            .filter(|wire| wire.input == input)
            .map(|wire| base + wire.row)
            .collect();
        breaks.sort_unstable();
        for &row in &breaks {
            canvas.put(column, row as i64, &line(1 + y * 2), Right)?;
        }
        let start = y + 1;
        let last = breaks.last().copied().unwrap_or(start);
        let mut branch = vec!['│'; last + 1 - start];
        for row in breaks {
            branch[row - start] = '├';
        }
        if let Some(end) = branch.last_mut() {
            *end = '└';
        }
        canvas.put(column, start as i64, &branch, Down)?;
    }
    // 5. From the gates to the last one.
    let x = negations + 7;
    let mut bend = gates.len() as i64 / 2;
    for (out_y, gate) in (center..).zip(gates) {
        let rows = (gate.wires[0].row, gate.wires[gate.wires.len() - 1].row);
        let in_y = (base + (rows.0 + rows.1) / 2) as i64;
        let bent = bend.unsigned_abs() as usize;
        canvas.put(x, in_y, &line(bent + 1), Right)?;
        canvas.put(x + bent + 1, out_y, &line(gates.len().saturating_sub(bent)), Right)?;
        let between = vec!['│'; ((in_y - out_y).unsigned_abs() as usize).saturating_sub(1)];
        if in_y < out_y {
            canvas.put(x + bent + 1, in_y, &[&['┐'], between.as_slice(), &['└']].concat(), Down)?;
        } else if in_y > out_y {
            canvas.put(
                x + bent + 1,
                out_y,
                &[&['┌'], between.as_slice(), &['┘']].concat(),
                Down,
            )?;
        }
        bend -= 1;
    }
    let rows = canvas.rows.iter().map(|row| row.iter().collect::<String>().trim_end().to_owned());
    Ok(joined(rows, "\n"))
}
