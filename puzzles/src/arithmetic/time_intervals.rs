//! Times between two moments.

use crate::dates::Date;
use crate::prelude::*;

const KINDS: [&str; 6] = ["time", "time_seconds", "time_ms", "date", "datetime", "datetime_tz"];
const DAY: i64 = 86_400;
const DATE_FORMATS: [&str; 7] = [
    "%Y-%m-%d",
    "%B %d, %Y",
    "%m/%d/%Y",
    "%A, %B %d, %Y",
    "%a %b %d %Y",
    "%d %B %Y",
    "%Y-%m-%d (%A)",
];
const DATETIME_FORMATS: [&str; 9] = [
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M %z",
    "%Y-%m-%d %H:%M:%S %z",
    "%A, %B %d, %Y at %H:%M",
    "%a %b %d %Y %H:%M:%S",
    "%d %B %Y, %H:%M",
    "%d %B %Y, %H:%M %z",
    "%Y-%m-%d (%A) %H:%M:%S %z",
];
/// Questions, with what stands before, between and behind start, end and format.
const TEMPLATES: [[&str; 4]; 10] = [
    ["What is the duration between ", " and ", "? Please answer in ", "."],
    ["Calculate the time difference between ", " and ", ". Express the result in ", "."],
    ["How much time elapsed from ", " to ", "? Give your answer in ", "."],
    ["A meeting started at ", " and ended at ", ". How long was the meeting? Answer in ", "."],
    [
        "A system operation started at ",
        " and completed at ",
        ". What was the operation duration? Answer in ",
        ".",
    ],
    [
        "A database query started at ",
        " and ended at ",
        ". How long did the query take? Answer in ",
        ".",
    ],
    ["A flight departed at ", " and arrived at ", ". How long was the flight? Answer in ", "."],
    ["A video call started at ", " and ended at ", ". How long was the call? Answer in ", "."],
    [
        "A system backup started at ",
        " and completed at ",
        ". What was the total backup duration? Answer in ",
        ".",
    ],
    [
        "A conference call began at ",
        " and ended at ",
        ". How long was the conference? Answer in ",
        ".",
    ],
];

options! {
    /// Options of `time_intervals`.
    TimeIntervalsOptions {
        /// Most seconds between two moments, 1 to 10^9. Default 86400.
        max_time_difference_seconds: i64 = DAY,
        /// Most days between two dates, 1 to 100000. Default 100.
        max_date_difference_days: i64 = 100,
        /// Kinds of questions: `time`, `time_seconds`, `time_ms`, `date`, `datetime`, `datetime_tz`. Default all.
        task_types: Vec<String> = texts(&KINDS),
    }
    |given, problems| {
        problems.between("max_time_difference_seconds", given.max_time_difference_seconds, 1, 1_000_000_000);
        problems.between("max_date_difference_days", given.max_date_difference_days, 1, 100_000);
        problems.subset("task_types", &given.task_types, &KINDS);
    }
}

/// Two moments, the time between which is asked for. Dates are of 1900 to 3000, the package's defaults.
pub(crate) struct TimeIntervals;

/// Two moments as they are shown, what the answer looks like, and how many microseconds lie between them.
struct Interval {
    start: String,
    end: String,
    form: &'static str,
    microseconds: i64,
}

impl Generator for TimeIntervals {
    type Options = TimeIntervalsOptions;

    fn item(options: &TimeIntervalsOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let kind = rng.choice(&options.task_types)?.as_str();
        let interval = match kind {
            "date" => dates(options, rng)?,
            "datetime" | "datetime_tz" => moments(options, rng)?,
            _ => times(options, rng, kind)?,
        };
        let [before, between, behind, last] = *rng.choice(&TEMPLATES)?;
        let Interval { start, end, form, .. } = &interval;
        let question = format!("{before}{start}{between}{end}{behind}{form}{last}");
        Ok(Item::new(question, interval.told()).with("task_type", kind))
    }

    fn score(options: &TimeIntervalsOptions, answer: Option<&str>, item: &Item) -> f64 {
        let (Some(answer), gold) = (answer, item.gold()) else { return 0.0 };
        let (read, most): (fn(&str) -> Option<f64>, i64) = match item.text("task_type") {
            "date" => (read_days, options.max_date_difference_days),
            "datetime" | "datetime_tz" => (read_moment, options.max_date_difference_days * DAY),
            _ => (read_time, options.max_time_difference_seconds),
        };
        let (Some(given), Some(gold)) = (read(answer), read(gold)) else { return 0.0 };
        if given == gold {
            return 1.0;
        }
        (1.0 - (given - gold).abs() / most as f64).max(0.0)
    }
}

