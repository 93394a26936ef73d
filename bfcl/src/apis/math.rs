//! `MathAPI`: numbers. It has no state.

use std::sync::Arc;

use spar_python::signature::Default;
use spar_python::{
    BinaryOperator, Comparison, Exception, ExceptionKind, Opaque, Outcome, Value, absolute, binary,
    compare, equal, iterate, length, maximum, minimum, round, square_root, sum, to_str,
};

use super::method::{Method, error, methods};
use crate::numbers::{decimal_root, logarithm};

/// Nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Math;

const NUMBERS: &str = "Both inputs must be numbers";
const ELEMENTS: &str = "All elements in the list must be numbers";
const TOO_LARGE: &str = "Conversion resulted in a value too large to represent";

/// Metres of a unit.
const METRES: [(&str, f64); 6] =
    [("km", 1000.0), ("m", 1.0), ("cm", 0.01), ("mm", 0.001), ("um", 1e-6), ("nm", 1e-9)];

/// Factors from one unit to another.
const FACTORS: [(&str, f64); 12] = [
    ("cm_to_in", 0.393701),
    ("in_to_cm", 2.54),
    ("m_to_ft", 3.28084),
    ("ft_to_m", 0.3048),
    ("m_to_yd", 1.09361),
    ("yd_to_m", 0.9144),
    ("km_to_miles", 0.621371),
    ("miles_to_km", 1.60934),
    ("kg_to_lb", 2.20462),
    ("lb_to_kg", 0.453592),
    ("celsius_to_fahrenheit", 1.8),
    ("fahrenheit_to_celsius", 5.0 / 9.0),
];

pub(crate) const METHODS: &[Method<Math>] = methods!(Math, "MathAPI", {
    logarithm(value, base, precision) => |_, _, given| {
        Ok(match logarithm::repr_of_ratio(&given[0], &given[1], &given[2]) {
            Ok(repr) => {
                let type_name = if repr.starts_with("mpf") { "mpf" } else { "mpc" };
                result(Value::Opaque(Arc::new(Opaque { type_name, repr })))
            }
            Err(raised) if raised.kind == ExceptionKind::Refused => return Err(raised),
            Err(raised) => error(raised.text),
        })
    };
    mean(numbers) => |_, _, given| {
        if !given[0].is_true() {
            return Ok(error("Cannot calculate mean of an empty list"));
        }
        told(mean(&given[0]), ELEMENTS)
    };
    standard_deviation(numbers) => |_, _, given| {
        if !given[0].is_true() {
            return Ok(error("Cannot calculate standard deviation of an empty list"));
        }
        told(deviation(&given[0]), ELEMENTS)
    };
    si_unit_conversion(value, unit_in, unit_out) => |_, _, given| {
        convert_si(&given[0], &given[1], &given[2])
    };
    imperial_si_conversion(value, unit_in, unit_out) => |_, _, given| {
        convert_imperial(&given[0], &given[1], &given[2])
    };
    add(a, b) => |_, _, given| told(binary(BinaryOperator::Add, &given[0], &given[1]), NUMBERS);
    subtract(a, b) => |_, _, given| {
        told(binary(BinaryOperator::Subtract, &given[0], &given[1]), NUMBERS)
    };
    multiply(a, b) => |_, _, given| {
        if !given[0].is_real() || !given[1].is_real() {
            return Ok(error(NUMBERS));
        }
        told(binary(BinaryOperator::Multiply, &given[0], &given[1]), NUMBERS)
    };
    divide(a, b) => |_, _, given| {
        if equal(&given[1], &Value::from(0_i64)) {
            return Ok(error("Cannot divide by zero"));
        }
        told(binary(BinaryOperator::Divide, &given[0], &given[1]), NUMBERS)
    };
    power(base, exponent) => |_, _, given| {
        told(binary(BinaryOperator::Power, &given[0], &given[1]), NUMBERS)
    };
    square_root(number, precision) => |_, _, given| {
        let wrong = "Input must be a number or computation resulted in an invalid operation";
        let checked = compare(Comparison::Less, &given[0], &Value::from(0_i64));
        if checked == Ok(true) {
            return Ok(error("Cannot calculate square root of a negative number"));
        }
        let root = checked.and_then(|_| decimal_root::precision(&given[1])).map(|digits| {
            let repr = decimal_root::repr_of_root(&given[0], digits);
            Value::Opaque(Arc::new(Opaque { type_name: "Decimal", repr }))
        });
        told(root, wrong)
    };
    absolute_value(number) => |_, _, given| {
        told(absolute(&given[0]), "Input must be a number")
    };
    round_number(number, decimal_places = Default::Int(0)) => |_, _, given| {
        let wrong = "First input must be a number, second input must be an integer";
        told(round(&given[0], &given[1]), wrong)
    };
    percentage(part, whole) => |_, _, given| {
        if equal(&given[1], &Value::from(0_i64)) {
            return Ok(error("Whole value cannot be zero"));
        }
        let share = binary(BinaryOperator::Divide, &given[0], &given[1]);
        let share = share.and_then(|share| {
            binary(BinaryOperator::Multiply, &share, &Value::from(100_i64))
        });
        told(share, NUMBERS)
    };
    min_value(numbers) => |_, _, given| {
        if !given[0].is_true() {
            return Ok(error("Cannot find minimum of an empty list"));
        }
        told(minimum(&given[0]), ELEMENTS)
    };
    max_value(numbers) => |_, _, given| {
        if !given[0].is_true() {
            return Ok(error("Cannot find maximum of an empty list"));
        }
        told(maximum(&given[0]), ELEMENTS)
    };
    sum_values(numbers) => |_, _, given| {
        if !given[0].is_true() {
            return Ok(error("Cannot calculate sum of an empty list"));
        }
        told(total(&given[0]), ELEMENTS)
    };
});

