//! How reservations are made and changed.

use spar_python::BinaryOperator::{Add, Multiply, Subtract};
use spar_python::{
    Comparison, Dict, Exception, Outcome, Value, binary, compare, equal, iterate, length, negate,
    subscript,
};

use super::data::{FLIGHT_INFO, PASSENGER, PAYMENT, RESERVATION, RESERVATION_FLIGHT};
use super::tools::{no_reservation, no_user, reservation, user};
use crate::database::Database;
use crate::object::{attribute, attribute_mut, in_place, list_mut, refuse, set, shown};
use crate::reply::Reply;
use crate::schema::Model;
use crate::signature::Arguments;
use crate::validate::{make, validate};

/// Ids of reservations that are still free for new ones.
const NEW_RESERVATIONS: [&str; 3] = ["HATHAT", "HATHAU", "HATHAV"];
/// The time it is.
const NOW: &str = "2024-05-15T15:00:00";

/// A list that was given: objects where each of its elements was a dictionary, else what was given.
struct Given {
    value: Value,
    are_objects: bool,
}

impl Given {
    fn read(model: &'static Model, value: &Value) -> Outcome<Self> {
        let items = iterate(value)?;
        if items.iter().any(|item| item.as_dict().is_none()) {
            return Ok(Self { value: value.clone(), are_objects: false });
        }
        let items = items.iter().map(|item| validate(model, item)).collect::<Outcome<Vec<_>>>()?;
        Ok(Self { value: Value::list(items), are_objects: true })
    }

    fn items(&self) -> Outcome<Vec<Value>> {
        iterate(&self.value)
    }

    /// An attribute of an element, which dictionaries that were left as they are do not have.
    fn attribute(&self, item: &Value, name: &str) -> Outcome<Value> {
        match self.are_objects {
            true => attribute(item, name).cloned(),
            false => Err(Exception::no_attribute(item.type_name(), name)),
        }
    }
}

/// A flight.
fn flight<'d>(db: &'d Database, number: &Value) -> Outcome<&'d Value> {
    match db.row("flights", number)? {
        Some(flight) => Ok(flight),
        None => refuse(format_args!("Flight {} not found", shown(number)?)),
    }
}

/// A flight on a day.
///
/// # Errors
///
/// The `ValueError` of one that there is not, the `TypeError` of what cannot be looked up.
pub(super) fn instance<'d>(db: &'d Database, number: &Value, date: &Value) -> Outcome<&'d Value> {
    let dates = attribute(flight(db, number)?, "dates")?.as_dict();
    match dates.map(|dates| dates.get(date)).transpose()?.flatten() {
        Some(day) => Ok(day),
        None => {
            let (number, date) = (shown(number)?, shown(date)?);
            refuse(format_args!("Flight {number} not found on date {date}"))
        }
    }
}

/// A flight that can be booked, with so many seats left; its price.
fn bookable(
    db: &Database,
    number: &Value,
    date: &Value,
    cabin: &Value,
    seats: usize,
) -> Outcome<Value> {
    let day = instance(db, number, date)?;
    if attribute(day, "status")?.as_str() != Some("available") {
        let (number, date) = (shown(number)?, shown(date)?);
        return refuse(format_args!("Flight {number} not available on date {date}"));
    }
    let left = subscript(attribute(day, "available_seats")?, cabin)?;
    if compare(Comparison::Less, &left, &Value::from(seats))? {
        return refuse(format_args!("Not enough seats on flight {}", shown(number)?));
    }
    subscript(attribute(day, "prices")?, cabin)
}

fn reserved(db: &Database, number: &Value, date: &Value, price: Value) -> Outcome<Value> {
    let flight = flight(db, number)?;
    Ok(RESERVATION_FLIGHT.object(vec![
        number.clone(),
        attribute(flight, "origin")?.clone(),
        attribute(flight, "destination")?.clone(),
        date.clone(),
        price,
    ]))
}

