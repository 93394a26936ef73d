//! Conclusions from premises.

use std::collections::BTreeSet;

use crate::prelude::*;

const OPERATORS: [char; 5] = ['∧', '∨', '¬', '→', '↔'];
/// Characters of an answer beyond which it is not read.
const LONGEST: usize = 2_000;
/// Variables of premises and an answer together beyond which it is not judged.
const MOST_VARIABLES: usize = 16;

options! {
    /// Options of `propositional_logic`.
    PropositionalLogicOptions {
        /// Fewest variables, at least 1. Default 2.
        min_vars: i64 = 2,
        /// Most variables, up to 10. Default 4.
        max_vars: i64 = 4,
        /// Fewest premises, at least 1. Default 2.
        min_statements: i64 = 2,
        /// Most premises, up to 100. Default 4.
        max_statements: i64 = 4,
        /// Least depth of a premise, at least 1. Default 1.
        min_complexity: i64 = 1,
        /// Largest depth of a premise, up to 8. Default 3.
        max_complexity: i64 = 3,
    }
    |given, problems| {
        problems.span(("min_vars", "max_vars"), (given.min_vars, given.max_vars), (1, 10));
        problems.span(("min_statements", "max_statements"), (given.min_statements, given.max_statements), (1, 100));
        problems.span(("min_complexity", "max_complexity"), (given.min_complexity, given.max_complexity), (1, 8));
    }
}

/// Premises, from which a conclusion is to be drawn. Any that follows and does not hold anyway is worth 1.
pub(crate) struct PropositionalLogic;

#[derive(Debug, Clone)]
enum Expression {
    Variable(String),
    Not(Box<Expression>),
    Binary(char, Box<Expression>, Box<Expression>),
}

use Expression::{Binary, Not, Variable};

impl Generator for PropositionalLogic {
    type Options = PropositionalLogicOptions;

    fn item(options: &PropositionalLogicOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let count = rng.int(options.min_vars, options.max_vars)?;
        let variables: Vec<String> = ('P'..='Y').take(count as usize).map(String::from).collect();
        let statements = rng.int(options.min_statements, options.max_statements)?;
        let mut premises = Vec::new();
        for _ in 0..statements {
            let depth = rng.int(options.min_complexity, options.max_complexity)?;
            premises.push(draw(rng, &variables, depth)?);
        }
        let mut conclusion = Variable(variables[0].clone());
        for _ in 0..100 {
            let candidate = draw(rng, &variables, 2)?.without_implication();
            if follows(&premises, &candidate) && !candidate.is_trivial() {
                conclusion = candidate;
                break;
            }
        }
        let told: Vec<String> = premises.iter().map(Expression::to_string).collect();
        let mut question = "The following question is a propositional logic reasoning question.\n\nIn the question we provide a list of premises. The task is to infer a correct conclusion from the premise.\n\nFORMAT INSTRUCTIONS:\n- Return the conclusion logic statement, as your final answer.\n- Use the following notation to denote symbols\n    - OR = ∨\n    - AND = ∧\n    - IMPLIES = →\n    - IFF = ↔\n    - NOT = ¬\n\nHere is the question:\nGiven:\n".to_owned();
        for (place, premise) in told.iter().enumerate() {
            question.push_str(&format!("{}. {premise}\n.", place + 1));
        }
        question.push_str("What can we conclude from the above statements?");
        Ok(Item::without_answer(question)
            .with("premises", told)
            .with("variables", variables)
            .with("example_answer", conclusion.to_string()))
    }

    fn score(_: &PropositionalLogicOptions, answer: Option<&str>, item: &Item) -> f64 {
        let Some(answer) = answer.filter(|answer| answer.len() <= LONGEST) else { return 0.0 };
        let entries =
            |name: &str| item.fact(name).as_array().into_iter().flatten().filter_map(Value::as_str);
        let is_known = |letter: char| entries("variables").any(|name| name.chars().eq([letter]));
        if answer.chars().any(|letter| letter.is_ascii_uppercase() && !is_known(letter)) {
            return 0.0;
        }
        let read = |text: &str| parse(&text.chars().collect::<Vec<char>>(), 0);
        let premises: Option<Vec<Expression>> = entries("premises").map(read).collect();
        let (Some(premises), Some(given)) = (premises, read(answer)) else { return 0.0 };
        if variables_of(premises.iter().chain([&given])).len() > MOST_VARIABLES {
            return 0.0;
        }
        match follows(&premises, &given) {
            true if given.is_trivial() => 0.25,
            true => 1.0,
            false => 0.05,
        }
    }
}

