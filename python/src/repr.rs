//! `repr` and `str`.

use std::fmt::Write;

use num_bigint::BigInt;

use crate::characters::is_printable;
use crate::{Exception, Int, Outcome, Value};

/// Whole numbers of more digits are not written out.
const DIGITS: usize = 4300;
/// Below so many bits a number has fewer digits than that.
const SURELY_FEWER_BITS: u64 = 14_000;
/// Beyond so many it has more.
const SURELY_MORE_BITS: u64 = 14_300;

/// `repr(value)`.
///
/// # Errors
///
/// The `ValueError` of whole numbers with more than 4300 digits.
pub fn repr(value: &Value) -> Outcome<String> {
    let mut out = String::new();
    write_repr(value, &mut out)?;
    Ok(out)
}

/// `str(value)`: texts as they are, all else as [`repr`].
///
/// # Errors
///
/// As [`repr`].
pub fn to_str(value: &Value) -> Outcome<String> {
    match value {
        Value::Str(text) => Ok((**text).to_owned()),
        Value::Opaque(opaque) if opaque.type_name == "Decimal" => {
            let inner = opaque.repr.strip_prefix("Decimal('").and_then(|r| r.strip_suffix("')"));
            Ok(inner.unwrap_or(&opaque.repr).to_owned())
        }
        other => repr(other),
    }
}

/// `repr` of a text: in single quotes, or double ones where it holds single ones alone.
pub fn repr_str(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_str(text, &mut out);
    out
}

/// `repr` of a number: the fewest digits that read back as it, with an exponent below 1e-4 and from 1e16 on.
pub fn repr_float(value: f64) -> String {
    let mut out = String::new();
    write_float(value, true, &mut out);
    out
}

/// `repr` of a whole number.
///
/// # Errors
///
/// The `ValueError` of more than 4300 digits.
pub fn repr_int(value: &BigInt) -> Outcome<String> {
    if value.bits() > SURELY_MORE_BITS {
        return Err(Exception::too_many_digits());
    }
    let text = value.to_string();
    if value.bits() > SURELY_FEWER_BITS && text.trim_start_matches('-').len() > DIGITS {
        return Err(Exception::too_many_digits());
    }
    Ok(text)
}

pub(crate) fn write_int(value: &Int, out: &mut String) -> Outcome<()> {
    let Some(small) = value.to_i64() else {
        out.push_str(&repr_int(&value.to_big())?);
        return Ok(());
    };
    if small < 0 {
        out.push('-');
    }
    push_digits(small.unsigned_abs(), 1, out);
    Ok(())
}

fn write_repr(value: &Value, out: &mut String) -> Outcome<()> {
    match value {
        Value::None => out.push_str("None"),
        Value::Ellipsis => out.push_str("Ellipsis"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Int(value) => write_int(value, out)?,
        Value::Float(value) => write_float(*value, true, out),
        Value::Complex(real, imaginary) => write_complex(*real, *imaginary, out),
        Value::Str(text) => write_str(text, out),
        Value::List(items) => {
            out.push('[');
            write_items(items.iter(), out)?;
            out.push(']');
        }
        Value::Tuple(items) => {
            out.push('(');
            write_items(items.iter(), out)?;
            out.push_str(if items.len() == 1 { ",)" } else { ")" });
        }
        Value::Dict(dict) => {
            out.push('{');
            for (at, (key, value)) in dict.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                write_repr(key, out)?;
                out.push_str(": ");
                write_repr(value, out)?;
            }
            out.push('}');
        }
        Value::Set(set) if set.is_empty() => out.push_str("set()"),
        Value::Set(set) => {
            out.push('{');
            write_items(set.iter(), out)?;
            out.push('}');
        }
        Value::Opaque(opaque) => out.push_str(&opaque.repr),
    }
    Ok(())
}

fn write_items<'v>(items: impl Iterator<Item = &'v Value>, out: &mut String) -> Outcome<()> {
    for (at, item) in items.enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        write_repr(item, out)?;
    }
    Ok(())
}