fn is_source(method: &Value, sources: &[&str]) -> bool {
    let source = attribute(method, "source").ok().and_then(Value::as_str);
    source.is_some_and(|source| sources.contains(&source))
}

fn methods_mut<'d>(db: &'d mut Database, user_id: &Value) -> Outcome<&'d mut Dict> {
    let Some(user) = db.row_mut("users", user_id)? else {
        return no_user(user_id);
    };
    let methods = attribute_mut(user, "payment_methods")?;
    let type_name = methods.type_name();
    methods.as_dict_mut().ok_or_else(|| Exception::no_attribute(type_name, "pop"))
}

/// Books a reservation.
///
/// # Errors
///
/// What the tool raises.
pub(super) fn book(db: &mut Database, arguments: &Arguments) -> Outcome<Reply> {
    let argument = |place| arguments.get(place);
    let (user_id, cabin, nonfree, insurance) =
        (argument(0), argument(4), argument(9), argument(10));
    let flights = Given::read(&FLIGHT_INFO, argument(5))?;
    let passengers = Given::read(&PASSENGER, argument(6))?;
    let payments = Given::read(&PAYMENT, argument(7))?;
    let methods = attribute(user(db, user_id)?, "payment_methods")?.clone();
    let new_id = free_id(db)?;
    let mut reservation = make(
        &RESERVATION,
        [
            ("reservation_id", new_id.clone()),
            ("user_id", user_id.clone()),
            ("origin", argument(1).clone()),
            ("destination", argument(2).clone()),
            ("flight_type", argument(3).clone()),
            ("cabin", cabin.clone()),
            ("flights", Value::list([])),
            ("passengers", passengers.value.clone()),
            ("payment_history", payments.value.clone()),
            ("created_at", NOW.into()),
            ("total_baggages", argument(8).clone()),
            ("nonfree_baggages", nonfree.clone()),
            ("insurance", insurance.clone()),
        ],
    )?;
    // 1. What it costs.
    let num_passengers = length(&passengers.value)?;
    let heads = Value::from(num_passengers);
    let mut total = Value::from(0_i64);
    let mut booked = Vec::new();
    for info in flights.items()? {
        let number = flights.attribute(&info, "flight_number")?;
        flight(db, &number)?;
        let date = flights.attribute(&info, "date")?;
        let price = bookable(db, &number, &date, cabin, num_passengers)?;
        total = in_place(Add, &total, &binary(Multiply, &price, &heads)?)?;
        list_mut(&mut reservation, "flights")?.push(reserved(db, &number, &date, price)?);
        booked.push((number, date));
    }
    if insurance.as_str() == Some("yes") {
        total = in_place(Add, &total, &binary(Multiply, &Value::from(30_i64), &heads)?)?;
    }
    total = in_place(Add, &total, &binary(Multiply, &Value::from(50_i64), nonfree)?)?;
    // 2. Whether it is paid.
    let mut paid = Vec::new();
    for payment in payments.items()? {
        let id = payments.attribute(&payment, "payment_id")?;
        let amount = payments.attribute(&payment, "amount")?;
        let method = methods.as_dict().map(|methods| methods.get(&id)).transpose()?.flatten();
        let Some(method) = method else {
            return refuse(format_args!("Payment method {} not found", shown(&id)?));
        };
        if is_source(method, &["gift_card", "certificate"])
            && compare(Comparison::Less, attribute(method, "amount")?, &amount)?
        {
            return refuse(format_args!("Not enough balance in payment method {}", shown(&id)?));
        }
        paid.push((id, amount));
    }
    let mut sum = Value::from(0_i64);
    for (_, amount) in &paid {
        sum = binary(Add, &sum, amount)?;
    }
    if !equal(&sum, &total) {
        let (total, sum) = (shown(&total)?, shown(&sum)?);
        return refuse(format_args!(
            "Payment amount does not add up, total price is {total}, but paid {sum}"
        ));
    }
    // 3. Everything holds: take the money, the seats, and note it.
    for (id, amount) in &paid {
        let methods = methods_mut(db, user_id)?;
        let Some(method) = methods.get_mut(id)? else { return Err(Exception::key_error(id)) };
        if is_source(method, &["gift_card"]) {
            let left = in_place(Subtract, attribute(method, "amount")?, amount)?;
            set(method, "amount", left)?;
        } else if is_source(method, &["certificate"]) {
            methods.remove(id)?;
        }
    }
    for (number, date) in &booked {
        let Some(flight) = db.row_mut("flights", number)? else { continue };
        let Some(dates) = attribute_mut(flight, "dates")?.as_dict_mut() else { continue };
        let Some(day) = dates.get_mut(date)? else { continue };
        let Some(seats) = attribute_mut(day, "available_seats")?.as_dict_mut() else { continue };
        if let Some(left) = seats.get_mut(cabin)? {
            *left = in_place(Subtract, left, &heads)?;
        }
    }
    db.insert("reservations", new_id.clone(), reservation.clone())?;
    let Some(user) = db.row_mut("users", user_id)? else {
        return Err(Exception::key_error(user_id));
    };
    list_mut(user, "reservations")?.push(new_id);
    Ok(Reply::Models(reservation))
}

