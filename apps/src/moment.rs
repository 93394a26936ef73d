//! Dates and times of day of the world, which has one time zone and no leap seconds.

use std::fmt;

use serde::{Serialize, Serializer};

const MINUTES_OF_DAY: i64 = 24 * 60;
/// Names of months, January first.
pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A day of the Gregorian calendar, from 1970-01-01 to 9999-12-31.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Date(i64);

/// A minute of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Moment(i64);

impl Date {
    /// The day of a year, month (1 to 12) and day of the month; `None` where there is none.
    pub(crate) fn new(year: i64, month: i64, day: i64) -> Option<Self> {
        if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || day < 1 {
            return None;
        }
        let date = Self(days_before(year, month) + day - 1);
        (date.civil() == (year, month, day)).then_some(date)
    }

    /// Reads `2031-03-14`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
            return None;
        }
        Self::new(digits(text.get(..4)?)?, digits(text.get(5..7)?)?, digits(text.get(8..)?)?)
    }

    /// Year, month from 1, and day of the month.
    pub(crate) fn civil(self) -> (i64, i64, i64) {
        // Years begin in March here, so that the odd day comes last.
        let days = self.0 + 719_468;
        let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let shifted = (5 * of_year + 2) / 153;
        let day = of_year - (153 * shifted + 2) / 5 + 1;
        let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
        (year + era * 400 + i64::from(month <= 2), month, day)
    }

    /// So many days later.
    #[must_use]
    pub(crate) fn plus_days(self, days: i64) -> Self {
        Self(self.0 + days)
    }

    /// A minute of this day, counted from midnight.
    pub(crate) fn at(self, minutes: i64) -> Moment {
        Moment(self.0 * MINUTES_OF_DAY + minutes)
    }
}

impl Moment {
    /// Reads `2031-03-14 09:30`; a `T` may stand in place of the space.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (date, time) = text.split_once([' ', 'T'])?;
        Some(Date::parse(date)?.at(parse_time(time)?))
    }

    /// The day it is on.
    pub(crate) fn date(self) -> Date {
        Date(self.0.div_euclid(MINUTES_OF_DAY))
    }

    /// Minutes since midnight.
    pub(crate) fn minute_of_day(self) -> i64 {
        self.0.rem_euclid(MINUTES_OF_DAY)
    }

    /// So many minutes later.
    #[must_use]
    pub(crate) fn plus_minutes(self, minutes: i64) -> Self {
        Self(self.0 + minutes)
    }

    /// Minutes from an earlier moment.
    pub(crate) fn minutes_since(self, earlier: Self) -> i64 {
        self.0 - earlier.0
    }
}

/// Minutes since midnight of `09:30`.
pub(crate) fn parse_time(text: &str) -> Option<i64> {
    let (hour, minute) = text.split_once(':')?;
    if hour.len() > 2 || minute.len() != 2 {
        return None;
    }
    let (hour, minute) = (digits(hour)?, digits(minute)?);
    (hour < 24 && minute < 60).then_some(hour * 60 + minute)
}

/// `09:30` of minutes since midnight.
pub(crate) fn time_words(minutes: i64) -> String {
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}

fn digits(text: &str) -> Option<i64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Days from 1970-01-01 to the first of a month.
fn days_before(year: i64, month: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let shifted = (month + 9) % 12;
    let of_year = (153 * shifted + 2) / 5;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.civil();
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.date(), time_words(self.minute_of_day()))
    }
}

impl Serialize for Date {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        let first = Date::new(1970, 1, 1).unwrap();
        assert_eq!(first, Date(0));
        // Every day of a whole cycle of leap years reads back, one behind the other.
        let mut date = Date::new(1999, 12, 31).unwrap();
        for _ in 0..146_097 {
            let next = date.plus_days(1);
            let (year, month, day) = next.civil();
            assert_eq!(Date::new(year, month, day), Some(next));
            date = next;
        }
        assert_eq!(date.to_string(), "2399-12-31");
        assert_eq!(Date::parse("2000-02-29").unwrap().plus_days(1).to_string(), "2000-03-01");
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in
            ["2031-02-29", "2031-13-01", "31-01-01", "2031-1-01", "2031-01-+1", "", "é031-01-01"]
        {
            assert_eq!(Date::parse(text), None, "{text}");
        }
        for text in ["2031-03-14 24:00", "2031-03-14 9:3", "2031-03-14", "2031-03-14 -1:00"] {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
        let read = Moment::parse("2031-03-14T9:05").unwrap();
        assert_eq!(read.to_string(), "2031-03-14 09:05");
        assert_eq!(read.plus_minutes(15 * 60).to_string(), "2031-03-15 00:05");
    }
}