fn write_str(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if character == quote => {
                out.push('\\');
                out.push(character);
            }
            _ if is_printable(character) => out.push(character),
            _ => {
                let code = u32::from(character);
                let _ = match code {
                    0..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push(quote);
}

/// The shortest digits that read back as a number, and its exponent: `d.ddde7`.
///
/// Of two that are equally near, Rust takes the upper one and CPython the even one. Both are there only where a number has
/// one digit more than are needed, hence at least 16.
fn shortest(value: f64) -> String {
    let scientific = format!("{value:e}");
    let digits = scientific.split('e').next().unwrap_or_default();
    let count = digits.bytes().filter(u8::is_ascii_digit).count();
    if count < 15 {
        return scientific;
    }
    let nearest = format!("{value:.*e}", count - 1);
    if nearest.parse() == Ok(value) { nearest } else { scientific }
}

/// Below, decimal numbers are of 15 digits, which every float keeps: two of them are never the same float.
const KEPT_DIGITS: u64 = 10_u64.pow(15);

/// A number of few digits, four of them behind the point at most; false for any other one.
///
/// Scaled by a power of ten and divided by it again it has to be the same float, since a quotient of whole numbers below
/// 2^53 is the float next to the decimal number. Of decimal numbers with no more than 15 digits it alone is this float, so
/// it is the shortest one.
fn write_short_float(value: f64, with_point: bool, out: &mut String) -> bool {
    let size = value.abs();
    // Below, CPython writes an exponent.
    if size != 0.0 && !(1e-4..KEPT_DIGITS as f64).contains(&size) {
        return false;
    }
    let mut scale = 1_u64;
    let scaled = loop {
        let scaled = (size * scale as f64 + 0.5) as u64;
        if scaled < KEPT_DIGITS && scaled as f64 / scale as f64 == size {
            break scaled;
        }
        if scale == 10_000 {
            return false;
        }
        scale *= 10;
    };
    if value.is_sign_negative() {
        out.push('-');
    }
    push_digits(scaled / scale, 1, out);
    if scale > 1 {
        out.push('.');
        push_digits(scaled % scale, scale.ilog10() as usize, out);
    } else if with_point {
        out.push_str(".0");
    }
    true
}

/// A whole number, with zeros in front where it has fewer digits.
fn push_digits(mut number: u64, at_least: usize, out: &mut String) {
    let mut digits = [b'0'; 20];
    let mut start = digits.len();
    while number > 0 || digits.len() - start < at_least {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    out.extend(digits[start..].iter().map(|digit| char::from(*digit)));
}

/// The shortest digits, laid out as CPython does.
pub(crate) fn write_float(value: f64, with_point: bool, out: &mut String) {
    if !write_short_float(value, with_point, out) {
        write_any_float(value, with_point, out);
    }
}

fn write_any_float(value: f64, with_point: bool, out: &mut String) {
    if value.is_nan() {
        return out.push_str("nan");
    }
    if value.is_infinite() {
        return out.push_str(if value > 0.0 { "inf" } else { "-inf" });
    }
    let scientific = shortest(value);
    let (mantissa, exponent) = scientific.split_once('e').expect("Rust writes an exponent");
    let exponent: i32 = exponent.parse().expect("an exponent is a number");
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    out.push_str(sign);
    if !(-4..16).contains(&exponent) {
        let _ =
            write!(out, "{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs());
        return;
    }
    let digits = mantissa.replace('.', "");
    if exponent < 0 {
        out.push_str("0.");
        out.extend(std::iter::repeat_n('0', (-exponent - 1) as usize));
        out.push_str(&digits);
        return;
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        out.push_str(&digits);
        out.extend(std::iter::repeat_n('0', whole - digits.len()));
        if with_point {
            out.push_str(".0");
        }
    } else {
        out.push_str(&digits[..whole]);
        out.push('.');
        out.push_str(&digits[whole..]);
    }
}

fn write_complex(real: f64, imaginary: f64, out: &mut String) {
    let has_real = real != 0.0 || real.is_sign_negative();
    if has_real {
        out.push('(');
        write_float(real, false, out);
        if imaginary.is_nan() || !imaginary.is_sign_negative() {
            out.push('+');
        }
    }
    write_float(imaginary, false, out);
    out.push_str(if has_real { "j)" } else { "j" });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_cpython_writes_them() {
        for (value, text) in [
            (3.0, "3.0"),
            (-0.0, "-0.0"),
            (1e16, "1e+16"),
            (1e15, "1000000000000000.0"),
            (1e-7, "1e-07"),
            (0.0001, "0.0001"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1.5e300, "1.5e+300"),
            (123_456_789.123, "123456789.123"),
            (f64::NEG_INFINITY, "-inf"),
            (6_369_051_672_525_817.0 / 4.0, "1592262918131454.2"),
            (-6_369_051_672_525_819.0 / 4.0, "-1592262918131454.8"),
            (5e-324, "5e-324"),
            (9_007_199_254_740_993.0, "9007199254740992.0"),
            (2_f64.powi(-44), "5.684341886080802e-14"),
        ] {
            assert_eq!(repr_float(value), text);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_number_is_written_in_its_shortest_digits(whole in 0_u64..20_000_000_000_000, bits: u64, negative: bool) {
            // Hundredths, numbers beside them, and any others.
            let sign = if negative { -1.0 } else { 1.0 };
            let near = sign * whole as f64 / 100.0;
            for value in [near, near.next_up(), near.next_down(), near / 1e6, near.trunc(), sign * 0.0, f64::from_bits(bits)] {
                for with_point in [true, false] {
                    let (mut written, mut expected) = (String::new(), String::new());
                    write_float(value, with_point, &mut written);
                    write_any_float(value, with_point, &mut expected);
                    proptest::prop_assert_eq!(written, expected, "{:?}", value);
                }
            }
        }
    }

    #[test]
    fn few_digits_are_written_as_many_are() {
        // Numbers of up to four places and their neighbours, written with and without the short way.
        let mut random = crate::Random::from_u64(20_261_127);
        let mut short = 0;
        for _ in 0..200_000 {
            let scale = 10_f64.powi(random.below(7) as i32);
            let bound = 10_u64.pow(1 + random.below(16) as u32);
            let digits = random.below(bound) as f64;
            let value = digits / scale;
            let near =
                f64::from_bits(value.to_bits().wrapping_add(random.below(3)).wrapping_sub(1));
            for value in [value, -value, near] {
                for with_point in [true, false] {
                    let (mut one, mut other) = (String::new(), String::new());
                    short += usize::from(write_short_float(value, with_point, &mut one));
                    write_any_float(value, with_point, &mut other);
                    assert!(one.is_empty() || one == other, "{one} {other}");
                }
            }
        }
        assert!(short > 200_000, "{short}");
    }

    #[test]
    fn texts_are_quoted_as_cpython_quotes_them() {
        assert_eq!(repr_str("it's"), "\"it's\"");
        assert_eq!(repr_str("it's \"so\""), r#"'it\'s "so"'"#);
        assert_eq!(
            repr_str("a\n\u{7f}\u{a0}é\u{200b}\u{e0001}"),
            r"'a\n\x7f\xa0é\u200b\U000e0001'"
        );
    }

    #[test]
    fn containers_nest() {
        let value = Value::list([
            Value::tuple([Value::from(1_i64)]),
            Value::dict([("a", Value::None)]),
            Value::Complex(0.0, 1.0),
            Value::Complex(-1.5, -2.0),
            Value::Set(std::sync::Arc::default()),
        ]);
        assert_eq!(repr(&value).unwrap(), "[(1,), {'a': None}, 1j, (-1.5-2j), set()]");
    }

    #[test]
    fn numbers_of_too_many_digits_are_refused() {
        assert!(repr_int(&BigInt::from(10).pow(4299)).is_ok());
        assert!(repr_int(&BigInt::from(10).pow(4300)).unwrap_err().text.starts_with("Exceeds"));
    }
}
