//! Days of the calendar, as Python's `datetime` counts them.

/// The months.
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

/// The days of the week, from Monday.
pub(crate) const WEEKDAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// A date of the Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Date {
    /// `date.toordinal()`: 1 is the first of January of the year 1.
    pub(crate) ordinal: i64,
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
}

/// Whether a year has 366 days.
pub(crate) fn is_leap(year: i64) -> bool {
    year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

/// The days of a month.
pub(crate) fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl Date {
    /// The date of a year, month and day that exist.
    pub(crate) fn new(year: i64, month: i64, day: i64) -> Self {
        let before = year - 1;
        let days = before * 365 + before / 4 - before / 100 + before / 400;
        let months: i64 = (1..month).map(|month| days_of(year, month)).sum();
        Self { ordinal: days + months + day, year, month, day }
    }

    /// The date of an ordinal; absent before the year 1 and behind the year 9999.
    pub(crate) fn from_ordinal(ordinal: i64) -> Option<Self> {
        if !(1..=3_652_059).contains(&ordinal) {
            return None;
        }
        let mut year = (ordinal - 1) / 366 + 1;
        while Self::new(year + 1, 1, 1).ordinal <= ordinal {
            year += 1;
        }
        let mut rest = ordinal - Self::new(year, 1, 1).ordinal;
        let mut month = 1;
        while rest >= days_of(year, month) {
            rest -= days_of(year, month);
            month += 1;
        }
        Some(Self { ordinal, year, month, day: rest + 1 })
    }

    /// The date so many days later; absent where there is none.
    pub(crate) fn plus(self, days: i64) -> Option<Self> {
        Self::from_ordinal(self.ordinal + days)
    }

    /// Days since the Monday before, 0 to 6.
    pub(crate) fn weekday(self) -> usize {
        (self.ordinal + 6).rem_euclid(7) as usize
    }

    /// The name of the day of the week.
    pub(crate) fn weekday_name(self) -> &'static str {
        WEEKDAYS[self.weekday()]
    }

    /// The name of the month.
    pub(crate) fn month_name(self) -> &'static str {
        MONTHS[self.month as usize - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_ordinals_belong_together() {
        for (ordinal, parts, weekday) in [
            (1, (1, 1, 1), "Monday"),
            (738_886, (2024, 1, 1), "Monday"),
            (730_179, (2000, 2, 29), "Tuesday"),
            (3_652_059, (9999, 12, 31), "Friday"),
        ] {
            let date = Date::from_ordinal(ordinal).unwrap();
            assert_eq!((date.year, date.month, date.day), parts);
            assert_eq!(
                (Date::new(parts.0, parts.1, parts.2), date.weekday_name()),
                (date, weekday)
            );
        }
        assert!(Date::from_ordinal(0).is_none() && Date::from_ordinal(3_652_060).is_none());
    }
}
