//! Dates as `datetime.strptime` reads them.

use spar_python::characters::{decimal_value, is_space};
use spar_python::{Exception, Outcome, Value, repr_str};

/// A day and a time of day, which compare as time goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DateTime {
    /// 1 to 9999.
    pub(crate) year: u32,
    /// 1 to 12.
    pub(crate) month: u32,
    /// 1 to 31.
    pub(crate) day: u32,
    /// 0 to 23.
    pub(crate) hour: u32,
    /// 0 to 59.
    pub(crate) minute: u32,
    /// 0 to 59.
    pub(crate) second: u32,
}

impl DateTime {
    /// The earliest there is.
    pub(crate) const FIRST: Self = Self::day(1, 1, 1);
    /// The latest there is.
    pub(crate) const LAST: Self =
        Self { hour: 23, minute: 59, second: 59, ..Self::day(9999, 12, 31) };

    /// The beginning of a day.
    pub(crate) const fn day(year: u32, month: u32, day: u32) -> Self {
        Self { year, month, day, hour: 0, minute: 0, second: 0 }
    }

    /// So many seconds later, less than a month.
    pub(crate) fn plus_seconds(self, seconds: u32) -> Self {
        let mut total = (self.hour * 60 + self.minute) * 60 + self.second + seconds;
        let mut date = self;
        while total >= 86_400 {
            total -= 86_400;
            date.day += 1;
            if date.day > days_in(date.year, date.month) {
                date.day = 1;
                date.month += 1;
                if date.month > 12 {
                    (date.month, date.year) = (1, date.year + 1);
                }
            }
        }
        Self { hour: total / 3600, minute: total / 60 % 60, second: total % 60, ..date }
    }

    /// `strftime("%Y-%m-%d %H:%M:%S")`
    pub(crate) fn written(self) -> String {
        format!(
            "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
            self.year, self.month, self.day, self.hour, self.minute, self.second
        )
    }
}

/// `%Y-%m-%d`
pub(crate) const DAY: &str = "%Y-%m-%d";
/// `%Y-%m-%d %H:%M:%S`
pub(crate) const SECOND: &str = "%Y-%m-%d %H:%M:%S";

/// `datetime.strptime(value, format)` for formats of `%Y %m %d %H %M %S`.
///
/// # Errors
///
/// The `TypeError` of what is no text, the `ValueError` of what does not match and of days that there are not.
pub(crate) fn parse_date(value: &Value, format: &str) -> Outcome<DateTime> {
    let Value::Str(text) = value else {
        let name = if matches!(value, Value::None) { "None" } else { value.type_name() };
        return Err(Exception::type_error(format_args!(
            "strptime() argument 1 must be str, not {name}"
        )));
    };
    let characters: Vec<char> = text.chars().collect();
    let pattern: Vec<char> = format.chars().collect();
    let mut date = DateTime::day(1900, 1, 1);
    let Some(end) = matched(&pattern, &characters, 0, &mut date) else {
        return Err(Exception::value_error(format_args!(
            "time data {} does not match format {}",
            repr_str(text),
            repr_str(format)
        )));
    };
    if end < characters.len() {
        let rest: String = characters[end..].iter().collect();
        return Err(Exception::value_error(format_args!("unconverted data remains: {rest}")));
    }
    // A leap second is read, and is the last second of its minute.
    if date.year == 0 {
        return Err(Exception::value_error("year 0 is out of range"));
    }
    if date.day > days_in(date.year, date.month) {
        return Err(Exception::value_error("day is out of range for month"));
    }
    if date.second > 59 {
        return Err(Exception::value_error("second must be in 0..59"));
    }
    Ok(date)
}

/// Where a pattern ends in a text: alternatives are tried in the order of the standard library's expression.
fn matched(pattern: &[char], text: &[char], at: usize, date: &mut DateTime) -> Option<usize> {
    match pattern {
        [] => Some(at),
        ['%', directive, rest @ ..] => {
            for (length, value) in alternatives(*directive, &text[at..]) {
                let mut tried = *date;
                match directive {
                    'Y' => tried.year = value,
                    'm' => tried.month = value,
                    'd' => tried.day = value,
                    'H' => tried.hour = value,
                    'M' => tried.minute = value,
                    _ => tried.second = value,
                }
                if let Some(end) = matched(rest, text, at + length, &mut tried) {
                    *date = tried;
                    return Some(end);
                }
            }
            None
        }
        [' ', rest @ ..] => {
            let spaces = text[at..].iter().take_while(|c| is_space(**c)).count();
            (1..=spaces).rev().find_map(|used| matched(rest, text, at + used, date))
        }
        [literal, rest @ ..] => {
            (text.get(at) == Some(literal)).then(|| matched(rest, text, at + 1, date)).flatten()
        }
    }
}