fn free_id(db: &Database) -> Outcome<Value> {
    for id in NEW_RESERVATIONS {
        let id = Value::from(id);
        if db.row("reservations", &id)?.is_none() {
            return Ok(id);
        }
    }
    refuse("Too many reservations")
}

/// Takes the price of a change from a payment method; what is noted of it, unless nothing was to be paid.
fn pay_for_update(
    db: &mut Database,
    user_id: &Value,
    id: &Value,
    price: &Value,
) -> Outcome<Option<Value>> {
    let methods = attribute(user(db, user_id)?, "payment_methods")?.as_dict();
    let Some(method) = methods.map(|methods| methods.get(id)).transpose()?.flatten() else {
        return refuse("Payment method not found");
    };
    if is_source(method, &["certificate"]) {
        return refuse("Certificate cannot be used to update reservation");
    }
    if is_source(method, &["gift_card"]) {
        if compare(Comparison::Less, attribute(method, "amount")?, price)? {
            return refuse("Gift card balance is not enough");
        }
        if let Some(method) = methods_mut(db, user_id)?.get_mut(id)? {
            let left = in_place(Subtract, attribute(method, "amount")?, price)?;
            set(method, "amount", left)?;
        }
    }
    if equal(price, &Value::from(0_i64)) {
        return Ok(None);
    }
    let fields = [("payment_id", id.clone()), ("amount", price.clone())];
    Ok(Some(make(&PAYMENT, fields)?))
}

fn reservation_mut<'d>(db: &'d mut Database, id: &Value) -> Outcome<&'d mut Value> {
    match db.row_mut("reservations", id)? {
        Some(reservation) => Ok(reservation),
        None => no_reservation(id),
    }
}

/// Changes how much baggage a reservation has.
///
/// # Errors
///
/// What the tool raises.
pub(super) fn update_baggages(
    db: &mut Database,
    id: &Value,
    total: &Value,
    nonfree: &Value,
    payment_id: &Value,
) -> Outcome<Reply> {
    let old = reservation(db, id)?;
    let user_id = attribute(old, "user_id")?.clone();
    user(db, &user_id)?;
    let more = binary(Subtract, nonfree, attribute(old, "nonfree_baggages")?)?;
    let zero = Value::from(0_i64);
    let more = if compare(Comparison::Greater, &more, &zero)? { more } else { zero };
    let price = binary(Multiply, &Value::from(50_i64), &more)?;
    let paid = pay_for_update(db, &user_id, payment_id, &price)?;
    let reservation = reservation_mut(db, id)?;
    list_mut(reservation, "payment_history")?.extend(paid);
    set(reservation, "total_baggages", total.clone())?;
    set(reservation, "nonfree_baggages", nonfree.clone())?;
    Ok(Reply::Models(reservation.clone()))
}

