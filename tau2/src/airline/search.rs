//! How flights are looked for.

use spar_python::{Comparison, Outcome, Value, compare, equal, slice, to_int};

use crate::database::Database;
use crate::object::{attribute, object, set, shown};
use crate::reply::Reply;

/// Flights of a day that can be booked, in the order of the database.
fn direct(
    db: &Database,
    date: &Value,
    origin: &Value,
    destination: &Value,
    leave_after: Option<&Value>,
) -> Outcome<Vec<Value>> {
    let is_at =
        |wanted: &Value, found: &Value| matches!(wanted, Value::None) || equal(found, wanted);
    let mut found = Vec::new();
    for (_, flight) in db.rows("flights")? {
        if !is_at(origin, attribute(flight, "origin")?)
            || !is_at(destination, attribute(flight, "destination")?)
        {
            continue;
        }
        let dates = attribute(flight, "dates")?.as_dict();
        let Some(day) = dates.map(|dates| dates.get(date)).transpose()?.flatten() else {
            continue;
        };
        if attribute(day, "status")?.as_str() != Some("available") {
            continue;
        }
        let departure = attribute(flight, "scheduled_departure_time_est")?;
        if let Some(after) = leave_after
            && !compare(Comparison::GreaterOrEqual, departure, after)?
        {
            continue;
        }
        found.push(object([
            ("flight_number", attribute(flight, "flight_number")?.clone()),
            ("origin", attribute(flight, "origin")?.clone()),
            ("destination", attribute(flight, "destination")?.clone()),
            ("status", "available".into()),
            ("scheduled_departure_time_est", departure.clone()),
            (
                "scheduled_arrival_time_est",
                attribute(flight, "scheduled_arrival_time_est")?.clone(),
            ),
            ("date", Value::None),
            ("available_seats", attribute(day, "available_seats")?.clone()),
            ("prices", attribute(day, "prices")?.clone()),
        ]));
    }
    Ok(found)
}

/// Direct flights of a day.
///
/// # Errors
///
/// What the tool raises.
pub(super) fn search_direct(
    db: &Database,
    origin: &Value,
    destination: &Value,
    date: &Value,
) -> Outcome<Reply> {
    Ok(Reply::Models(Value::list(direct(db, date, origin, destination, None)?)))
}

/// Pairs of flights with one stop between.
///
/// # Errors
///
/// What the tool raises.
pub(super) fn search_with_stop(
    db: &Database,
    origin: &Value,
    destination: &Value,
    date: &Value,
) -> Outcome<Reply> {
    let mut pairs = Vec::new();
    for mut first in direct(db, date, origin, &Value::None, None)? {
        set(&mut first, "date", date.clone())?;
        let arrival = attribute(&first, "scheduled_arrival_time_est")?;
        let is_next_day = arrival.as_str().is_some_and(|text| text.contains("+1"));
        let next = match is_next_day {
            true => {
                let day = slice(date, &Value::from(-2_i64), &Value::None)?;
                Value::from(format!("2024-05-{}", to_int(&day)? + 1))
            }
            false => date.clone(),
        };
        let stop = attribute(&first, "destination")?;
        for mut second in direct(db, &next, stop, destination, Some(arrival))? {
            set(&mut second, "date", next.clone())?;
            pairs.push(Value::list([first.clone(), second]));
        }
    }
    Ok(Reply::Models(Value::list(pairs)))
}

/// The state of a flight on a day.
///
/// # Errors
///
/// What the tool raises.
pub(super) fn status(db: &Database, number: &Value, date: &Value) -> Outcome<Reply> {
    Ok(Reply::Text(shown(attribute(super::booking::instance(db, number, date)?, "status")?)?))
}