impl Interval {
    fn told(&self) -> String {
        // Python's `//` and `%`, by floats where the package has floats.
        let seconds = self.microseconds as f64 / 1e6;
        let rest = |divisor: f64| seconds.rem_euclid(divisor);
        let (hours, minutes) =
            ((seconds / 3600.0).floor() as i64, (rest(3600.0) / 60.0).floor() as i64);
        let days = self.microseconds.div_euclid(DAY * 1_000_000);
        let in_day = self.microseconds.rem_euclid(DAY * 1_000_000) / 1_000_000;
        match self.form {
            "HH:MM" => format!("{hours:02}:{minutes:02}"),
            "HH:MM:SS" => format!("{hours:02}:{minutes:02}:{:02}", rest(60.0) as i64),
            "HH:MM:SS.mmm" => {
                let thousandths = (rest(1.0) * 1000.0) as i64;
                format!("{hours:02}:{minutes:02}:{:02}.{thousandths:03}", rest(60.0) as i64)
            }
            "D days" => format!("{days} days"),
            "D days, HH:MM:SS" => format!(
                "{days} days, {:02}:{:02}:{:02}",
                in_day / 3600,
                in_day % 3600 / 60,
                in_day % 60
            ),
            _ => format!("{days} days, {:02}:{:02}", in_day / 3600, in_day % 3600 / 60),
        }
    }
}

fn times(o: &TimeIntervalsOptions, rng: &mut Random, kind: &str) -> Result<Interval, ItemError> {
    let (hour, minute, second) = (rng.int(0, 23)?, rng.int(0, 59)?, rng.int(0, 59)?);
    let start = hour * 3600 + minute * 60 + second;
    let most = o.max_time_difference_seconds.min(DAY - start);
    let difference = rng.int(1, most)?;
    let (mut start, mut end) = (start * 1_000_000, (start + difference) * 1_000_000);
    if kind == "time_ms" {
        let fraction = rng.int(0, 999)? * 1000;
        start += fraction;
        end += fraction + rng.int(0, 999)? * 1000;
    }
    // Only the time of the day is shown, so that midnight comes before the start.
    let end = end % (DAY * 1_000_000);
    let shown = |moment: i64| {
        let seconds = moment / 1_000_000;
        let (hour, minute, second) = (seconds / 3600, seconds % 3600 / 60, seconds % 60);
        match kind {
            "time" => format!("{hour:02}:{minute:02}"),
            "time_seconds" => format!("{hour:02}:{minute:02}:{second:02}"),
            _ => format!("{hour:02}:{minute:02}:{second:02}.{:03}", moment / 1000 % 1000),
        }
    };
    let (form, unit) = match kind {
        "time" => ("HH:MM", 60_000_000),
        "time_seconds" => ("HH:MM:SS", 1_000_000),
        _ => ("HH:MM:SS.mmm", 1_000),
    };
    let microseconds = (end / unit - start / unit) * unit;
    Ok(Interval { start: shown(start), end: shown(end), form, microseconds })
}

/// A date and seconds within it, in a format of Python's; `offset` is what stands for `%z`.
fn shown(date: Date, seconds: i64, format: &str, offset: &str) -> String {
    let mut out = String::new();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            out.push(letter);
            continue;
        }
        match letters.next().unwrap_or('%') {
            'Y' => out.push_str(&date.year.to_string()),
            'm' => out.push_str(&format!("{:02}", date.month)),
            'd' => out.push_str(&format!("{:02}", date.day)),
            'B' => out.push_str(date.month_name()),
            'b' => out.push_str(&date.month_name()[..3]),
            'A' => out.push_str(date.weekday_name()),
            'a' => out.push_str(&date.weekday_name()[..3]),
            'H' => out.push_str(&format!("{:02}", seconds / 3600)),
            'M' => out.push_str(&format!("{:02}", seconds % 3600 / 60)),
            'S' => out.push_str(&format!("{:02}", seconds % 60)),
            _ => out.push_str(offset),
        }
    }
    out
}

