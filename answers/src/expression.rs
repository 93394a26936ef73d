//! What an answer says, as a tree.

use num_bigint::BigInt;
use num_rational::BigRational;

/// A formula, or what several of them make up.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expression {
    /// A number; `is_decimal` where it was written with a decimal point, and so may be rounded.
    Number {
        value: BigRational,
        is_decimal: bool,
    },
    Constant(Constant),
    /// A variable or a word, in small letters.
    Variable(String),
    Sum(Vec<Expression>),
    Product(Vec<Expression>),
    Negative(Box<Expression>),
    Quotient(Box<Expression>, Box<Expression>),
    Power(Box<Expression>, Box<Expression>),
    /// The root with an index of something.
    Root {
        index: Box<Expression>,
        of: Box<Expression>,
    },
    Call(Function, Vec<Expression>),
    /// Hundredths.
    Percent(Box<Expression>),
    /// An angle in degrees, which counts as one inside trigonometric functions and as a bare number elsewhere.
    Degrees(Box<Expression>),
    /// Rows of equal length.
    Matrix(Vec<Vec<Expression>>),
    /// What stands in round or square brackets, two or more: a tuple, a point or an interval.
    Bracketed {
        open: Bracket,
        close: Bracket,
        items: Vec<Expression>,
    },
    /// What stands in braces.
    Set(Vec<Expression>),
    /// What is told one after another, without brackets; `is_or` where one "or" stands between them.
    List {
        items: Vec<Expression>,
        is_or: bool,
    },
    /// A chain of relations.
    Relation(Box<Expression>, Vec<(Comparison, Expression)>),
    Union(Vec<Expression>),
    Intersection(Vec<Expression>),
    Difference(Box<Expression>, Box<Expression>),
    NamedSet(NamedSet),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Constant {
    Pi,
    E,
    I,
    Infinity,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bracket {
    Round,
    Square,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamedSet {
    Naturals,
    Integers,
    Rationals,
    Reals,
    Complex,
    Empty,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
}

impl Comparison {
    /// The same with its sides exchanged.
    pub(crate) fn flipped(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessEqual => Self::GreaterEqual,
            Self::Greater => Self::Less,
            Self::GreaterEqual => Self::LessEqual,
            Self::Equal | Self::NotEqual | Self::In => self,
        }
    }

    /// Whether it makes an equation; that something is in a set says what it is.
    pub(crate) fn is_equation(self) -> bool {
        matches!(self, Self::Equal | Self::In)
    }
}

/// Functions that have a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Sin,
    Cos,
    Tan,
    Cot,
    Sec,
    Csc,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Exp,
    /// Natural logarithm.
    Ln,
    /// Logarithm of the second argument to the base of the first.
    Log,
    Abs,
    Floor,
    Ceil,
    Factorial,
    Binomial,
    Gcd,
    Lcm,
    Max,
    Min,
    /// Remainder of the first argument by the second.
    Mod,
}

impl Function {
    /// The function of a name as LaTeX has it, the backslash aside.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "sin" => Self::Sin,
            "cos" => Self::Cos,
            "tan" | "tg" => Self::Tan,
            "cot" | "ctg" => Self::Cot,
            "sec" => Self::Sec,
            "csc" => Self::Csc,
            "arcsin" | "asin" => Self::Asin,
            "arccos" | "acos" => Self::Acos,
            "arctan" | "atan" => Self::Atan,
            "sinh" => Self::Sinh,
            "cosh" => Self::Cosh,
            "tanh" => Self::Tanh,
            "exp" => Self::Exp,
            "ln" => Self::Ln,
            "log" | "lg" => Self::Log,
            "abs" => Self::Abs,
            "floor" => Self::Floor,
            "ceil" => Self::Ceil,
            "gcd" => Self::Gcd,
            "lcm" => Self::Lcm,
            "max" => Self::Max,
            "min" => Self::Min,
            _ => return None,
        })
    }

    /// What it is where `-1` stands at its name, which is its inverse and no power.
    pub(crate) fn inverse(self) -> Option<Self> {
        match self {
            Self::Sin => Some(Self::Asin),
            Self::Cos => Some(Self::Acos),
            Self::Tan => Some(Self::Atan),
            _ => None,
        }
    }

    /// Whether an argument may be an angle.
    pub(crate) fn takes_angles(self) -> bool {
        matches!(self, Self::Sin | Self::Cos | Self::Tan | Self::Cot | Self::Sec | Self::Csc)
    }

    /// Whether it takes several arguments in brackets.
    pub(crate) fn takes_several(self) -> bool {
        matches!(self, Self::Gcd | Self::Lcm | Self::Max | Self::Min)
    }
}

