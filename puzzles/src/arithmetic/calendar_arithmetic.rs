//! Questions about dates.

use num_traits::{Signed, ToPrimitive, Zero};

use crate::dates::{Date, MONTHS, WEEKDAYS, days_of, is_leap};
use crate::prelude::*;
use crate::text::title;

const TASKS: [&str; 7] = [
    "weekday_offset",
    "weekday_of_date",
    "weekday_of_date_from_first_date",
    "recurring_event_day",
    "count_days",
    "count_business_days",
    "is_leap_year",
];
const ASK_DAY: [&str; 9] = [
    "Answer with the weekday's name (e.g., Monday, Tuesday, etc.).",
    "Provide the full name of the weekday.",
    "State the weekday (Monday through Sunday).",
    "Give the weekday name in full.",
    "Reply with just the weekday name.",
    "Write out the full weekday name.",
    "Respond with the weekday (Monday-Sunday).",
    "Answer using the complete weekday name.",
    "Name the day of the week in full.",
];
const ASK_COUNT: [&str; 8] = [
    "Answer with a number.",
    "Provide the count as a number.",
    "Respond with just the number.",
    "Write the total number.",
    "Give the count numerically.",
    "State the amount as a number.",
    "Reply with the numerical value.",
    "Express your answer as a number.",
];

options! {
    /// Options of `calendar_arithmetic`.
    CalendarArithmeticOptions {
        /// The year that is asked about, 1000 to 9998. Default 2022.
        year: i64 = 2022,
        /// Kinds of questions: `weekday_offset`, `weekday_of_date`, `weekday_of_date_from_first_date`,
        /// `recurring_event_day`, `count_days`, `count_business_days`, `is_leap_year`. Default all.
        tasks: Vec<String> = texts(&TASKS),
        /// Most days between two dates, 1 to a million. Default 100.
        offset_upper_bound: i64 = 100,
        /// Years among which leap years are asked for, 0 to a million. Default 200.
        leap_year_range: i64 = 200,
    }
    |given, problems| {
        problems.between("year", given.year, 1000, 9998);
        problems.subset("tasks", &given.tasks, &TASKS);
        problems.between("offset_upper_bound", given.offset_upper_bound, 1, 1_000_000);
        problems.between("leap_year_range", given.leap_year_range, 0, 1_000_000);
    }
}

/// A question about dates and weekdays.
pub(crate) struct CalendarArithmetic;

impl Generator for CalendarArithmetic {
    type Options = CalendarArithmeticOptions;

    fn item(options: &CalendarArithmeticOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let task = rng.choice(&options.tasks)?.as_str();
        let item = match task {
            "weekday_offset" => weekday_offset(options, rng),
            "weekday_of_date" => weekday_of_date(options, rng),
            "weekday_of_date_from_first_date" => weekday_from_first(options, rng),
            "recurring_event_day" => recurring(options, rng),
            "count_days" => count_days(options, rng),
            "count_business_days" => count_business_days(options, rng),
            _ => leap_year(options, rng),
        }?;
        Ok(item.with("task", task))
    }

    fn score(_: &CalendarArithmeticOptions, answer: Option<&str>, item: &Item) -> f64 {
        let Some(answer) = answer.filter(|answer| !answer.is_empty()) else { return 0.0 };
        let (answer, gold) = (strip(answer), item.gold());
        match item.text("task") {
            "weekday_offset" | "weekday_of_date" | "weekday_of_date_from_first_date" => {
                if answer == gold {
                    1.0
                } else if WEEKDAYS.contains(&answer) {
                    0.1
                } else if WEEKDAYS.contains(&title(answer).as_str()) {
                    0.05
                } else {
                    0.0
                }
            }
            "is_leap_year" => f64::from(lower(answer) == lower(gold)),
            _ => {
                let (Some(given), Some(gold)) = (big_int(answer), big_int(gold)) else {
                    return 0.0;
                };
                if gold.is_zero() {
                    return f64::from(given.is_zero());
                }
                let distance = (given - &gold).abs().to_f64().unwrap_or(f64::INFINITY);
                (-5.0 * (distance / gold.to_f64().unwrap_or(1.0))).exp().max(0.0)
            }
        }
    }
}

