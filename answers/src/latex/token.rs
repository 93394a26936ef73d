//! Formulas cut into tokens.

use crate::Unclear;
use crate::expression::{Comparison, Constant, Function, NamedSet};

use super::Units;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// Digits, and what stands behind a decimal point; thousands separators are gone.
    Number {
        digits: String,
        fraction: Option<String>,
    },
    /// A number with an exponent, such as `1e3`.
    Scientific {
        mantissa: String,
        exponent: String,
    },
    Letter(char),
    /// A word of several letters that names nothing else, or the name of a Greek letter.
    Word(String),
    /// What stands in `\text` and the like.
    Text(String),
    Constant(Constant),
    Function(Function),
    NamedSet(NamedSet),
    Comparison(Comparison),
    Approx,
    Plus,
    Minus,
    PlusMinus,
    MinusPlus,
    Times,
    Divide,
    Caret,
    Underscore,
    Bang,
    Percent,
    Degree,
    Comma,
    Semicolon,
    Or,
    And,
    Bar,
    Mid,
    Colon,
    /// `(`, `[`, and what counts as them.
    Open(char),
    Close(char),
    /// Braces that group.
    LeftBrace,
    RightBrace,
    /// Braces of a set.
    SetOpen,
    SetClose,
    FloorOpen,
    FloorClose,
    CeilOpen,
    CeilClose,
    Frac,
    Binom,
    Choose,
    Sqrt,
    Boxed,
    Mod,
    Union,
    Intersection,
    SetMinus,
    BeginMatrix,
    EndMatrix,
    Ampersand,
    NewRow,
}

/// Words behind a number that say of what; longer ones need no list, since no formula has them.
const UNITS: &[&str] = &[
    "acre",
    "acres",
    "am",
    "apples",
    "cc",
    "cent",
    "cents",
    "cm",
    "coins",
    "cubic",
    "day",
    "days",
    "deg",
    "degree",
    "degrees",
    "dm",
    "dollar",
    "dollars",
    "euro",
    "euros",
    "feet",
    "foot",
    "ft",
    "gallon",
    "gallons",
    "gm",
    "gram",
    "grams",
    "ha",
    "hectare",
    "hectares",
    "hour",
    "hours",
    "hr",
    "hrs",
    "inch",
    "inches",
    "joules",
    "kg",
    "kilometers",
    "km",
    "kmh",
    "kmph",
    "lb",
    "lbs",
    "liter",
    "liters",
    "litre",
    "litres",
    "meter",
    "meters",
    "metre",
    "metres",
    "mile",
    "miles",
    "min",
    "minute",
    "minutes",
    "ml",
    "mm",
    "month",
    "months",
    "mph",
    "pm",
    "people",
    "per",
    "point",
    "points",
    "pound",
    "pounds",
    "rupees",
    "sec",
    "second",
    "seconds",
    "sq",
    "square",
    "student",
    "students",
    "unit",
    "units",
    "week",
    "weeks",
    "yard",
    "yards",
    "year",
    "years",
    "yr",
    "yrs",
];
const UNIT_LETTERS: &[char] = &['m', 'g', 's', 'h', 'l'];

const GREEK: &[(&str, char)] = &[
    ("alpha", 'α'),
    ("beta", 'β'),
    ("gamma", 'γ'),
    ("delta", 'δ'),
    ("epsilon", 'ε'),
    ("zeta", 'ζ'),
    ("eta", 'η'),
    ("theta", 'θ'),
    ("iota", 'ι'),
    ("kappa", 'κ'),
    ("lambda", 'λ'),
    ("mu", 'μ'),
    ("nu", 'ν'),
    ("xi", 'ξ'),
    ("rho", 'ρ'),
    ("sigma", 'σ'),
    ("tau", 'τ'),
    ("upsilon", 'υ'),
    ("phi", 'φ'),
    ("chi", 'χ'),
    ("psi", 'ψ'),
    ("omega", 'ω'),
];

/// Whether a single letter of a unit stands behind a number and a space.
pub(super) fn has_unit_letters(text: &str) -> bool {
    let chars: Vec<char> = text.chars().collect();
    (2..chars.len()).any(|at| is_unit_letter(&chars, at))
}

