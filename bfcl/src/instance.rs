//! An object of a class.

use std::sync::Arc;

use spar_python::{Dict, Outcome, Value, equal};

use crate::apis::method::Method;
use crate::apis::{
    file_system::{self, FileSystem},
    math::{self, Math},
    message::{self, Message},
    ticket::{self, Ticket},
    trading::{self, Trading},
    travel::{self, Travel},
    twitter::{self, Twitter},
    vehicle::{self, Vehicle},
};
use crate::{BfclError, Class, LongContext, Process};

/// An object of a class. A clone shares what it holds until either is changed.
#[derive(Debug, Clone)]
pub(crate) enum Instance {
    FileSystem(FileSystem),
    Math(Math),
    Message(Arc<Message>),
    Twitter(Arc<Twitter>),
    Ticket(Arc<Ticket>),
    Trading(Arc<Trading>),
    Travel(Arc<Travel>),
    Vehicle(Arc<Vehicle>),
}

impl Instance {
    /// The object of a scenario.
    pub(crate) fn load(
        class: Class,
        scenario: &Dict,
        process: &Process,
        is_long: bool,
    ) -> Result<Self, BfclError> {
        let load = || -> Outcome<Self> {
            let long: Option<&LongContext> = if is_long { Some(process.long()?) } else { None };
            Ok(match class {
                Class::GorillaFileSystem => Self::FileSystem(FileSystem::load(scenario, long)?),
                Class::MathApi => Self::Math(Math),
                Class::MessageApi => Self::Message(Arc::new(Message::load(scenario)?)),
                Class::TwitterApi => Self::Twitter(Arc::new(Twitter::load(scenario)?)),
                Class::TicketApi => Self::Ticket(Arc::new(Ticket::load(scenario))),
                Class::TradingBot => Self::Trading(Arc::new(Trading::load(scenario, is_long)?)),
                Class::TravelApi => {
                    Self::Travel(Arc::new(Travel::load(scenario, process, is_long)?))
                }
                Class::VehicleControlApi => {
                    Self::Vehicle(Arc::new(Vehicle::load(scenario, is_long)?))
                }
            })
        };
        load().map_err(|raised| BfclError::Scenario { class: class.name(), raised })
    }

    pub(crate) fn class(&self) -> Class {
        match self {
            Self::FileSystem(_) => Class::GorillaFileSystem,
            Self::Math(_) => Class::MathApi,
            Self::Message(_) => Class::MessageApi,
            Self::Twitter(_) => Class::TwitterApi,
            Self::Ticket(_) => Class::TicketApi,
            Self::Trading(_) => Class::TradingBot,
            Self::Travel(_) => Class::TravelApi,
            Self::Vehicle(_) => Class::VehicleControlApi,
        }
    }

    /// Calls a method of its class by its place, with one argument for each parameter.
    pub(crate) fn call(
        &mut self,
        method: usize,
        given: &[Value],
        process: &mut Process,
    ) -> Outcome<Value> {
        match self {
            Self::FileSystem(state) => (file_system::METHODS[method].run)(state, process, given),
            Self::Math(state) => (math::METHODS[method].run)(state, process, given),
            Self::Message(state) => run(message::METHODS, state, method, given, process),
            Self::Twitter(state) => run(twitter::METHODS, state, method, given, process),
            Self::Ticket(state) => run(ticket::METHODS, state, method, given, process),
            Self::Trading(state) => run(trading::METHODS, state, method, given, process),
            Self::Travel(state) => run(travel::METHODS, state, method, given, process),
            Self::Vehicle(state) => run(vehicle::METHODS, state, method, given, process),
        }
    }

