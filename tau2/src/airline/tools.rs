//! What the agent of the domain airline can do.

use spar_python::{Outcome, Value};

use super::data::{CABINS, CERTIFICATE, TRIPS};
use super::{booking, search};
use crate::calculate::calculate;
use crate::database::Database;
use crate::object::{attribute, attribute_mut, object, refuse, shown};
use crate::reply::Reply;
use crate::signature::ArgumentType::{Int, Objects, OneOf, Str};
use crate::signature::ToolKind::{Generic, Read, Write};
use crate::signature::{Arguments, Parameter, Signature, argument};
use crate::validate::make;

const RESERVATION_ID: Parameter = argument("reservation_id", Str, "The reservation, as `ZFA04Y`.");
const USER_ID: Parameter = argument("user_id", Str, "The user, as `sara_doe_496`.");
const CABIN: Parameter = argument("cabin", OneOf(CABINS), "The class of the seats.");
const PAYMENT_ID: Parameter =
    argument("payment_id", Str, "What pays, as `credit_card_7815826`; the user's details list it.");
const PASSENGERS: Parameter = argument(
    "passengers",
    Objects(&["first_name", "last_name", "dob"]),
    "Who flies, with day of birth as YYYY-MM-DD.",
);
const ORIGIN: Parameter = argument("origin", Str, "Where from, in three letters, as `JFK`.");
const DESTINATION: Parameter = argument("destination", Str, "Where to, in three letters.");
const DATE: Parameter = argument("date", Str, "The day, as YYYY-MM-DD.");

/// The tools.
pub(crate) const SIGNATURES: &[Signature] = &[
    Signature {
        name: "book_reservation",
        kind: Write,
        parameters: &[
            USER_ID,
            ORIGIN,
            DESTINATION,
            argument("flight_type", OneOf(TRIPS), "The type of the trip."),
            CABIN,
            argument("flights", Objects(&["flight_number", "date"]), "The flights, in order."),
            PASSENGERS,
            argument(
                "payment_methods",
                Objects(&["payment_id", "#amount"]),
                "What pays how many dollars.",
            ),
            argument("total_baggages", Int, "How many pieces of baggage there are."),
            argument("nonfree_baggages", Int, "How many of these are paid for."),
            argument("insurance", OneOf(&["yes", "no"]), "Whether the trip is insured."),
        ],
        about: "Books a reservation.",
    },
    Signature {
        name: "calculate",
        kind: Generic,
        parameters: &[argument("expression", Str, "Numbers, + - * /, parentheses and blanks.")],
        about: "Computes an expression.",
    },
    Signature {
        name: "cancel_reservation",
        kind: Write,
        parameters: &[RESERVATION_ID],
        about: "Cancels a whole reservation.",
    },
    Signature {
        name: "get_reservation_details",
        kind: Read,
        parameters: &[RESERVATION_ID],
        about: "Shows a reservation.",
    },
    Signature {
        name: "get_user_details",
        kind: Read,
        parameters: &[USER_ID],
        about: "Shows a user and the user's reservations.",
    },
    Signature {
        name: "list_all_airports",
        kind: Read,
        parameters: &[],
        about: "Lists all airports and their cities.",
    },
    Signature {
        name: "search_direct_flight",
        kind: Read,
        parameters: &[ORIGIN, DESTINATION, DATE],
        about: "Finds direct flights of a day.",
    },
    Signature {
        name: "search_onestop_flight",
        kind: Read,
        parameters: &[ORIGIN, DESTINATION, DATE],
        about: "Finds pairs of flights of a day with one stop between.",
    },
    Signature {
        name: "send_certificate",
        kind: Write,
        parameters: &[USER_ID, argument("amount", Int, "What it is worth, in dollars.")],
        about: "Gives a user a certificate. It cannot be taken back.",
    },
    Signature {
        name: "transfer_to_human_agents",
        kind: Generic,
        parameters: &[argument("summary", Str, "What the user's problem is, in short.")],
        about: "Hands the user over to a human. Only where the user asks for one, or where neither the policy nor the tools allow to solve the problem.",
    },
    Signature {
        name: "update_reservation_baggages",
        kind: Write,
        parameters: &[
            RESERVATION_ID,
            argument("total_baggages", Int, "How many pieces of baggage there are then."),
            argument("nonfree_baggages", Int, "How many of these are paid for then."),
            PAYMENT_ID,
        ],
        about: "Changes how much baggage a reservation has.",
    },
    Signature {
        name: "update_reservation_flights",
        kind: Write,
        parameters: &[
            RESERVATION_ID,
            CABIN,
            argument(
                "flights",
                Objects(&["flight_number", "date"]),
                "All flights of the reservation as they are to be, those that stay included.",
            ),
            PAYMENT_ID,
        ],
        about: "Changes the flights or the class of a reservation.",
    },
    Signature {
        name: "update_reservation_passengers",
        kind: Write,
        parameters: &[RESERVATION_ID, PASSENGERS],
        about: "Changes who flies, as many as before.",
    },
    Signature {
        name: "get_flight_status",
        kind: Read,
        parameters: &[argument("flight_number", Str, "The flight, as `HAT001`."), DATE],
        about: "Tells the state of a flight on a day.",
    },
];