impl Expression {
    pub(crate) fn integer(value: impl Into<BigInt>) -> Self {
        Self::Number { value: BigRational::from_integer(value.into()), is_decimal: false }
    }

    pub(crate) fn negative(self) -> Self {
        match self {
            Self::Number { value, is_decimal } => Self::Number { value: -value, is_decimal },
            other => Self::Negative(Box::new(other)),
        }
    }

    /// What it is made of.
    pub(crate) fn parts(&self) -> Vec<&Self> {
        match self {
            Self::Number { .. } | Self::Constant(_) | Self::Variable(_) | Self::NamedSet(_) => {
                Vec::new()
            }
            Self::Negative(it) | Self::Percent(it) | Self::Degrees(it) => vec![it],
            Self::Quotient(a, b) | Self::Power(a, b) | Self::Difference(a, b) => vec![a, b],
            Self::Root { index, of } => vec![index, of],
            Self::Sum(items)
            | Self::Product(items)
            | Self::Call(_, items)
            | Self::Bracketed { items, .. }
            | Self::Set(items)
            | Self::List { items, .. }
            | Self::Union(items)
            | Self::Intersection(items) => items.iter().collect(),
            Self::Matrix(rows) => rows.iter().flatten().collect(),
            Self::Relation(first, rest) => {
                std::iter::once(&**first).chain(rest.iter().map(|(_, it)| it)).collect()
            }
        }
    }

    /// Whether it is one value, known or not, rather than a collection or a statement.
    pub(crate) fn is_scalar(&self) -> bool {
        match self {
            Self::Matrix(_)
            | Self::Bracketed { .. }
            | Self::Set(_)
            | Self::List { .. }
            | Self::Relation(..)
            | Self::Union(_)
            | Self::Intersection(_)
            | Self::Difference(..)
            | Self::NamedSet(_) => false,
            other => other.parts().into_iter().all(Self::is_scalar),
        }
    }

    /// Whether nothing but variables occurs in it, as in what an assignment names.
    pub(crate) fn is_of_variables(&self) -> bool {
        match self {
            Self::Variable(_) | Self::Constant(Constant::E | Constant::I) => true,
            Self::Product(items) | Self::Bracketed { items, .. } | Self::List { items, .. } => {
                items.iter().all(Self::is_of_variables)
            }
            Self::Quotient(a, b) => a.is_of_variables() && b.is_of_variables(),
            // The inverse of a function, as in `f^{-1}(x) = 2x`.
            Self::Power(of, exponent) => {
                matches!(&**of, Self::Variable(name) if ["f", "g", "h"].contains(&&**name))
                    && **exponent == Self::integer(-1)
            }
            _ => false,
        }
    }

    /// Adds the names of its variables.
    pub(crate) fn collect_variables<'a>(&'a self, into: &mut Vec<&'a str>) {
        if let Self::Variable(name) = self
            && !into.contains(&name.as_str())
        {
            into.push(name);
        }
        for part in self.parts() {
            part.collect_variables(into);
        }
    }

    /// Whether it has no variable.
    pub(crate) fn is_constant(&self) -> bool {
        !matches!(self, Self::Variable(_)) && self.parts().into_iter().all(Self::is_constant)
    }
}