fn first_date() -> Date {
    Date::new(1900, 1, 1)
}

fn day(offset: i64) -> Result<Date, ItemError> {
    first_date().plus(offset).ok_or_else(|| ItemError::raised("date value out of range"))
}

fn dates(o: &TimeIntervalsOptions, rng: &mut Random) -> Result<Interval, ItemError> {
    let format = *rng.choice(&DATE_FORMATS)?;
    let all = Date::new(3000, 1, 1).ordinal - first_date().ordinal;
    let most = o.max_date_difference_days.min(all);
    let start = rng.int(0, all - most - 1)?;
    let days = rng.int(0, most)?;
    let shown = |offset: i64| day(offset).map(|date| shown(date, 0, format, ""));
    let microseconds = days * DAY * 1_000_000;
    Ok(Interval { start: shown(start)?, end: shown(start + days)?, form: "D days", microseconds })
}

fn moments(o: &TimeIntervalsOptions, rng: &mut Random) -> Result<Interval, ItemError> {
    let format = *rng.choice(&DATETIME_FORMATS)?;
    let form = *rng.choice(&["D days, HH:MM", "D days, HH:MM:SS"])?;
    let all = Date::new(3000, 1, 1).ordinal - first_date().ordinal;
    let start_day = rng.int(0, all)?;
    let (hour, minute, second) = (rng.int(0, 23)?, rng.int(0, 59)?, rng.int(0, 59)?);
    let days = rng.int(0, o.max_date_difference_days)?;
    let seconds = rng.int(1, o.max_time_difference_seconds)?;
    let mut offsets = [0, 0];
    if format.contains("%z") {
        offsets = [rng.int(-12, 12)?, rng.int(-12, 12)?];
    }
    let start = start_day * DAY + hour * 3600 + minute * 60 + second;
    let moments = [start, start + days * DAY + seconds];
    let (mut texts, mut read) = (Vec::new(), Vec::new());
    for (moment, offset) in moments.into_iter().zip(offsets) {
        let sign = if offset < 0 { '-' } else { '+' };
        let zone = format!("{sign}{:04}", offset.abs() * 100);
        texts.push(shown(day(moment / DAY)?, moment % DAY, format, &zone));
        // What is not shown is not read again: seconds, and all behind a weekday in parentheses.
        read.push(match format {
            _ if format.contains('(') => moment / DAY * DAY,
            _ if format.contains("%S") => moment - offset * 3600,
            _ => moment / 60 * 60 - offset * 3600,
        });
    }
    let microseconds = (read[1] - read[0]) * 1_000_000;
    let end = texts.pop().unwrap_or_default();
    Ok(Interval { start: texts.pop().unwrap_or_default(), end, form, microseconds })
}

/// `int(text)` as a float.
fn big_float(text: &str) -> Option<f64> {
    use num_traits::ToPrimitive;

    big_int(text)?.to_f64().filter(|value| value.is_finite())
}

/// The number that a text begins with.
fn read_days(text: &str) -> Option<f64> {
    words(text).next().and_then(big_float)
}

/// Seconds of `HH:MM`, `HH:MM:SS` or `HH:MM:SS.mmm`.
fn read_time(text: &str) -> Option<f64> {
    let mut parts = strip(text).split(':');
    let mut seconds = big_float(parts.next()?)? * 3600.0 + big_float(parts.next()?)? * 60.0;
    if let Some(last) = parts.next() {
        match last.contains('.') {
            true => {
                let (whole, thousandths) = last.split_once('.')?;
                if thousandths.contains('.') {
                    return None;
                }
                seconds += big_float(whole)? + big_float(thousandths)? / 1000.0;
            }
            false => seconds += big_float(last)?,
        }
    }
    Some(seconds)
}

/// Seconds of `D days, HH:MM` or `D days, HH:MM:SS`.
fn read_moment(text: &str) -> Option<f64> {
    let days = big_float(text.split(" days,").next()?)?;
    let mut parts = strip(text.split(',').nth(1)?).split(':');
    let mut seconds = big_float(parts.next()?)? * 3600.0 + big_float(parts.next()?)? * 60.0;
    if let Some(last) = parts.next() {
        seconds += big_float(last)?;
    }
    Some(days * DAY as f64 + seconds)
}