/// The airports, by code and city.
const AIRPORTS: [(&str, &str); 20] = [
    ("SFO", "San Francisco"),
    ("JFK", "New York"),
    ("LAX", "Los Angeles"),
    ("ORD", "Chicago"),
    ("DFW", "Dallas"),
    ("DEN", "Denver"),
    ("SEA", "Seattle"),
    ("ATL", "Atlanta"),
    ("MIA", "Miami"),
    ("BOS", "Boston"),
    ("PHX", "Phoenix"),
    ("IAH", "Houston"),
    ("LAS", "Las Vegas"),
    ("MCO", "Orlando"),
    ("EWR", "Newark"),
    ("CLT", "Charlotte"),
    ("MSP", "Minneapolis"),
    ("DTW", "Detroit"),
    ("PHL", "Philadelphia"),
    ("LGA", "LaGuardia"),
];

/// Ends of the ids of certificates that are still free for new ones.
const NEW_CERTIFICATES: [u32; 3] = [3_221_322, 3_221_323, 3_221_324];

/// Carries out a tool of [`SIGNATURES`].
///
/// # Errors
///
/// What the tool raises.
pub(crate) fn call(db: &mut Database, name: &str, arguments: &Arguments) -> Outcome<Reply> {
    let argument = |place| arguments.get(place);
    match name {
        "book_reservation" => booking::book(db, arguments),
        "calculate" => calculate(argument(0)),
        "cancel_reservation" => booking::cancel(db, argument(0)),
        "get_reservation_details" => match db.reply("reservations", argument(0))? {
            Some(reply) => Ok(reply),
            None => no_reservation(argument(0)),
        },
        "get_user_details" => match db.reply("users", argument(0))? {
            Some(reply) => Ok(reply),
            None => no_user(argument(0)),
        },
        "list_all_airports" => {
            let airports =
                AIRPORTS.map(|(code, city)| object([("iata", code.into()), ("city", city.into())]));
            Ok(Reply::Models(Value::list(airports)))
        }
        "search_direct_flight" => search::search_direct(db, argument(0), argument(1), argument(2)),
        "search_onestop_flight" => {
            search::search_with_stop(db, argument(0), argument(1), argument(2))
        }
        "send_certificate" => send_certificate(db, argument(0), argument(1)),
        "update_reservation_baggages" => {
            booking::update_baggages(db, argument(0), argument(1), argument(2), argument(3))
        }
        "update_reservation_flights" => {
            booking::update_flights(db, argument(0), argument(1), argument(2), argument(3))
        }
        "update_reservation_passengers" => booking::update_passengers(db, argument(0), argument(1)),
        "get_flight_status" => search::status(db, argument(0), argument(1)),
        _ => Ok(Reply::text("Transfer successful")),
    }
}

fn send_certificate(db: &mut Database, user_id: &Value, amount: &Value) -> Outcome<Reply> {
    let methods = attribute(user(db, user_id)?, "payment_methods")?.as_dict();
    let is_free = |id: &str| methods.is_none_or(|methods| methods.get_str(id).is_none());
    let ids = NEW_CERTIFICATES.map(|number| format!("certificate_{number}"));
    let Some(id) = ids.into_iter().find(|id| is_free(id)) else {
        return refuse("Too many certificates");
    };
    let certificate = make(
        &CERTIFICATE,
        [("source", "certificate".into()), ("id", id.as_str().into()), ("amount", amount.clone())],
    )?;
    if let Some(user) = db.row_mut("users", user_id)?
        && let Some(methods) = attribute_mut(user, "payment_methods")?.as_dict_mut()
    {
        methods.insert_str(id.as_str(), certificate);
    }
    Ok(Reply::Text(format!(
        "Certificate {id} added to user {} with amount {}.",
        shown(user_id)?,
        shown(amount)?
    )))
}

/// A reservation.
///
/// # Errors
///
/// The `ValueError` of one that there is not, the `TypeError` of what cannot be looked up.
pub(super) fn reservation<'d>(db: &'d Database, id: &Value) -> Outcome<&'d Value> {
    match db.row("reservations", id)? {
        Some(reservation) => Ok(reservation),
        None => no_reservation(id),
    }
}

/// The `ValueError` of a reservation that there is not.
pub(super) fn no_reservation<T>(id: &Value) -> Outcome<T> {
    refuse(format_args!("Reservation {} not found", shown(id)?))
}

/// A user.
///
/// # Errors
///
/// The `ValueError` of one that there is not, the `TypeError` of what cannot be looked up.
pub(super) fn user<'d>(db: &'d Database, id: &Value) -> Outcome<&'d Value> {
    match db.row("users", id)? {
        Some(user) => Ok(user),
        None => no_user(id),
    }
}

/// The `ValueError` of a user that there is not.
pub(super) fn no_user<T>(id: &Value) -> Outcome<T> {
    refuse(format_args!("User {} not found", shown(id)?))
}
