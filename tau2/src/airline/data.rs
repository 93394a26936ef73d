//! The data of the domain airline.

use crate::schema::Kind::{Dict, Float, Int, List, Literal, Model as Of, Str, Union};
use crate::schema::{Kind, Model, optional, required};

/// The classes of seats.
pub(crate) const CABINS: &[&str] = &["business", "economy", "basic_economy"];
/// The types of trips.
pub(crate) const TRIPS: &[&str] = &["round_trip", "one_way"];

const CABIN: Kind = Literal(CABINS);
const BY_CABIN: Kind = Dict(&CABIN, &Int);

static NAME: Model =
    Model::open("Name", &[required("first_name", Str), required("last_name", Str)]);

static ADDRESS: Model = Model::open(
    "Address",
    &[
        required("address1", Str),
        optional("address2", &Str),
        required("city", Str),
        required("country", Str),
        required("state", Str),
        required("zip", Str),
    ],
);

/// What was paid, in whole dollars.
pub(crate) static PAYMENT: Model =
    Model::open("Payment", &[required("payment_id", Str), required("amount", Int)]);

static CREDIT_CARD: Model = Model::open(
    "CreditCard",
    &[
        required("source", Literal(&["credit_card"])),
        required("id", Str),
        required("brand", Str),
        required("last_four", Str),
    ],
);

static GIFT_CARD: Model = Model::open(
    "GiftCard",
    &[required("source", Literal(&["gift_card"])), required("id", Str), required("amount", Float)],
);

/// A certificate that pays for a reservation.
pub(crate) static CERTIFICATE: Model = Model::open(
    "Certificate",
    &[
        required("source", Literal(&["certificate"])),
        required("id", Str),
        required("amount", Float),
    ],
);

/// Who flies.
pub(crate) static PASSENGER: Model = Model::open(
    "Passenger",
    &[required("first_name", Str), required("last_name", Str), required("dob", Str)],
);

static AVAILABLE: Model = Model::open(
    "FlightDateStatusAvailable",
    &[
        required("status", Literal(&["available"])),
        required("available_seats", BY_CABIN),
        required("prices", BY_CABIN),
    ],
);

static LANDED: Model = Model::open(
    "FlightDateStatusLanded",
    &[
        required("status", Literal(&["landed"])),
        required("actual_departure_time_est", Str),
        required("actual_arrival_time_est", Str),
    ],
);

static CANCELLED: Model =
    Model::open("FlightDateStatusCancelled", &[required("status", Literal(&["cancelled"]))]);

static DELAYED: Model = Model::open(
    "FlightDateStatusDelayed",
    &[
        required("status", Literal(&["delayed"])),
        required("estimated_departure_time_est", Str),
        required("estimated_arrival_time_est", Str),
    ],
);

static FLYING: Model = Model::open(
    "FlightDataStatusFlying",
    &[
        required("status", Literal(&["flying"])),
        required("actual_departure_time_est", Str),
        required("estimated_arrival_time_est", Str),
    ],
);

static ON_TIME: Model = Model::open(
    "FlightDataStatusOnTime",
    &[
        required("status", Literal(&["on time"])),
        required("estimated_departure_time_est", Str),
        required("estimated_arrival_time_est", Str),
    ],
);

static FLIGHT: Model = Model::open(
    "Flight",
    &[
        required("flight_number", Str),
        required("origin", Str),
        required("destination", Str),
        required("scheduled_departure_time_est", Str),
        required("scheduled_arrival_time_est", Str),
        required(
            "dates",
            Dict(&Str, &Union(&[&AVAILABLE, &LANDED, &CANCELLED, &DELAYED, &FLYING, &ON_TIME])),
        ),
    ],
);

/// A flight of a reservation.
pub(crate) static RESERVATION_FLIGHT: Model = Model::open(
    "ReservationFlight",
    &[
        required("flight_number", Str),
        required("origin", Str),
        required("destination", Str),
        required("date", Str),
        required("price", Int),
    ],
);

/// A flight on a day, as a booking names it.
pub(crate) static FLIGHT_INFO: Model =
    Model::open("FlightInfo", &[required("flight_number", Str), required("date", Str)]);

static USER: Model = Model::open(
    "User",
    &[
        required("user_id", Str),
        required("name", Of(&NAME)),
        required("address", Of(&ADDRESS)),
        required("email", Str),
        required("dob", Str),
        required("payment_methods", Dict(&Str, &Union(&[&CREDIT_CARD, &GIFT_CARD, &CERTIFICATE]))),
        required("saved_passengers", List(&Of(&PASSENGER))),
        required("membership", Literal(&["gold", "silver", "regular"])),
        required("reservations", List(&Str)),
    ],
);

/// A reservation.
pub(crate) static RESERVATION: Model = Model::open(
    "Reservation",
    &[
        required("reservation_id", Str),
        required("user_id", Str),
        required("origin", Str),
        required("destination", Str),
        required("flight_type", Literal(TRIPS)),
        required("cabin", CABIN),
        required("flights", List(&Of(&RESERVATION_FLIGHT))),
        required("passengers", List(&Of(&PASSENGER))),
        required("payment_history", List(&Of(&PAYMENT))),
        required("created_at", Str),
        required("total_baggages", Int),
        required("nonfree_baggages", Int),
        required("insurance", Literal(&["yes", "no"])),
        optional("status", &Literal(&["cancelled"])),
    ],
);

/// The database.
pub(crate) static DATABASE: Model = Model::closed(
    "FlightDB",
    &[
        required("flights", Dict(&Str, &Of(&FLIGHT))),
        required("users", Dict(&Str, &Of(&USER))),
        required("reservations", Dict(&Str, &Of(&RESERVATION))),
    ],
);
