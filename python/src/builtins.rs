//! Functions that are always there.

use std::sync::Arc;

use num_bigint::BigInt;
use num_traits::{One, ToPrimitive, Zero};

use crate::arithmetic::{BinaryOperator, absolute, binary, floor_divide};
use crate::compare::{maximum, minimum, sorted};
use crate::convert::{round, to_float, to_int};
use crate::evaluate::Arguments;
use crate::repr::{repr, to_str};
use crate::sequence::{iterate, length, to_list};
use crate::sum::sum;
use crate::{Budget, Dict, Exception, Outcome, Set, Value};

/// The functions that are carried out.
const CARRIED_OUT: [&str; 24] = [
    "abs",
    "bool",
    "chr",
    "dict",
    "divmod",
    "float",
    "frozenset",
    "int",
    "len",
    "list",
    "max",
    "min",
    "ord",
    "pow",
    "print",
    "repr",
    "round",
    "set",
    "sorted",
    "str",
    "sum",
    "tuple",
    "any",
    "all",
];

/// Those that CPython has too.
const REFUSED: [&str; 52] = [
    "__import__",
    "aiter",
    "anext",
    "ascii",
    "bin",
    "breakpoint",
    "bytearray",
    "bytes",
    "callable",
    "classmethod",
    "compile",
    "complex",
    "delattr",
    "dir",
    "enumerate",
    "eval",
    "exec",
    "exit",
    "filter",
    "format",
    "getattr",
    "globals",
    "hasattr",
    "hash",
    "help",
    "hex",
    "id",
    "input",
    "isinstance",
    "issubclass",
    "iter",
    "locals",
    "map",
    "memoryview",
    "next",
    "object",
    "oct",
    "open",
    "property",
    "quit",
    "range",
    "reversed",
    "setattr",
    "slice",
    "staticmethod",
    "super",
    "type",
    "vars",
    "zip",
    "copyright",
    "credits",
    "license",
];

/// Whether Python has a function of this name, carried out here or not.
pub(crate) fn is_builtin(name: &str) -> bool {
    CARRIED_OUT.contains(&name) || REFUSED.contains(&name)
}

/// Calls one of them. What takes longer than its result is large is paid from the budget.
pub(crate) fn call_builtin(
    name: &str,
    arguments: &Arguments,
    budget: &mut Budget,
) -> Outcome<Value> {
    if !CARRIED_OUT.contains(&name) {
        return Err(Exception::refused(format_args!("`{name}` is not carried out here")));
    }
    if name == "print" {
        let is_known = |name: &str| matches!(name, "sep" | "end" | "file" | "flush");
        return match arguments.keyword.iter().find(|(name, _)| !is_known(name)) {
            Some((name, _)) => Err(Exception::type_error(format_args!(
                "'{name}' is an invalid keyword argument for print()"
            ))),
            None => Ok(Value::None),
        };
    }
    if name == "dict" {
        return make_dict(arguments);
    }
    if name == "sorted" {
        return sort(arguments);
    }
    let takes_names = matches!(name, "round" | "sum");
    if !arguments.keyword.is_empty() && !takes_names {
        return match name {
            "min" | "max" | "int" | "str" | "pow" => {
                Err(Exception::refused(format_args!("`{name}` takes no names of arguments here")))
            }
            _ => Err(Exception::type_error(format_args!("{name}() takes no keyword arguments"))),
        };
    }
    let given = &*arguments.positional;
    match (name, given) {
        ("abs", [value]) => absolute(value),
        ("any", [items]) => Ok(Value::Bool(iterate(items)?.iter().any(Value::is_true))),
        ("all", [items]) => Ok(Value::Bool(iterate(items)?.iter().all(Value::is_true))),
        ("bool", []) => Ok(Value::Bool(false)),
        ("bool", [value]) => Ok(Value::Bool(value.is_true())),
        ("chr", [value]) => character(value),
        ("ord", [value]) => code(value),
        ("divmod", [left, right]) => Ok(Value::tuple([
            binary(BinaryOperator::FloorDivide, left, right)?,
            binary(BinaryOperator::Remainder, left, right)?,
        ])),
        ("float", []) => Ok(Value::Float(0.0)),
        ("float", [value]) => to_float(value).map(Value::Float),
        ("int", []) => Ok(Value::from(0_i64)),
        ("int", [value]) => to_int(value).map(Value::from),
        ("len", [value]) => length(value).map(Value::from),
        ("list", []) => Ok(Value::list([])),
        ("list", [value]) => to_list(value),
        ("tuple", []) => Ok(Value::tuple([])),
        ("tuple", [value]) => Ok(Value::Tuple(Arc::new(iterate(value)?))),
        ("set", []) => Ok(Value::Set(Arc::default())),
        ("set", [value]) => {
            let mut set = Set::default();
            for item in iterate(value)? {
                set.insert(item)?;
            }
            Ok(Value::Set(Arc::new(set)))
        }
        ("min" | "max", []) => {
            Err(Exception::type_error(format_args!("{name} expected at least 1 argument, got 0")))
        }
        ("min", [items]) => minimum(items),
        ("max", [items]) => maximum(items),
        ("min", items) => minimum(&Value::list(items.iter().cloned())),
        ("max", items) => maximum(&Value::list(items.iter().cloned())),
        ("pow", [base, exponent]) => binary(BinaryOperator::Power, base, exponent),
        ("pow", [base, exponent, modulus]) => power_modulo([base, exponent, modulus], budget),
        ("repr", [value]) => repr(value).map(Value::from),
        ("round", _) => {
            let digits = arguments.keyword.iter().find(|(name, _)| name == "ndigits");
            if let [Value::Int(number), ..] = given {
                budget.spend_on_products(1, number.bits(), number.bits())?;
            }
            match (given, digits) {
                ([value], None) => round(value, &Value::None),
                ([value, digits], None) | ([value], Some((_, digits))) => round(value, digits),
                _ => Err(Exception::refused("`round` takes a number and its digits here")),
            }
        }
        ("str", []) => Ok(Value::from("")),
        ("str", [value]) => to_str(value).map(Value::from),
        ("sum", _) => {
            let start = arguments.keyword.iter().find(|(name, _)| name == "start");
            match (given, start) {
                ([], _) => Err(Exception::type_error(
                    "sum() takes at least 1 positional argument (0 given)",
                )),
                ([items], None) => sum(&iterate(items)?, Value::from(0_i64)),
                ([items, start], None) | ([items], Some((_, start))) => {
                    sum(&iterate(items)?, start.clone())
                }
                _ => Err(Exception::refused("`sum` takes items and a start here")),
            }
        }
        ("abs" | "chr" | "ord" | "len" | "repr" | "any" | "all", given) => {
            Err(Exception::type_error(format_args!(
                "{name}() takes exactly one argument ({} given)",
                given.len()
            )))
        }
        ("float" | "bool" | "list" | "tuple" | "set" | "frozenset", given) if given.len() > 1 => {
            Err(Exception::type_error(format_args!(
                "{name} expected at most 1 argument, got {}",
                given.len()
            )))
        }
        _ => Err(Exception::refused(format_args!(
            "`{name}` with these arguments is not carried out here"
        ))),
    }
}