fn draw(rng: &mut Random, variables: &[String], depth: i64) -> Result<Expression, ItemError> {
    if depth <= 1 {
        return Ok(Variable(rng.choice(variables)?.clone()));
    }
    let operator = *rng.choice(&OPERATORS)?;
    let left = Box::new(draw(rng, variables, depth - 1)?);
    if operator == '¬' {
        return Ok(Not(left));
    }
    Ok(Binary(operator, left, Box::new(draw(rng, variables, depth - 1)?)))
}

/// All names of variables, in order.
fn variables_of<'e>(expressions: impl Iterator<Item = &'e Expression>) -> Vec<&'e str> {
    let mut names = BTreeSet::new();
    let mut open: Vec<&Expression> = expressions.collect();
    while let Some(expression) = open.pop() {
        match expression {
            Variable(name) => {
                names.insert(name.as_str());
            }
            Not(inside) => open.push(inside),
            Binary(_, left, right) => open.extend([&**left, &**right]),
        }
    }
    names.into_iter().collect()
}

/// Whether a conclusion is true wherever all premises are.
fn follows(premises: &[Expression], conclusion: &Expression) -> bool {
    let names = variables_of(premises.iter().chain([conclusion]));
    (0..1_u32 << names.len()).all(|values| {
        !premises.iter().all(|premise| premise.value(&names, values))
            || conclusion.value(&names, values)
    })
}

impl Expression {
    fn value(&self, names: &[&str], values: u32) -> bool {
        match self {
            Variable(name) => {
                let place = names.binary_search(&name.as_str()).unwrap_or_default();
                values >> place & 1 == 1
            }
            Not(inside) => !inside.value(names, values),
            Binary(operator, left, right) => {
                let (left, right) = (left.value(names, values), || right.value(names, values));
                match operator {
                    '∧' => left && right(),
                    '∨' => left || right(),
                    '→' => !left || right(),
                    _ => left == right(),
                }
            }
        }
    }

    /// Whether it is a variable, or true whatever its variables are.
    fn is_trivial(&self) -> bool {
        if matches!(self, Variable(_)) {
            return true;
        }
        let names = variables_of([self].into_iter());
        (0..1_u32 << names.len()).all(|values| self.value(&names, values))
    }

    /// Of an expression of two variables: `p → q` as `¬p ∨ q`.
    fn without_implication(self) -> Self {
        match self {
            Binary('→', left, right) => Binary('∨', Box::new(Not(left)), right),
            other => other,
        }
    }
}

impl std::fmt::Display for Expression {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Variable(name) => formatter.write_str(name),
            Not(inside) => write!(formatter, "¬{inside}"),
            Binary(operator, left, right) => write!(formatter, "({left} {operator} {right})"),
        }
    }
}

/// The expression of a text by the package's rules: the last operator of the weakest kind outside of parentheses divides
/// it. Absent where a part is empty, or parts are nested too deep.
fn parse(text: &[char], depth: usize) -> Option<Expression> {
    let is_space = |c: &char| spar_python::characters::is_space(*c);
    let start = text.iter().position(|c| !is_space(c))?;
    let end = text.iter().rposition(|c| !is_space(c))? + 1;
    let text = &text[start..end];
    if depth > 200 {
        return None;
    }
    if let ['(', inside @ .., ')'] = text {
        let mut level = 0;
        let closes_early = inside.iter().any(|c| {
            level += i32::from(*c == '(') - i32::from(*c == ')');
            level < 0
        });
        if level == 0 && !closes_early {
            return parse(inside, depth + 1);
        }
    }
    for operator in ['↔', '→', '∨', '∧'] {
        let mut level = 0;
        for at in (0..text.len()).rev() {
            match text[at] {
                ')' => level += 1,
                '(' => level -= 1,
                c if level == 0 && c == operator => {
                    let left = parse(&text[..at], depth + 1)?;
                    let right = parse(&text[at + 1..], depth + 1)?;
                    return Some(Binary(operator, Box::new(left), Box::new(right)));
                }
                _ => {}
            }
        }
    }
    if let ['¬', inside @ ..] = text {
        return Some(Not(Box::new(parse(inside, depth + 1)?)));
    }
    Some(Variable(text.iter().collect()))
}
