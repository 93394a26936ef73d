//! Times as C's `strftime` writes them in the C locale, in UTC.

const DAYS: [&str; 7] =
    ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
const MONTHS: [&str; 12] = [
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

/// The time `seconds` after 1970 in the form of `format`; `Err` has a directive that is unknown.
pub(super) fn strftime(seconds: u64, format: &str) -> Result<String, String> {
    let days = seconds / 86_400;
    let second_of_day = seconds % 86_400;
    let (hour, minute, second) =
        (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    let (year, month, day) = civil(days);
    let weekday = DAYS[(days % 7) as usize];
    let month_name = MONTHS[month as usize - 1];
    let hour_12 = if hour % 12 == 0 { 12 } else { hour % 12 };
    let half = if hour < 12 { "AM" } else { "PM" };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334][month as usize - 1];
    let day_of_year = before + day + u64::from(is_leap && month > 2);
    // Monday is 1, Sunday 7.
    let iso_weekday = (days + 3) % 7 + 1;

    let mut text = String::with_capacity(2 * format.len());
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            text.push(character);
            continue;
        }
        let mut directive = characters.next();
        // glibc's flag for "no padding".
        let is_bare = directive == Some('-');
        if is_bare {
            directive = characters.next();
        }
        let two = |value: u64| if is_bare { value.to_string() } else { format!("{value:02}") };
        let piece = match directive {
            Some('d') => two(day),
            Some('e') if !is_bare => format!("{day:2}"),
            Some('m') => two(month),
            Some('y') => two(year % 100),
            Some('Y') => year.to_string(),
            Some('H') => two(hour),
            Some('I') => two(hour_12),
            Some('M') => two(minute),
            Some('S') => two(second),
            Some('j') if is_bare => day_of_year.to_string(),
            Some('j') => format!("{day_of_year:03}"),
            Some('B') => month_name.to_owned(),
            Some('b' | 'h') => month_name[..3].to_owned(),
            Some('A') => weekday.to_owned(),
            Some('a') => weekday[..3].to_owned(),
            Some('u') => iso_weekday.to_string(),
            Some('w') => (iso_weekday % 7).to_string(),
            Some('p') => half.to_owned(),
            Some('f') => "000000".to_owned(),
            Some('F') => format!("{year}-{month:02}-{day:02}"),
            Some('T') => format!("{hour:02}:{minute:02}:{second:02}"),
            Some('R') => format!("{hour:02}:{minute:02}"),
            Some('D') => format!("{month:02}/{day:02}/{:02}", year % 100),
            Some('s') => seconds.to_string(),
            // A time without a zone has none to name.
            Some('z' | 'Z') => String::new(),
            Some('%') => "%".to_owned(),
            Some('n') => "\n".to_owned(),
            Some('t') => "\t".to_owned(),
            other => return Err(format!("%{}", other.map_or(String::new(), String::from))),
        };
        text.push_str(&piece);
    }
    Ok(text)
}

/// Year, month and day of a day after 1970 (Hinnant, "chrono-compatible low-level date algorithms",
/// `civil_from_days`).
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_python_writes_them() {
        // datetime.fromtimestamp(s, timezone.utc).replace(tzinfo=None).strftime(...)
        for (seconds, format, expected) in [
            (1_722_000_000, "%d %b %Y", "26 Jul 2024"),
            (1_709_210_096, "%A, %-d %B %y %H:%M:%S %j", "Thursday, 29 February 24 12:34:56 060"),
            (1_735_689_599, "%a %u %w %I:%M %p %F %T", "Tue 2 2 11:59 PM 2024-12-31 23:59:59"),
            (0, "%Y-%m-%d|%e|%%|%j", "1970-01-01| 1|%|001"),
            (951_827_696, "%D %R", "02/29/00 12:34"),
        ] {
            assert_eq!(strftime(seconds, format).unwrap(), expected);
        }
        assert_eq!(strftime(0, "%Q").unwrap_err(), "%Q");
        assert_eq!(strftime(0, "%").unwrap_err(), "%");
    }
}
