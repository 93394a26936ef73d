//! The classes by name.

use std::fmt;
use std::str::FromStr;

use spar_python::Signature;

use crate::BfclError;
use crate::apis::method::Method;
use crate::apis::{file_system, math, message, ticket, trading, travel, twitter, vehicle};

/// A class of functions with a state of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Directories and files.
    GorillaFileSystem,
    /// Numbers; the one without a state.
    MathApi,
    /// Users of a workspace and their messages.
    MessageApi,
    /// Tweets.
    TwitterApi,
    /// Support tickets.
    TicketApi,
    /// Stocks and orders.
    TradingBot,
    /// Flights and cards.
    TravelApi,
    /// A car.
    VehicleControlApi,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::GorillaFileSystem,
        Self::MathApi,
        Self::MessageApi,
        Self::TwitterApi,
        Self::TicketApi,
        Self::TradingBot,
        Self::TravelApi,
        Self::VehicleControlApi,
    ];

    /// The name in the release.
    pub fn name(self) -> &'static str {
        match self {
            Self::GorillaFileSystem => "GorillaFileSystem",
            Self::MathApi => "MathAPI",
            Self::MessageApi => "MessageAPI",
            Self::TwitterApi => "TwitterAPI",
            Self::TicketApi => "TicketAPI",
            Self::TradingBot => "TradingBot",
            Self::TravelApi => "TravelAPI",
            Self::VehicleControlApi => "VehicleControlAPI",
        }
    }

    /// The file of the release that describes its functions, without its ending.
    pub fn document(self) -> &'static str {
        match self {
            Self::GorillaFileSystem => "gorilla_file_system",
            Self::MathApi => "math_api",
            Self::MessageApi => "message_api",
            Self::TwitterApi => "posting_api",
            Self::TicketApi => "ticket_api",
            Self::TradingBot => "trading_bot",
            Self::TravelApi => "travel_booking",
            Self::VehicleControlApi => "vehicle_control",
        }
    }

    /// The names of its methods with their parameters.
    pub fn methods(self) -> impl Iterator<Item = (&'static str, &'static Signature)> {
        self.signatures().into_iter().map(|signature| {
            let (_, method) = signature.name.split_once('.').expect("names have their class");
            (method, signature)
        })
    }

    /// Whether it has such a method.
    pub fn has_method(self, method: &str) -> bool {
        self.methods().any(|(name, _)| name == method)
    }

    fn signatures(self) -> Vec<&'static Signature> {
        fn of<S>(methods: &'static [Method<S>]) -> Vec<&'static Signature> {
            methods.iter().map(|method| &method.signature).collect()
        }
        match self {
            Self::GorillaFileSystem => of(file_system::METHODS),
            Self::MathApi => of(math::METHODS),
            Self::MessageApi => of(message::METHODS),
            Self::TwitterApi => of(twitter::METHODS),
            Self::TicketApi => of(ticket::METHODS),
            Self::TradingBot => of(trading::METHODS),
            Self::TravelApi => of(travel::METHODS),
            Self::VehicleControlApi => of(vehicle::METHODS),
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Class {
    type Err = BfclError;

    fn from_str(name: &str) -> Result<Self, BfclError> {
        Self::ALL.into_iter().find(|class| class.name() == name).ok_or_else(|| {
            BfclError::UnknownClass {
                name: name.to_owned(),
                known: Self::ALL.map(Self::name).join(", "),
            }
        })
    }
}