fn result(value: Value) -> Value {
    Value::record([("result", value)])
}

/// The result, or what is said where types do not go together; other exceptions go on.
fn told(outcome: Outcome<Value>, type_error: &str) -> Outcome<Value> {
    match outcome {
        Ok(value) => Ok(result(value)),
        Err(raised) if raised.kind == ExceptionKind::Type => Ok(error(type_error)),
        Err(raised) => Err(raised),
    }
}

fn total(numbers: &Value) -> Outcome<Value> {
    sum(&iterate(numbers)?, Value::from(0_i64))
}

fn mean(numbers: &Value) -> Outcome<Value> {
    binary(BinaryOperator::Divide, &total(numbers)?, &Value::from(length(numbers)?))
}

fn deviation(numbers: &Value) -> Outcome<Value> {
    let mean = mean(numbers)?;
    let mut squares = Vec::new();
    for number in iterate(numbers)? {
        let distance = binary(BinaryOperator::Subtract, &number, &mean)?;
        squares.push(binary(BinaryOperator::Power, &distance, &Value::from(2_i64))?);
    }
    let squares = sum(&squares, Value::from(0_i64))?;
    let variance = binary(BinaryOperator::Divide, &squares, &Value::from(length(numbers)?))?;
    square_root(&variance).map(Value::Float)
}

fn unsupported(from: &Value, to: &Value) -> Outcome<Value> {
    Ok(error(format!("Conversion from '{}' to '{}' is not supported", to_str(from)?, to_str(to)?)))
}

/// The result, or what is said where it does not fit; other exceptions go on.
fn fitting(outcome: Outcome<Value>) -> Outcome<Value> {
    match outcome {
        Ok(value) => Ok(result(value)),
        Err(Exception { kind: ExceptionKind::Overflow, .. }) => Ok(error(TOO_LARGE)),
        Err(raised) => Err(raised),
    }
}

fn convert_si(value: &Value, from: &Value, to: &Value) -> Outcome<Value> {
    if !value.is_real() {
        return Ok(error("Value must be a number"));
    }
    let metres = |unit: &Value| -> Outcome<Option<f64>> {
        unit.check_hashable()?;
        Ok(METRES.iter().find(|(name, _)| unit.as_str() == Some(name)).map(|(_, metres)| *metres))
    };
    let Some(metres_in) = metres(from)? else { return unsupported(from, to) };
    let Some(metres_out) = metres(to)? else { return unsupported(from, to) };
    // Units of a whole number of metres are whole numbers in the program.
    let factor = match metres_in {
        whole if whole >= 1.0 => Value::from(whole as i64),
        part => Value::Float(part),
    };
    let converted = binary(BinaryOperator::Multiply, value, &factor).and_then(|in_metres| {
        binary(BinaryOperator::Multiply, &in_metres, &Value::Float(1.0 / metres_out))
    });
    fitting(converted)
}

fn convert_imperial(value: &Value, from: &Value, to: &Value) -> Outcome<Value> {
    if !value.is_real() {
        return Ok(error("Value must be a number"));
    }
    if equal(from, to) {
        return Ok(result(value.clone()));
    }
    let key = format!("{}_to_{}", to_str(from)?, to_str(to)?);
    let Some((_, factor)) = FACTORS.iter().find(|(name, _)| *name == key) else {
        return unsupported(from, to);
    };
    let factor = Value::Float(*factor);
    let offset = Value::from(32_i64);
    fitting(match &*key {
        "celsius_to_fahrenheit" => binary(BinaryOperator::Multiply, value, &factor)
            .and_then(|scaled| binary(BinaryOperator::Add, &scaled, &offset)),
        "fahrenheit_to_celsius" => binary(BinaryOperator::Subtract, value, &offset)
            .and_then(|above| binary(BinaryOperator::Multiply, &above, &factor)),
        _ => binary(BinaryOperator::Multiply, value, &factor),
    })
}
