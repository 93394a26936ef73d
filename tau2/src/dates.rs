//! Days and times, as ISO 8601 writes them and Python prints them.

use spar_python::Value;

use crate::validate::Read;

/// Reads a day, and gives it as Python prints it: `2025-02-01`.
///
/// # Errors
///
/// The kind and the words of the error.
pub(crate) fn read_date(value: &Value) -> Read<String> {
    let Some(text) = value.as_str() else {
        return Err(("date_type", "Input should be a valid date".to_owned()));
    };
    if let Some(day) = day(text) {
        return Ok(day.to_owned());
    }
    match time(text) {
        Some(time) if time.ends_with(" 00:00:00") => Ok(time[..10].to_owned()),
        Some(_) => Err((
            "date_from_datetime_inexact",
            "Datetimes provided to dates should have zero time - e.g. be exact dates".to_owned(),
        )),
        None => Err((
            "date_from_datetime_parsing",
            "Input should be a valid date or datetime, it is none of ISO 8601".to_owned(),
        )),
    }
}

/// Reads a time, and gives it as Python prints it: `2025-02-01 12:30:00`.
///
/// # Errors
///
/// The kind and the words of the error.
pub(crate) fn read_time(value: &Value) -> Read<String> {
    let Some(text) = value.as_str() else {
        return Err(("datetime_type", "Input should be a valid datetime".to_owned()));
    };
    if let Some(day) = day(text) {
        return Ok(format!("{day} 00:00:00"));
    }
    time(text).ok_or_else(|| {
        let words = "Input should be a valid datetime, it is none of ISO 8601";
        ("datetime_from_date_parsing", words.to_owned())
    })
}

/// A day that exists.
fn day(text: &str) -> Option<&str> {
    let is_written = text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if !is_written {
        return None;
    }
    let number = |range: std::ops::Range<usize>| text[range].parse::<u32>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => return None,
    };
    (year > 0 && (1..=days).contains(&day)).then_some(text)
}

/// A time of a day: hours and minutes, then perhaps seconds, a fraction of up to six digits, and a zone.
fn time(text: &str) -> Option<String> {
    let (date, rest) = (text.get(..10)?, text.get(10..)?);
    let date = day(date)?;
    let rest = rest.strip_prefix(['T', 't', ' ', '_'])?;
    let (clock, zone) = match rest.find(['Z', 'z', '+', '-']) {
        Some(at) => (&rest[..at], zone(&rest[at..])?),
        None => (rest, String::new()),
    };
    let (whole, fraction) = match clock.split_once('.') {
        Some((whole, fraction)) => (whole, fraction),
        None => (clock, ""),
    };
    let parts: Vec<&str> = whole.split(':').collect();
    let is_part = |part: &str, most: u32| {
        part.len() == 2 && part.parse::<u32>().is_ok_and(|value| value <= most)
    };
    let seconds = match parts[..] {
        [hours, minutes] if is_part(hours, 23) && is_part(minutes, 59) => "00",
        [hours, minutes, seconds]
            if is_part(hours, 23) && is_part(minutes, 59) && is_part(seconds, 59) =>
        {
            seconds
        }
        _ => return None,
    };
    let has_fraction = clock.contains('.');
    let is_fraction = (1..=6).contains(&fraction.len())
        && fraction.bytes().all(|byte| byte.is_ascii_digit())
        && parts.len() == 3;
    if has_fraction && !is_fraction {
        return None;
    }
    let micros = match fraction.bytes().any(|byte| byte != b'0') {
        true => format!(".{fraction:0<6}"),
        false => String::new(),
    };
    Some(format!("{date} {}:{}:{seconds}{micros}{zone}", parts[0], parts[1]))
}

/// A distance from Greenwich, as Python prints it.
fn zone(text: &str) -> Option<String> {
    if matches!(text, "Z" | "z") {
        return Some("+00:00".to_owned());
    }
    let digits: String = text[1..].chars().filter(|&character| character != ':').collect();
    let is_written = digits.len() == 4
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && matches!(text.len(), 5 | 6)
        && digits[..2].parse::<u32>().is_ok_and(|hours| hours < 24)
        && digits[2..].parse::<u32>().is_ok_and(|minutes| minutes < 60);
    is_written.then(|| format!("{}{}:{}", &text[..1], &digits[..2], &digits[2..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_times_are_printed_as_python_prints_them() {
        for (text, printed) in [
            ("2025-01-20T14:30:00", "2025-01-20 14:30:00"),
            ("2025-01-20 14:30", "2025-01-20 14:30:00"),
            ("2025-01-20T14:30:00.5Z", "2025-01-20 14:30:00.500000+00:00"),
            ("2025-01-20T14:30:00-05:30", "2025-01-20 14:30:00-05:30"),
            ("2024-02-29", "2024-02-29 00:00:00"),
        ] {
            assert_eq!(read_time(&Value::from(text)).unwrap(), printed, "{text}");
        }
        assert_eq!(read_date(&Value::from("2025-02-01T00:00:00")).unwrap(), "2025-02-01");
        for wrong in ["2025-02-29", "2025-13-01", "2025-2-1", "", "é025-01-01", "2025-01-01T25:00"]
        {
            assert!(read_time(&Value::from(wrong)).is_err(), "{wrong}");
        }
        assert_eq!(
            read_date(&Value::from("2025-02-01T01:00:00")).unwrap_err().0,
            "date_from_datetime_inexact"
        );
        assert_eq!(read_date(&Value::from(5_i64)).unwrap_err().0, "date_type");
    }
}
