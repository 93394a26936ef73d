//! Sets of real numbers that are made of intervals and points.

use crate::expression::{Bracket, Comparison, Expression, NamedSet};
use crate::{Unclear, scalar};

/// How many pieces a set may have.
const MAX_PIECES: usize = 256;

/// Pieces in their order, of which no two touch.
#[derive(Debug, Clone, Default)]
pub(crate) struct RealSet {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone)]
struct Piece {
    low: End,
    high: End,
}

/// An end of a piece.
#[derive(Debug, Clone)]
struct End {
    at: f64,
    exactly: Expression,
    is_closed: bool,
}

impl RealSet {
    /// The set that a formula is; `None` where it is none, or not one of intervals.
    pub(crate) fn of(expression: &Expression) -> Option<Self> {
        use Expression as E;
        let set = match expression {
            E::Bracketed { open, close, items } => {
                let [low, high] = &items[..] else { return None };
                Self::interval(low, *open == Bracket::Square, high, *close == Bracket::Square)?
            }
            E::Set(items) => {
                let points: Option<Vec<Self>> =
                    items.iter().map(|it| Self::interval(it, true, it, true)).collect();
                Self::joined(points?)
            }
            E::NamedSet(NamedSet::Empty) => Self::default(),
            E::NamedSet(NamedSet::Reals) => Self::all(),
            E::Union(items) => Self::joined(items.iter().map(Self::of).collect::<Option<_>>()?),
            E::Intersection(items) => {
                let outside: Option<Vec<Self>> =
                    items.iter().map(|it| Self::of(it).map(|it| it.complement())).collect();
                Self::joined(outside?).complement()
            }
            E::Difference(of, without) => {
                Self::joined(vec![Self::of(of)?.complement(), Self::of(without)?]).complement()
            }
            E::Relation(first, rest) => Self::of_relation(first, rest)?,
            // One condition or the other.
            E::List { items, is_or: true } => {
                Self::joined(items.iter().map(Self::of).collect::<Option<_>>()?)
            }
            _ => return None,
        };
        (set.pieces.len() <= MAX_PIECES).then_some(set)
    }

    fn all() -> Self {
        let infinity = Expression::Constant(crate::expression::Constant::Infinity);
        Self::interval(&infinity.clone().negative(), false, &infinity, false).unwrap_or_default()
    }

    fn interval(
        low: &Expression,
        low_closed: bool,
        high: &Expression,
        high_closed: bool,
    ) -> Option<Self> {
        let end = |exactly: &Expression, is_closed: bool| {
            let at = scalar::real(exactly)?;
            Some(End { at, exactly: exactly.clone(), is_closed: is_closed && at.is_finite() })
        };
        let (low, high) = (end(low, low_closed)?, end(high, high_closed)?);
        let is_empty =
            low.at > high.at || (low.at == high.at && !(low.is_closed && high.is_closed));
        (!is_empty).then(|| Self { pieces: vec![Piece { low, high }] })
    }

    /// What a chain such as `1 < x ≤ 2` says of its one variable.
    fn of_relation(first: &Expression, rest: &[(Comparison, Expression)]) -> Option<Self> {
        if let [(Comparison::In, set)] = rest {
            return Self::of(set).filter(|_| matches!(first, Expression::Variable(_)));
        }
        let mut outside = Vec::new();
        let mut left = first;
        let mut variable: Option<&Expression> = None;
        let infinity = Expression::Constant(crate::expression::Constant::Infinity);
        for (comparison, right) in rest {
            let (name, comparison, bound) = match (left, right) {
                (Expression::Variable(_), bound) => (left, *comparison, bound),
                (bound, Expression::Variable(_)) => (right, comparison.flipped(), bound),
                _ => return None,
            };
            if variable.is_some_and(|known| known != name) {
                return None;
            }
            variable = Some(name);
            let below = infinity.clone().negative();
            let allowed = match comparison {
                Comparison::Less => Self::interval(&below, false, bound, false)?,
                Comparison::LessEqual => Self::interval(&below, false, bound, true)?,
                Comparison::Greater => Self::interval(bound, false, &infinity, false)?,
                Comparison::GreaterEqual => Self::interval(bound, true, &infinity, false)?,
                Comparison::NotEqual => Self::interval(bound, true, bound, true)?.complement(),
                Comparison::Equal | Comparison::In => return None,
            };
            outside.push(allowed.complement());
            left = right;
        }
        Some(Self::joined(outside).complement())
    }

    fn joined(sets: Vec<Self>) -> Self {
        let mut pieces: Vec<Piece> = sets.into_iter().flat_map(|set| set.pieces).collect();
        pieces.sort_by(|a, b| {
            a.low.at.total_cmp(&b.low.at).then(b.low.is_closed.cmp(&a.low.is_closed))
        });
        let mut joined: Vec<Piece> = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let Some(last) = joined.last_mut() else {
                joined.push(piece);
                continue;
            };
            let touches = piece.low.at < last.high.at
                || (piece.low.at == last.high.at && (piece.low.is_closed || last.high.is_closed));
            if !touches {
                joined.push(piece);
            } else if piece.high.at > last.high.at
                || (piece.high.at == last.high.at && piece.high.is_closed)
            {
                last.high = piece.high;
            }
        }
        Self { pieces: joined }
    }

    fn complement(&self) -> Self {
        let infinity = |at: f64| {
            let exactly = Expression::Constant(crate::expression::Constant::Infinity);
            let exactly = if at > 0.0 { exactly } else { exactly.negative() };
            End { at, exactly, is_closed: false }
        };
        let turned =
            |end: &End| End { is_closed: !end.is_closed && end.at.is_finite(), ..end.clone() };
        let mut pieces = Vec::with_capacity(self.pieces.len() + 1);
        let mut low = infinity(f64::NEG_INFINITY);
        for piece in &self.pieces {
            let high = turned(&piece.low);
            if low.at < high.at || (low.at == high.at && low.is_closed && high.is_closed) {
                pieces.push(Piece { low, high });
            }
            low = turned(&piece.high);
        }
        if low.at < f64::INFINITY {
            pieces.push(Piece { low, high: infinity(f64::INFINITY) });
        }
        Self { pieces }
    }

    /// Whether two are one set.
    pub(crate) fn is_same(&self, other: &Self) -> Result<bool, Unclear> {
        if self.pieces.len() != other.pieces.len() {
            return Ok(false);
        }
        for (a, b) in self.pieces.iter().zip(&other.pieces) {
            for (a, b) in [(&a.low, &b.low), (&a.high, &b.high)] {
                if a.is_closed != b.is_closed || !scalar::are_equal(&a.exactly, &b.exactly)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