fn make_dict(arguments: &Arguments) -> Outcome<Value> {
    let mut dict = match &*arguments.positional {
        [] => Dict::default(),
        [Value::Dict(dict)] => (**dict).clone(),
        [items] => {
            let mut dict = Dict::default();
            for (at, item) in iterate(items)?.iter().enumerate() {
                let Ok(length) = length(item) else {
                    return Err(Exception::type_error(format_args!(
                        "cannot convert dictionary update sequence element #{at} to a sequence"
                    )));
                };
                // Asked before its elements are made.
                if length != 2 {
                    return Err(Exception::value_error(format_args!(
                        "dictionary update sequence element #{at} has length {length}; 2 is required"
                    )));
                }
                let pair = iterate(item)?;
                let [key, value] = &*pair else { unreachable!("its length is 2") };
                dict.insert(key.clone(), value.clone())?;
            }
            dict
        }
        more => {
            return Err(Exception::type_error(format_args!(
                "dict expected at most 1 argument, got {}",
                more.len()
            )));
        }
    };
    for (name, value) in &arguments.keyword {
        dict.insert_str(name.as_str(), value.clone());
    }
    Ok(Value::Dict(Arc::new(dict)))
}

fn sort(arguments: &Arguments) -> Outcome<Value> {
    let [items] = &*arguments.positional else {
        return Err(Exception::type_error(format_args!(
            "sorted expected 1 argument, got {}",
            arguments.positional.len()
        )));
    };
    let mut is_reversed = false;
    for (name, value) in &arguments.keyword {
        if name != "reverse" {
            return Err(Exception::refused("`sorted` takes items and `reverse` here"));
        }
        is_reversed = value.is_true();
    }
    let mut items = iterate(items)?;
    if is_reversed {
        // A reversed order keeps equals as they stood.
        items.reverse();
        items = sorted(items)?;
        items.reverse();
    } else {
        items = sorted(items)?;
    }
    Ok(Value::List(Arc::new(items)))
}

fn character(value: &Value) -> Outcome<Value> {
    let Some(code) = value.as_int() else {
        return Err(Exception::type_error(format_args!(
            "'{}' object cannot be interpreted as an integer",
            value.type_name()
        )));
    };
    match code.to_u32() {
        Some(code @ 0..=0x10_ffff) => char::from_u32(code)
            .map(|character| Value::from(character.to_string()))
            .ok_or_else(|| Exception::refused("lone surrogates are not made here")),
        _ => Err(Exception::value_error("chr() arg not in range(0x110000)")),
    }
}

fn code(value: &Value) -> Outcome<Value> {
    let Value::Str(text) = value else {
        return Err(Exception::type_error(format_args!(
            "ord() expected string of length 1, but {} found",
            value.type_name()
        )));
    };
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(only), None) => Ok(Value::from(i64::from(u32::from(only)))),
        _ => Err(Exception::type_error(format_args!(
            "ord() expected a character, but string of length {} found",
            text.chars().count()
        ))),
    }
}

fn power_modulo(numbers: [&Value; 3], budget: &mut Budget) -> Outcome<Value> {
    let [Some(base), Some(exponent), Some(modulus)] = numbers.map(Value::as_int) else {
        return Err(Exception::refused("`pow` with a modulus takes whole numbers here"));
    };
    if modulus.is_zero() {
        return Err(Exception::value_error("pow() 3rd argument cannot be 0"));
    }
    if exponent < BigInt::zero() {
        return Err(Exception::refused("inverses are not taken here"));
    }
    // Every bit of the exponent multiplies numbers of the modulus's size.
    budget.spend_on_products(exponent.bits(), modulus.bits(), modulus.bits())?;
    let size = base.modpow(&exponent, &modulus);
    let value = if modulus.magnitude().is_one() { BigInt::zero() } else { size };
    Ok(Value::from(floor_divide(&value, &modulus).1))
}