/// Changes the flights of a reservation.
///
/// # Errors
///
/// What the tool raises.
pub(super) fn update_flights(
    db: &mut Database,
    id: &Value,
    cabin: &Value,
    flights: &Value,
    payment_id: &Value,
) -> Outcome<Reply> {
    let flights = Given::read(&FLIGHT_INFO, flights)?;
    let old = reservation(db, id)?.clone();
    let user_id = attribute(&old, "user_id")?.clone();
    user(db, &user_id)?;
    let old_flights = iterate(attribute(&old, "flights")?)?;
    let passengers = attribute(&old, "passengers")?;
    let mut total = Value::from(0_i64);
    let mut new_flights = Vec::new();
    for info in flights.items()? {
        let is_cabin = equal(cabin, attribute(&old, "cabin")?);
        // What is looked at first in an element that is no object is the number, unless nothing is compared with it.
        let number = flights.attribute(&info, "flight_number")?;
        let date = flights.attribute(&info, "date")?;
        let kept = old_flights.iter().find(|flight| {
            let is = |name, value| attribute(flight, name).is_ok_and(|found| equal(found, value));
            is_cabin && is("flight_number", &number) && is("date", &date)
        });
        let flight = match kept {
            Some(flight) => flight.clone(),
            None => {
                flight(db, &number)?;
                let price = bookable(db, &number, &date, cabin, length(passengers)?)?;
                reserved(db, &number, &date, price)?
            }
        };
        let heads = Value::from(length(passengers)?);
        let price = binary(Multiply, attribute(&flight, "price")?, &heads)?;
        total = in_place(Add, &total, &price)?;
        new_flights.push(flight);
    }
    let mut paid_before = Value::from(0_i64);
    for flight in &old_flights {
        paid_before = binary(Add, &paid_before, attribute(flight, "price")?)?;
    }
    let heads = Value::from(length(passengers)?);
    let total = in_place(Subtract, &total, &binary(Multiply, &paid_before, &heads)?)?;
    let paid = pay_for_update(db, &user_id, payment_id, &total)?;
    let reservation = reservation_mut(db, id)?;
    list_mut(reservation, "payment_history")?.extend(paid);
    set(reservation, "flights", Value::list(new_flights))?;
    set(reservation, "cabin", cabin.clone())?;
    Ok(Reply::Models(reservation.clone()))
}

/// Changes who flies.
///
/// # Errors
///
/// What the tool raises.
pub(super) fn update_passengers(
    db: &mut Database,
    id: &Value,
    passengers: &Value,
) -> Outcome<Reply> {
    let passengers = Given::read(&PASSENGER, passengers)?;
    let old = attribute(reservation(db, id)?, "passengers")?;
    if length(&passengers.value)? != length(old)? {
        return refuse("Number of passengers does not match");
    }
    let reservation = reservation_mut(db, id)?;
    set(reservation, "passengers", passengers.value)?;
    Ok(Reply::Models(reservation.clone()))
}

/// Cancels a reservation, and notes that everything is paid back.
///
/// # Errors
///
/// What the tool raises.
pub(super) fn cancel(db: &mut Database, id: &Value) -> Outcome<Reply> {
    let mut refunds = Vec::new();
    for payment in iterate(attribute(reservation(db, id)?, "payment_history")?)? {
        let fields = [
            ("payment_id", attribute(&payment, "payment_id")?.clone()),
            ("amount", negate(attribute(&payment, "amount")?)?),
        ];
        refunds.push(make(&PAYMENT, fields)?);
    }
    let reservation = reservation_mut(db, id)?;
    list_mut(reservation, "payment_history")?.extend(refunds);
    set(reservation, "status", "cancelled".into())?;
    Ok(Reply::Models(reservation.clone()))
}
