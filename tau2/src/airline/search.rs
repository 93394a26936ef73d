//! How flights are looked for.

use spar_python::{Comparison, Outcome, Value, compare, equal, json_dumps_to, slice, to_int};

use crate::database::{Database, Key};
use crate::object::{attribute, shown};
use crate::reply::Reply;

/// Flights by where they leave.
const ORIGIN: Key = Key { slot: 0, texts: |flight| airport(flight, "origin") };
/// Flights by where they go.
const DESTINATION: Key = Key { slot: 1, texts: |flight| airport(flight, "destination") };

fn airport(flight: &Value, end: &str) -> Vec<String> {
    let code = attribute(flight, end).ok().and_then(Value::as_str);
    code.into_iter().map(str::to_owned).collect()
}

/// A flight on a day that can be booked.
struct Bookable<'d> {
    flight: &'d Value,
    day: &'d Value,
}

/// Flights of a day that can be booked, in the order of the database.
fn direct<'d>(
    db: &'d Database,
    date: &Value,
    origin: &Value,
    destination: &Value,
    leave_after: Option<&Value>,
) -> Outcome<Vec<Bookable<'d>>> {
    let is_at =
        |wanted: &Value, found: &Value| matches!(wanted, Value::None) || equal(found, wanted);
    let flights = match (origin.as_str(), destination.as_str()) {
        (Some(origin), _) => db.rows_under("flights", &ORIGIN, origin)?,
        (None, Some(destination)) => db.rows_under("flights", &DESTINATION, destination)?,
        (None, None) => db.rows("flights")?.collect(),
    };
    let mut found = Vec::new();
    for (_, flight) in flights {
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
        if let Some(after) = leave_after {
            let departure = attribute(flight, "scheduled_departure_time_est")?;
            if !compare(Comparison::GreaterOrEqual, departure, after)? {
                continue;
            }
        }
        found.push(Bookable { flight, day });
    }
    Ok(found)
}

impl Bookable<'_> {
    /// Writes the flight as the object that a search finds.
    fn write(&self, date: &Value, out: &mut String) -> Outcome<()> {
        let of = |object, name| attribute(object, name).map(|value| (name, value));
        let fields = [
            of(self.flight, "flight_number")?,
            of(self.flight, "origin")?,
            of(self.flight, "destination")?,
            of(self.day, "status")?,
            of(self.flight, "scheduled_departure_time_est")?,
            of(self.flight, "scheduled_arrival_time_est")?,
            ("date", date),
            of(self.day, "available_seats")?,
            of(self.day, "prices")?,
        ];
        for (at, (name, value)) in fields.into_iter().enumerate() {
            out.push_str(if at == 0 { "{\"" } else { ", \"" });
            out.push_str(name);
            out.push_str("\": ");
            json_dumps_to(value, out)?;
        }
        out.push('}');
        Ok(())
    }
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
    let mut found = String::from("[");
    for flight in direct(db, date, origin, destination, None)? {
        if found.len() > 1 {
            found.push_str(", ");
        }
        flight.write(&Value::None, &mut found)?;
    }
    found.push(']');
    Ok(Reply::Written(found))
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
    let mut found = String::from("[");
    for first in direct(db, date, origin, &Value::None, None)? {
        let arrival = attribute(first.flight, "scheduled_arrival_time_est")?;
        let is_next_day = arrival.as_str().is_some_and(|text| text.contains("+1"));
        let next = match is_next_day {
            true => {
                let day = slice(date, &Value::from(-2_i64), &Value::None)?;
                Value::from(format!("2024-05-{}", to_int(&day)? + 1))
            }
            false => date.clone(),
        };
        let stop = attribute(first.flight, "destination")?;
        for second in direct(db, &next, stop, destination, Some(arrival))? {
            found.push_str(if found.len() > 1 { ", [" } else { "[" });
            first.write(date, &mut found)?;
            found.push_str(", ");
            second.write(&next, &mut found)?;
            found.push(']');
        }
    }
    found.push(']');
    Ok(Reply::Written(found))
}

/// The state of a flight on a day.
///
/// # Errors
///
/// What the tool raises.
pub(super) fn status(db: &Database, number: &Value, date: &Value) -> Outcome<Reply> {
    Ok(Reply::Text(shown(attribute(super::booking::instance(db, number, date)?, "status")?)?))
}