fn out_of_range() -> ItemError {
    ItemError::raised("date value out of range")
}

fn date_of(rng: &mut Random, year: i64) -> Result<Date, ItemError> {
    let month = rng.int(1, 12)?;
    Ok(Date::new(year, month, rng.int(1, days_of(year, month))?))
}

fn date_between(rng: &mut Random, start: Date, end: Date) -> Result<Date, ItemError> {
    let days = rng.int(0, end.ordinal - start.ordinal)?;
    start.plus(days).ok_or_else(out_of_range)
}

fn weekday_offset(o: &CalendarArithmeticOptions, rng: &mut Random) -> Result<Item, ItemError> {
    let start = date_of(rng, o.year)?;
    let days = rng.int(1, o.offset_upper_bound)?;
    let is_back = *rng.choice(&[true, false])?;
    let target = start.plus(if is_back { -days } else { days }).ok_or_else(out_of_range)?;
    let date =
        format!("{}, {} {}, {}", start.weekday_name(), start.month_name(), start.day, start.year);
    let asked = match (is_back, rng.below(3)) {
        (false, 0) => {
            format!("If today is {date}, what day of the week will it be in {days} days? ")
        }
        (false, 1) => {
            format!("Starting from {date}, which weekday falls after a {days}-day jump? ")
        }
        (false, _) => format!("Count forward {days} days from {date} - what's the weekday? "),
        (true, 0) => format!("If today is {date}, what day of the week was it {days} days ago? "),
        (true, 1) => format!("Starting from {date}, which weekday was it {days} days before? "),
        (true, _) => format!("Count backward {days} days from {date} - what's the weekday? "),
    };
    Ok(Item::new(asked + rng.choice(&ASK_DAY)?, target.weekday_name()))
}

fn weekday_of_date(o: &CalendarArithmeticOptions, rng: &mut Random) -> Result<Item, ItemError> {
    let date = date_of(rng, o.year)?;
    let Date { year, month, day, .. } = date;
    let name = date.month_name();
    let asked = match rng.below(3) {
        0 => format!("What day of the week was {name} {day}, {year}?"),
        1 => format!("On which weekday did {name} {day}, {year} fall?"),
        _ => format!("Name the day of the week for {month:02}/{day:02}/{year}."),
    };
    Ok(Item::new(format!("{asked} {}", rng.choice(&ASK_DAY)?), date.weekday_name()))
}

fn weekday_from_first(o: &CalendarArithmeticOptions, rng: &mut Random) -> Result<Item, ItemError> {
    let first = rng.below(7) as usize;
    let (start, end) = (Date::new(o.year, 1, 1), Date::new(o.year, 12, 31));
    let last = start.plus(o.offset_upper_bound).map_or(end, |last| last.min(end));
    let target = loop {
        let target = date_between(rng, start, last)?;
        if target != start {
            break target;
        }
    };
    let days = (target.ordinal - start.ordinal) as usize;
    let (weekday, date) = (WEEKDAYS[first], format!("{} {}", target.month_name(), target.day));
    let asked = match rng.below(3) {
        0 => format!(
            "If the first day of the year was a {weekday}, what day of the week will {date} be? "
        ),
        1 => format!("Given that January 1 fell on a {weekday}, which weekday occurs on {date}? "),
        _ => format!("In a year where {weekday} is January 1st, name the weekday of {date}. "),
    };
    Ok(Item::new(asked + rng.choice(&ASK_DAY)?, WEEKDAYS[(first + days) % 7]))
}