/// The numbers that may be read here, with their lengths, in the order they are tried.
fn alternatives(directive: char, text: &[char]) -> Vec<(usize, u32)> {
    let digit = |at: usize| text.get(at).copied().and_then(decimal_value);
    // Classes such as `[1-9]` take the digits of ASCII alone, `\d` takes those of any script.
    let plain = |at: usize| text.get(at).and_then(|c| c.to_digit(10));
    let mut found = Vec::new();
    let two = plain(0).zip(digit(1)).map(|(tens, ones)| (tens, ones, plain(1).is_some()));
    match directive {
        'Y' => {
            if let (Some(a), Some(b), Some(c), Some(d)) = (digit(0), digit(1), digit(2), digit(3)) {
                found.push((4, a * 1000 + b * 100 + c * 10 + d));
            }
        }
        'm' => {
            match two {
                Some((1, ones @ 0..=2, true)) => found.push((2, 10 + ones)),
                Some((0, ones @ 1..=9, true)) => found.push((2, ones)),
                _ => {}
            }
            found.extend(plain(0).filter(|&ones| ones > 0).map(|ones| (1, ones)));
        }
        'd' => {
            match two {
                Some((3, ones @ 0..=1, true)) => found.push((2, 30 + ones)),
                Some((tens @ 1..=2, ones, _)) => found.push((2, tens * 10 + ones)),
                Some((0, ones @ 1..=9, true)) => found.push((2, ones)),
                _ => {}
            }
            found.extend(plain(0).filter(|&ones| ones > 0).map(|ones| (1, ones)));
            if text.first() == Some(&' ') {
                found.extend(plain(1).filter(|&ones| ones > 0).map(|ones| (2, ones)));
            }
        }
        'H' => {
            match two {
                Some((2, ones @ 0..=3, true)) => found.push((2, 20 + ones)),
                Some((tens @ 0..=1, ones, _)) => found.push((2, tens * 10 + ones)),
                _ => {}
            }
            found.extend(digit(0).map(|ones| (1, ones)));
        }
        'M' | 'S' => {
            match two {
                Some((6, ones @ 0..=1, true)) if directive == 'S' => found.push((2, 60 + ones)),
                Some((tens @ 0..=5, ones, _)) => found.push((2, tens * 10 + ones)),
                _ => {}
            }
            found.extend(digit(0).map(|ones| (1, ones)));
        }
        _ => {}
    }
    found
}

fn days_in(year: u32, month: u32) -> u32 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(u32, u32, u32), String> {
        parse_date(&Value::from(text), DAY)
            .map(|date| (date.year, date.month, date.day))
            .map_err(|error| error.text)
    }

    #[test]
    fn days_are_read_as_the_standard_library_reads_them() {
        assert_eq!(read("2024-02-29"), Ok((2024, 2, 29)));
        assert_eq!(read("2024-1-5"), Ok((2024, 1, 5)));
        assert_eq!(read("2024-10- 5"), Ok((2024, 10, 5)));
        for (text, words) in [
            ("2025-02-29", "day is out of range for month"),
            ("2024/01/01", "time data '2024/01/01' does not match format '%Y-%m-%d'"),
            ("2024-13-01", "time data '2024-13-01' does not match format '%Y-%m-%d'"),
            ("2024-10-32", "unconverted data remains: 2"),
            ("0000-01-01", "year 0 is out of range"),
            ("", "time data '' does not match format '%Y-%m-%d'"),
        ] {
            assert_eq!(read(text), Err(words.to_owned()));
        }
        let error = parse_date(&Value::None, DAY).unwrap_err();
        assert_eq!(error.text, "strptime() argument 1 must be str, not None");
    }

    #[test]
    fn seconds_go_over_into_days() {
        let date = parse_date(&Value::from("2024-12-31 23:59:59"), SECOND).unwrap();
        assert_eq!(date.plus_seconds(1).written(), "2025-01-01 00:00:00");
        assert_eq!(
            DateTime::day(2024, 9, 1).plus_seconds(124_200).written(),
            "2024-09-02 10:30:00"
        );
    }
}