    /// The public attributes, in the order in which the program sets them.
    pub(crate) fn attributes(&self, process: &Process) -> Outcome<Vec<(&'static str, Value)>> {
        Ok(match self {
            Self::FileSystem(state) => {
                vec![("long_context", Value::Bool(state.long_context())), ("root", state.tree())]
            }
            Self::Math(_) => Vec::new(),
            Self::Message(state) => vec![
                ("generated_ids", state.generated_ids.clone()),
                ("user_count", state.user_count.clone()),
                ("user_map", state.user_map.clone()),
                ("inbox", state.inbox.clone()),
                ("message_count", state.message_count.clone()),
                ("current_user", state.current_user.clone()),
            ],
            Self::Twitter(state) => vec![
                ("username", state.username.clone()),
                ("password", state.password.clone()),
                ("authenticated", state.authenticated.clone()),
                ("tweets", state.tweets_in(process)?),
                ("comments", state.comments.clone()),
                ("retweets", state.retweets.clone()),
                ("following_list", state.following_list.clone()),
                ("tweet_counter", state.tweet_counter.clone()),
            ],
            Self::Ticket(state) => vec![
                ("ticket_queue", state.ticket_queue.clone()),
                ("ticket_counter", state.ticket_counter.clone()),
                ("current_user", state.current_user.clone()),
            ],
            Self::Trading(state) => vec![
                ("orders", state.orders.clone()),
                ("account_info", state.account_info.clone()),
                ("authenticated", state.authenticated.clone()),
                ("market_status", state.market_status.clone()),
                ("order_counter", state.order_counter.clone()),
                ("stocks", state.stocks.clone()),
                ("watch_list", state.watch_list.clone()),
                ("transaction_history", state.transaction_history.clone()),
                ("long_context", Value::Bool(state.long_context)),
            ],
            Self::Travel(state) => vec![
                ("credit_card_list", state.cards_in(process)?),
                ("booking_record", state.booking_record.clone()),
                ("access_token", state.access_token.clone()),
                ("token_type", state.token_type.clone()),
                ("token_expires_in", state.token_expires_in.clone()),
                ("token_scope", state.token_scope.clone()),
                ("user_first_name", state.user_first_name.clone()),
                ("user_last_name", state.user_last_name.clone()),
                ("budget_limit", state.budget_limit.clone()),
                ("long_context", Value::Bool(state.long_context)),
            ],
            Self::Vehicle(state) => {
                let [front_left, front_right, rear_left, rear_right] = &state.tire_pressures;
                vec![
                    ("fuelLevel", state.fuel_level.clone()),
                    ("batteryVoltage", state.battery_voltage.clone()),
                    ("engine_state", state.engine_state.clone()),
                    ("remainingUnlockedDoors", state.remaining_unlocked_doors.clone()),
                    ("doorStatus", state.door_status.clone()),
                    ("acTemperature", state.ac_temperature.clone()),
                    ("fanSpeed", state.fan_speed.clone()),
                    ("acMode", state.ac_mode.clone()),
                    ("humidityLevel", state.humidity_level.clone()),
                    ("headLightStatus", state.headlight_status.clone()),
                    ("parkingBrakeStatus", state.parking_brake_status.clone()),
                    ("brakePedalStatus", state.brake_pedal_status.clone()),
                    ("distanceToNextVehicle", state.distance_to_next_vehicle.clone()),
                    ("cruiseStatus", state.cruise_status.clone()),
                    ("destination", state.destination.clone()),
                    ("frontLeftTirePressure", front_left.clone()),
                    ("frontRightTirePressure", front_right.clone()),
                    ("rearLeftTirePressure", rear_left.clone()),
                    ("rearRightTirePressure", rear_right.clone()),
                    ("long_context", Value::Bool(state.long_context)),
                ]
            }
        })
    }

    /// The public attributes that differ from those of another object of the class in the same process.
    pub(crate) fn differing(&self, other: &Self, process: &Process) -> Vec<&'static str> {
        if let (Self::FileSystem(one), Self::FileSystem(other)) = (self, other) {
            return one.differing(other);
        }
        let (Ok(one), Ok(other)) = (self.attributes(process), other.attributes(process)) else {
            return vec!["attributes"];
        };
        one.into_iter()
            .zip(other)
            .filter(|((_, a), (_, b))| !equal(a, b))
            .map(|((name, _), _)| name)
            .collect()
    }
}

fn run<S: Clone>(
    methods: &[Method<S>],
    state: &mut Arc<S>,
    method: usize,
    given: &[Value],
    process: &mut Process,
) -> Outcome<Value> {
    (methods[method].run)(Arc::make_mut(state), process, given)
}