fn recurring(o: &CalendarArithmeticOptions, rng: &mut Random) -> Result<Item, ItemError> {
    const ORDINALS: [&str; 5] = ["first", "second", "third", "fourth", "last"];
    let (year, month) = (o.year, rng.int(1, 12)?);
    let ordinal = rng.below(5) as usize;
    let weekday = rng.below(7) as usize;
    let days: Vec<i64> = (1..=days_of(year, month))
        .filter(|day| Date::new(year, month, *day).weekday() == weekday)
        .collect();
    let day = if ordinal == 4 { days.last() } else { days.get(ordinal) };
    let (ordinal, weekday, month) =
        (ORDINALS[ordinal], WEEKDAYS[weekday], MONTHS[month as usize - 1]);
    let asked = match rng.below(3) {
        0 => format!(
            "If a meeting is scheduled on the {ordinal} {weekday} of {month} {year}, on which day of the month does it occur? "
        ),
        1 => format!(
            "In {month} {year}, if an event recurs on the {ordinal} {weekday}, what is the date (day of the month) of the event? "
        ),
        _ => format!(
            "Determine the day of the month for the {ordinal} {weekday} in {month} {year}. "
        ),
    };
    let asked = asked
        + rng.choice(&ASK_COUNT)?
        + " Answer with -1 if the ordinal does not exist in the month.";
    Ok(Item::new(asked, day.copied().unwrap_or(-1)))
}

/// A date with its weekday, as `%A, %B` and the day.
fn told(date: Date) -> String {
    format!("{}, {} {}", date.weekday_name(), date.month_name(), date.day)
}

fn count_days(o: &CalendarArithmeticOptions, rng: &mut Random) -> Result<Item, ItemError> {
    let year = o.year;
    let last = Date::new(year, 12, 31);
    let start = date_between(rng, Date::new(year, 1, 1), last)?;
    let latest = start.plus(o.offset_upper_bound).ok_or_else(out_of_range)?.min(last);
    let end = date_between(rng, start, latest)?;
    let weekday = rng.below(7) as usize;
    let count = (start.ordinal..=end.ordinal).filter(|day| (day + 6) % 7 == weekday as i64).count();
    let (weekday, start, end) = (WEEKDAYS[weekday], told(start), told(end));
    let asked = match rng.below(3) {
        0 => format!(
            "How many {weekday}s are there from {start}, {year} to {end}, {year} (inclusive of both dates)? "
        ),
        1 => format!(
            "Count the occurrences of {weekday} from {start} to {end}, {year} (including both start and end dates). "
        ),
        _ => format!(
            "Between {start}, {year} and {end}, {year} (counting both dates), how many times does {weekday} occur? "
        ),
    };
    Ok(Item::new(asked + rng.choice(&ASK_COUNT)?, count))
}

fn count_business_days(o: &CalendarArithmeticOptions, rng: &mut Random) -> Result<Item, ItemError> {
    let year = o.year;
    let start = date_between(rng, Date::new(year, 1, 1), Date::new(year, 12, 31))?;
    let end = date_between(rng, start, start.plus(o.offset_upper_bound).ok_or_else(out_of_range)?)?;
    let count = (start.ordinal..=end.ordinal).filter(|day| (day + 6) % 7 < 5).count();
    let (start, end) = (told(start), told(end));
    let asked = match rng.below(3) {
        0 => format!(
            "How many business days (Monday-Friday) are there from {start}, {year} to {end}, {year} (inclusive of both dates)? "
        ),
        1 => format!(
            "Count the weekdays (excluding weekends) from {start} to {end}, {year} (including both start and end dates). "
        ),
        _ => format!(
            "Between {start}, {year} and {end}, {year} (counting both dates), what's the total count of business days (Monday through Friday)? "
        ),
    };
    Ok(Item::new(asked + rng.choice(&ASK_COUNT)?, count))
}

fn leap_year(o: &CalendarArithmeticOptions, rng: &mut Random) -> Result<Item, ItemError> {
    let half = o.leap_year_range / 2;
    let year = rng.int(o.year - half, o.year + half)?;
    let asked = match rng.below(3) {
        0 => format!("Determine if the year {year} is a leap year. "),
        1 => format!("Is {year} a leap year? "),
        _ => format!("Tell me whether {year} is a leap year. "),
    };
    Ok(Item::new(asked + "Answer with Yes or No.", if is_leap(year) { "Yes" } else { "No" }))
}
