//! How much may be built.

use crate::{Exception, Outcome, Value};

/// A value that an operator or a function makes at once has at most so many bytes, every occurrence of what is shared
/// counted: below it, nothing that goes over a value takes long.
pub(crate) const MAX_SIZE: usize = 1 << 22;

/// All values that are made for one expression have at most so many bytes together.
const MAX_BUILT: usize = 4 * MAX_SIZE;

/// What the values that expressions make may still take, in bytes as [`Value::size_within`] counts them.
///
/// Values that stand in the text itself are not counted, since they are no larger than the text makes them. Everything
/// else is counted when it is made, so what comes of expressions that share a budget, and the time that it takes, has a
/// bound however often the same list stands in another one.
///
/// ```
/// use spar_python::{Budget, NoNames, evaluate_within, parse};
///
/// let expression = parse("'a' * 1000").unwrap();
/// let mut budget = Budget::new(1500);
/// assert!(evaluate_within(&expression, &mut NoNames, &mut budget).is_ok());
/// assert!(evaluate_within(&expression, &mut NoNames, &mut budget).is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    left: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(MAX_BUILT)
    }
}

impl Budget {
    /// A budget of so many bytes. The default is 16 MiB.
    pub fn new(bytes: usize) -> Self {
        Self { left: bytes }
    }

    /// Takes so many bytes from it.
    pub(crate) fn spend(&mut self, bytes: usize) -> Outcome<()> {
        self.left = self.left.checked_sub(bytes).ok_or_else(too_large)?;
        Ok(())
    }

    /// Takes from it what a value has.
    pub(crate) fn spend_on(&mut self, value: &Value) -> Outcome<()> {
        let bytes = value.size_within(self.left).ok_or_else(too_large)?;
        self.spend(bytes)
    }

    /// Takes from it what so many products or quotients of whole numbers cost that have so many bits: a byte for every
    /// eight products of words, so that numbers that fit into one word cost nothing.
    pub(crate) fn spend_on_products(&mut self, count: u64, one: u64, other: u64) -> Outcome<()> {
        let of_words = (one / 64).saturating_mul(other / 64);
        let bytes = count.saturating_mul(of_words) / 8;
        self.spend(usize::try_from(bytes).unwrap_or(usize::MAX))
    }
}

/// Refuses what has too many bytes to be made at once. It is asked before anything is made.
pub(crate) fn check_size(bytes: usize) -> Outcome<()> {
    if bytes <= MAX_SIZE { Ok(()) } else { Err(too_large()) }
}

/// Bytes of so many values, apart from what they refer to.
pub(crate) fn size_of_values(count: usize) -> usize {
    count.saturating_mul(size_of::<Value>())
}

fn too_large() -> Exception {
    Exception::refused("values of this size are not made here")
}

/// Takes the size of a value from what is left; None where that is not enough.
pub(crate) fn take_size(value: &Value, left: &mut usize) -> Option<()> {
    let mut take = |bytes: usize| {
        *left = left.checked_sub(bytes)?;
        Some(())
    };
    take(size_of::<Value>())?;
    match value {
        Value::Str(text) => take(text.len()),
        Value::Int(number) => take((number.bits() / 8) as usize),
        Value::Opaque(opaque) => take(opaque.repr.len()),
        Value::List(items) | Value::Tuple(items) => {
            items.iter().try_for_each(|item| take_size(item, left))
        }
        Value::Set(items) => items.iter().try_for_each(|item| take_size(item, left)),
        Value::Dict(entries) => entries.iter().try_for_each(|(key, value)| {
            take_size(key, left)?;
            take_size(value, left)
        }),
        _ => Some(()),
    }
}