fn is_unit_letter(chars: &[char], at: usize) -> bool {
    let before = chars[..at].iter().rposition(|c| !c.is_whitespace());
    UNIT_LETTERS.contains(&chars[at])
        && chars[at - 1].is_whitespace()
        && before.is_some_and(|at| chars[at].is_ascii_digit() || "})".contains(chars[at]))
        && chars[at + 1..].iter().all(|c| c.is_whitespace() || "$.".contains(*c))
}

/// Cuts a formula into tokens.
pub(super) fn tokens(text: &str, units: Units) -> Result<Vec<Token>, Unclear> {
    let mut lexer =
        Lexer { chars: text.chars().collect(), at: 0, depth: 0, units, out: Vec::new() };
    while lexer.at < lexer.chars.len() {
        lexer.next()?;
    }
    Ok(lexer.out)
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
    /// Of brackets and braces, inside of which a comma separates.
    depth: usize,
    units: Units,
    out: Vec<Token>,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn is_next(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(ahead, c)| self.peek(ahead) == Some(c))
    }

    fn refuse(&self) -> Unclear {
        Unclear::Unreadable { near: self.chars[self.at..].iter().take(20).collect() }
    }

    fn push(&mut self, token: Token, len: usize) {
        match token {
            Token::Open(_) | Token::SetOpen => self.depth += 1,
            Token::Close(_) | Token::SetClose => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.out.push(token);
        self.at += len;
    }

    fn next(&mut self) -> Result<(), Unclear> {
        let Some(c) = self.peek(0) else { return Ok(()) };
        match c {
            _ if c.is_whitespace() => self.at += 1,
            '$' | '~' | '"' | '\'' | '\u{200b}' | '€' | '£' | '¥' => self.at += 1,
            '0'..='9' => self.number(),
            '.' if self.peek(1).is_some_and(|c| c.is_ascii_digit()) => self.number(),
            // A full stop at the end says nothing.
            '.' if self.chars[self.at..].iter().all(|c| c.is_whitespace() || "$.".contains(*c)) => {
                self.at = self.chars.len();
            }
            '\\' => return self.command(),
            'a'..='z' | 'A'..='Z' => self.word(),
            '²' | '³' => {
                let digits = if c == '²' { "2" } else { "3" }.to_owned();
                self.out.push(Token::Caret);
                self.push(Token::Number { digits, fraction: None }, 1);
            }
            _ => {
                let (token, len) = self.symbol(c).ok_or_else(|| self.refuse())?;
                self.push(token, len);
            }
        }
        Ok(())
    }

    fn symbol(&self, c: char) -> Option<(Token, usize)> {
        use Comparison as C;
        let two = |second: char| self.peek(1) == Some(second);
        let one = |token| Some((token, 1));
        match c {
            '+' if two('-') => Some((Token::PlusMinus, 2)),
            '+' => one(Token::Plus),
            '-' | '−' | '–' => one(Token::Minus),
            '±' => one(Token::PlusMinus),
            '∓' => one(Token::MinusPlus),
            '*' if two('*') => Some((Token::Caret, 2)),
            '*' | '×' | '·' | '⋅' => one(Token::Times),
            '/' | '÷' => one(Token::Divide),
            '^' => one(Token::Caret),
            '_' => one(Token::Underscore),
            // `5!=120` is a factorial.
            '!' if two('=') && self.at > 0 && self.chars[self.at - 1].is_whitespace() => {
                Some((Token::Comparison(C::NotEqual), 2))
            }
            '!' => one(Token::Bang),
            '%' => one(Token::Percent),
            '°' => one(Token::Degree),
            ',' => one(Token::Comma),
            ';' => one(Token::Semicolon),
            '|' => one(Token::Bar),
            ':' => one(Token::Colon),
            '(' | '[' => one(Token::Open(c)),
            ')' | ']' => one(Token::Close(c)),
            '{' if self.is_next("{,}") => Some((Token::Comma, 3)),
            '{' => one(Token::LeftBrace),
            '}' => one(Token::RightBrace),
            '&' => one(Token::Ampersand),
            '<' if two('=') => Some((Token::Comparison(C::LessEqual), 2)),
            '<' => one(Token::Comparison(C::Less)),
            '>' if two('=') => Some((Token::Comparison(C::GreaterEqual), 2)),
            '>' => one(Token::Comparison(C::Greater)),
            '=' if two('=') => Some((Token::Comparison(C::Equal), 2)),
            '=' => one(Token::Comparison(C::Equal)),
            '≤' | '⩽' => one(Token::Comparison(C::LessEqual)),
            '≥' | '⩾' => one(Token::Comparison(C::GreaterEqual)),
            '≠' => one(Token::Comparison(C::NotEqual)),
            '≈' => one(Token::Approx),
            '∈' => one(Token::Comparison(C::In)),
            '∪' => one(Token::Union),
            '∩' => one(Token::Intersection),
            '∅' => one(Token::NamedSet(NamedSet::Empty)),
            'π' => one(Token::Constant(Constant::Pi)),
            '∞' => one(Token::Constant(Constant::Infinity)),
            '√' => one(Token::Sqrt),
            'ℝ' => one(Token::NamedSet(NamedSet::Reals)),
            'ℤ' => one(Token::NamedSet(NamedSet::Integers)),
            'ℕ' => one(Token::NamedSet(NamedSet::Naturals)),
            'ℚ' => one(Token::NamedSet(NamedSet::Rationals)),
            'ℂ' => one(Token::NamedSet(NamedSet::Complex)),
            '⟨' => one(Token::Open('(')),
            '⟩' => one(Token::Close(')')),
            _ => {
                let small = c.to_lowercase().next().unwrap_or(c);
                let greek = GREEK.iter().find(|(_, letter)| *letter == small);
                greek.map(|(name, _)| (Token::Word((*name).to_owned()), 1))
            }
        }
    }

    /// A number, its thousands separators left out.
    fn number(&mut self) {
        let (mut digits, mut fraction) = (String::new(), None);
        self.take_digits(&mut digits);
        let is_group_of_three = |lexer: &Self, ahead: usize| {
            let digit = |ahead| lexer.peek(ahead).is_some_and(|c| c.is_ascii_digit());
            (ahead..ahead + 3).all(digit) && !digit(ahead + 3)
        };
        if (1..=3).contains(&digits.len()) && !digits.starts_with('0') {
            loop {
                let separator = ["{,}", "\\,", "\\!", ",\\!", "{,}\\!", ","]
                    .into_iter()
                    .find(|it| self.is_next(it) && is_group_of_three(self, it.chars().count()));
                match separator {
                    // In brackets a comma alone separates what is told.
                    Some(",") if self.depth > 0 => break,
                    Some(separator) => {
                        self.at += separator.chars().count();
                        self.take_digits(&mut digits);
                    }
                    None => break,
                }
            }
        }
        if self.peek(0) == Some('.') && self.peek(1).is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
            let mut behind = String::new();
            self.take_digits(&mut behind);
            fraction = Some(behind);
        }
        let sign = usize::from(matches!(self.peek(1), Some('+' | '-')));
        if matches!(self.peek(0), Some('e' | 'E'))
            && self.peek(1 + sign).is_some_and(|c| c.is_ascii_digit())
        {
            let mut exponent = if self.peek(1) == Some('-') { "-" } else { "" }.to_owned();
            self.at += 1 + sign;
            self.take_digits(&mut exponent);
            let mantissa = match fraction {
                None => digits,
                Some(fraction) => format!("{digits}.{fraction}"),
            };
            self.out.push(Token::Scientific { mantissa, exponent });
            return;
        }
        self.out.push(Token::Number { digits, fraction });
    }

    fn take_digits(&mut self, into: &mut String) {
        while let Some(c) = self.peek(0).filter(char::is_ascii_digit) {
            into.push(c);
            self.at += 1;
        }
    }

    /// Whether what stands before can have a unit.
    fn is_behind_quantity(&self) -> bool {
        matches!(
            self.out.last(),
            Some(
                Token::Number { .. }
                    | Token::Scientific { .. }
                    | Token::RightBrace
                    | Token::Close(_)
                    | Token::Text(_)
            )
        )
    }

    fn word(&mut self) {
        let start = self.at;
        let len = self.chars[start..].iter().take_while(|c| c.is_ascii_alphabetic()).count();
        let word: String = self.chars[start..start + len].iter().collect();
        let small = word.to_ascii_lowercase();
        if len == 1 {
            let is_unit =
                self.units == Units::Letters && start > 1 && is_unit_letter(&self.chars, start);
            let token = match word.as_str() {
                "e" | "E" => Token::Constant(Constant::E),
                "i" => Token::Constant(Constant::I),
                _ if is_unit => Token::Text(word),
                _ => Token::Letter(small.chars().next().unwrap_or('x')),
            };
            return self.push(token, 1);
        }
        let token = match small.as_str() {
            "or" => Token::Or,
            "and" => Token::And,
            "pi" => Token::Constant(Constant::Pi),
            "inf" | "infinity" | "oo" => Token::Constant(Constant::Infinity),
            "sqrt" => Token::Sqrt,
            "percent" | "percentage" | "pct" => Token::Percent,
            "degrees" | "degree" | "deg" if self.is_behind_quantity() => Token::Degree,
            _ if self.is_behind_quantity() && UNITS.contains(&small.as_str()) => Token::Text(small),
            _ if GREEK.iter().any(|(name, _)| *name == small) => Token::Word(small),
            _ => match Function::named(&small) {
                Some(function) => Token::Function(function),
                None if len >= 4 => Token::Word(small),
                None => {
                    // A product of variables.
                    for letter in word.chars() {
                        self.push(
                            match letter {
                                'e' | 'E' => Token::Constant(Constant::E),
                                'i' => Token::Constant(Constant::I),
                                _ => Token::Letter(letter.to_ascii_lowercase()),
                            },
                            1,
                        );
                    }
                    return;
                }
            },
        };
        self.push(token, len);
    }

    fn command(&mut self) -> Result<(), Unclear> {
        use Comparison as C;
        let len = self.chars[self.at + 1..].iter().take_while(|c| c.is_ascii_alphabetic()).count();
        if len == 0 {
            let token = match self.peek(1) {
                Some('{') => Token::SetOpen,
                Some('}') => Token::SetClose,
                Some('%') => Token::Percent,
                Some('|') => Token::Bar,
                Some('\\') => Token::NewRow,
                Some(c) if c.is_whitespace() || "$!,;:>()[]-/&#_".contains(c) => {
                    self.at += 2;
                    return Ok(());
                }
                _ => return Err(self.refuse()),
            };
            self.push(token, 2);
            return Ok(());
        }
        let name: String = self.chars[self.at + 1..self.at + 1 + len].iter().collect();
        let token = match name.as_str() {
            "left" | "right" | "mleft" | "mright" | "big" | "Big" | "bigg" | "Bigg" | "bigl"
            | "bigr" | "Bigl" | "Bigr" | "biggl" | "biggr" | "displaystyle" | "textstyle"
            | "quad" | "qquad" | "limits" | "nolimits" | "rm" | "bf" | "it" | "thinspace"
            | "hspace" | "vec" | "hat" | "overrightarrow" | "angle" | "triangle" => {
                self.at += 1 + len;
                // `\left.` has a bracket that nobody sees.
                let is_bracket = name.starts_with("left") || name.starts_with("right");
                if is_bracket && self.peek(0) == Some('.') {
                    self.at += 1;
                }
                return Ok(());
            }
            "text" | "textbf" | "textit" | "textrm" | "textnormal" | "mbox" | "hbox" | "mathrm"
            | "mathbf" | "mathit" | "mathsf" | "operatorname" | "textsf" | "texttt" | "mathbb"
            | "mathcal" => {
                return self.text(&name, len);
            }
            "frac" | "dfrac" | "tfrac" | "cfrac" => Token::Frac,
            "binom" | "dbinom" | "tbinom" => Token::Binom,
            "choose" => Token::Choose,
            "sqrt" => Token::Sqrt,
            "boxed" | "fbox" => Token::Boxed,
            "pi" => Token::Constant(Constant::Pi),
            "infty" => Token::Constant(Constant::Infinity),
            "imath" => Token::Constant(Constant::I),
            "times" | "cdot" | "ast" => Token::Times,
            "div" => Token::Divide,
            "pm" => Token::PlusMinus,
            "mp" => Token::MinusPlus,
            "le" | "leq" | "leqslant" => Token::Comparison(C::LessEqual),
            "ge" | "geq" | "geqslant" => Token::Comparison(C::GreaterEqual),
            "lt" => Token::Comparison(C::Less),
            "gt" => Token::Comparison(C::Greater),
            "ne" | "neq" => Token::Comparison(C::NotEqual),
            "in" => Token::Comparison(C::In),
            "approx" | "sim" | "simeq" => Token::Approx,
            "cup" => Token::Union,
            "cap" => Token::Intersection,
            "setminus" | "backslash" | "smallsetminus" => Token::SetMinus,
            "emptyset" | "varnothing" => Token::NamedSet(NamedSet::Empty),
            "circ" | "degree" => Token::Degree,
            "mid" => Token::Mid,
            "vert" | "lvert" | "rvert" => Token::Bar,
            "lfloor" => Token::FloorOpen,
            "rfloor" => Token::FloorClose,
            "lceil" => Token::CeilOpen,
            "rceil" => Token::CeilClose,
            "langle" => Token::Open('('),
            "rangle" => Token::Close(')'),
            "lbrace" => Token::SetOpen,
            "rbrace" => Token::SetClose,
            "lbrack" => Token::Open('['),
            "rbrack" => Token::Close(']'),
            "bmod" | "mod" => Token::Mod,
            "lor" | "vee" => Token::Or,
            "land" | "wedge" => Token::And,
            "begin" | "end" => return self.environment(&name, len),
            _ => {
                let small = name.to_ascii_lowercase();
                let bare = small.strip_prefix("var").unwrap_or(&small);
                if GREEK.iter().any(|(greek, _)| *greek == bare) {
                    Token::Word(bare.to_owned())
                } else if let Some(function) = Function::named(&small) {
                    Token::Function(function)
                } else {
                    return Err(self.refuse());
                }
            }
        };
        self.push(token, 1 + len);
        Ok(())
    }

    /// What stands in braces behind a command; absent where there are none.
    fn braced(&mut self, mut at: usize) -> Option<(String, usize)> {
        while self.chars.get(at).is_some_and(|c| c.is_whitespace()) {
            at += 1;
        }
        if self.chars.get(at) != Some(&'{') {
            return None;
        }
        let mut depth = 0;
        for end in at..self.chars.len() {
            match self.chars[end] {
                '{' => depth += 1,
                '}' if depth == 1 => {
                    return Some((self.chars[at + 1..end].iter().collect(), end + 1));
                }
                '}' => depth -= 1,
                _ => {}
            }
        }
        None
    }

    fn text(&mut self, name: &str, len: usize) -> Result<(), Unclear> {
        let Some((inside, end)) = self.braced(self.at + 1 + len) else {
            // Without braces it is a font, as in `\mathbf x`.
            self.at += 1 + len;
            return Ok(());
        };
        let trimmed = inside.trim().trim_matches(|c| ",.~\\".contains(c)).trim();
        let small = trimmed.to_lowercase();
        if name == "mathbb" {
            let set = match trimmed {
                "R" => NamedSet::Reals,
                "Z" => NamedSet::Integers,
                "N" => NamedSet::Naturals,
                "Q" => NamedSet::Rationals,
                "C" => NamedSet::Complex,
                _ => return Err(self.refuse()),
            };
            self.out.push(Token::NamedSet(set));
        } else if small == "or" || small == "and" {
            self.out.push(if small == "or" { Token::Or } else { Token::And });
        } else if matches!(small.as_str(), "percent" | "percentage" | "pct" | "%") {
            self.out.push(Token::Percent);
        } else if let Some(function) = Function::named(&small) {
            self.out.push(Token::Function(function));
        } else if name != "text" && name.starts_with("math") && trimmed.chars().count() == 1 {
            let letter = small.chars().next().unwrap_or('x');
            self.out.push(match (letter, trimmed) {
                ('e', _) => Token::Constant(Constant::E),
                (_, "i") => Token::Constant(Constant::I),
                _ => Token::Letter(letter),
            });
        } else if !small.is_empty() {
            self.out.push(Token::Text(small));
        }
        self.at = end;
        Ok(())
    }

    fn environment(&mut self, name: &str, len: usize) -> Result<(), Unclear> {
        let refused = self.refuse();
        let Some((which, mut end)) = self.braced(self.at + 1 + len) else { return Err(refused) };
        let which = which.trim().trim_end_matches('*').to_owned();
        if !matches!(
            which.as_str(),
            "pmatrix" | "bmatrix" | "matrix" | "Bmatrix" | "smallmatrix" | "array"
        ) {
            return Err(refused);
        }
        if name == "begin" && which == "array" {
            end = self.braced(end).map_or(end, |(_, end)| end);
        }
        self.out.push(if name == "begin" { Token::BeginMatrix } else { Token::EndMatrix });
        self.depth = if name == "begin" { self.depth + 1 } else { self.depth.saturating_sub(1) };
        self.at = end;
        Ok(())
    }
}
