//! Small programs as trees, which both languages are written from.

/// A name of a function or variable.
pub(super) type Name = &'static str;

/// Functions, of which the last one is what tests call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) functions: Vec<Function>,
}

/// A function of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: Name,
    pub(super) parameters: Vec<(Name, Type)>,
    pub(super) returns: Type,
    pub(super) body: Vec<Statement>,
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Int,
    Bool,
    Text,
    Ints,
    Texts,
    /// Whole numbers by text.
    Counts,
}

/// One line, or a block with the line that begins it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Statement {
    /// The first assignment of a name.
    Let(Name, Expression),
    /// A further one.
    Set(Name, Expression),
    /// `name operator= expression`
    Change(Name, Binary, Expression),
    /// Puts a value behind those of a list.
    Append(Name, Expression),
    /// Sets the number of a text.
    Put(Name, Expression, Expression),
    If(Expression, Vec<Self>, Vec<Self>),
    /// Goes through a list, the letters of a text, or the keys of counts.
    Each(Name, Expression, Vec<Self>),
    /// Goes from a whole number to the one before another.
    Range(Name, Expression, Expression, Vec<Self>),
    While(Expression, Vec<Self>),
    Return(Expression),
    Break,
    Continue,
}

/// What has a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expression {
    Int(i64),
    Text(&'static str),
    Bool(bool),
    /// A list or counts with nothing in it.
    Empty(Type),
    Name(Name),
    Binary(Binary, Box<Self>, Box<Self>),
    Compare(Compare, Box<Self>, Box<Self>),
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
    Not(Box<Self>),
    /// Of a list or text, counted from 0.
    Item(Box<Self>, Box<Self>),
    Length(Box<Self>),
    Min(Box<Self>, Box<Self>),
    Max(Box<Self>, Box<Self>),
    Abs(Box<Self>),
    /// The number of a text in counts, or 0.
    Count(Box<Self>, Box<Self>),
    /// A function of the program.
    Call(Name, Vec<Self>),
}

/// Arithmetic; `Add` joins texts as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Subtract,
    Multiply,
    /// Rounded down.
    Divide,
    /// The rest has the sign of the divisor in Python, and of the dividend in JavaScript.
    Modulo,
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compare {
    Below,
    AtMost,
    Above,
    AtLeast,
    Equal,
    Other,
}

impl Program {
    /// What tests call.
    pub(super) fn entry(&self) -> &Function {
        self.functions.last().expect("a program has a function")
    }

    /// The function of a name.
    pub(super) fn function(&self, name: Name) -> Option<&Function> {
        self.functions.iter().find(|function| function.name == name)
    }
}

impl Compare {
    pub(super) const ALL: [Self; 6] =
        [Self::Below, Self::AtMost, Self::Above, Self::AtLeast, Self::Equal, Self::Other];

    /// Behind "is".
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Below => "below",
            Self::AtMost => "at most",
            Self::Above => "above",
            Self::AtLeast => "at least",
            Self::Equal => "equal to",
            Self::Other => "other than",
        }
    }

    /// What is true where this is not.
    pub(super) fn negated(self) -> Self {
        match self {
            Self::Below => Self::AtLeast,
            Self::AtMost => Self::Above,
            Self::Above => Self::AtMost,
            Self::AtLeast => Self::Below,
            Self::Equal => Self::Other,
            Self::Other => Self::Equal,
        }
    }
}

pub(super) fn name(name: Name) -> Expression {
    Expression::Name(name)
}

pub(super) fn int(number: i64) -> Expression {
    Expression::Int(number)
}

pub(super) fn binary(operator: Binary, left: Expression, right: Expression) -> Expression {
    Expression::Binary(operator, Box::new(left), Box::new(right))
}

pub(super) fn add(left: Expression, right: Expression) -> Expression {
    binary(Binary::Add, left, right)
}

pub(super) fn compare(operator: Compare, left: Expression, right: Expression) -> Expression {
    Expression::Compare(operator, Box::new(left), Box::new(right))
}

pub(super) fn item(of: Expression, place: Expression) -> Expression {
    Expression::Item(Box::new(of), Box::new(place))
}

pub(super) fn length(of: Expression) -> Expression {
    Expression::Length(Box::new(of))
}
