//! The classes by name.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

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
        self.table().methods.iter().copied()
    }

    /// Whether it has such a method.
    pub fn has_method(self, method: &str) -> bool {
        self.table().place(method).is_some()
    }

    /// The place of a method among all of the class, and its parameters.
    pub(crate) fn method(self, name: &str) -> Option<(usize, &'static Signature)> {
        let table = self.table();
        table.place(name).map(|place| (place, table.methods[place].1))
    }

    fn table(self) -> &'static MethodTable {
        static TABLES: LazyLock<[MethodTable; 8]> =
            LazyLock::new(|| Class::ALL.map(|class| MethodTable::new(class.signatures())));
        &TABLES[self as usize]
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

/// The methods of a class, and where each stands.
struct MethodTable {
    methods: Vec<(&'static str, &'static Signature)>,
    /// One more than the place of a method, in the slot of its name or the next one that was free.
    slots: [u8; MethodTable::SLOTS],
}

impl MethodTable {
    /// More than twice as many as a class has methods.
    const SLOTS: usize = 64;

    fn new(signatures: Vec<&'static Signature>) -> Self {
        let mut slots = [0; Self::SLOTS];
        let mut methods = Vec::with_capacity(signatures.len());
        for signature in signatures {
            let (_, name) = signature.name.split_once('.').expect("names have their class");
            methods.push((name, signature));
            let mut slot = Self::slot(name);
            while slots[slot] != 0 {
                slot = (slot + 1) % Self::SLOTS;
            }
            slots[slot] = u8::try_from(methods.len()).expect("classes have few methods");
        }
        Self { methods, slots }
    }

    fn place(&self, name: &str) -> Option<usize> {
        let mut slot = Self::slot(name);
        loop {
            let place = usize::from(self.slots[slot]).checked_sub(1)?;
            if self.methods[place].0 == name {
                return Some(place);
            }
            slot = (slot + 1) % Self::SLOTS;
        }
    }

    /// Names of a class differ in their length and a few of their letters.
    fn slot(name: &str) -> usize {
        let bytes = name.as_bytes();
        let letter = |at: usize| usize::from(bytes.get(at).copied().unwrap_or(0));
        let (middle, last) = (bytes.len() / 2, bytes.len().saturating_sub(1));
        (bytes.len() + 3 * letter(0) + 7 * letter(middle) + 13 * letter(last)) % Self::SLOTS
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_found_by_its_name() {
        for class in Class::ALL {
            let mut count = 0;
            for (place, (name, signature)) in class.methods().enumerate() {
                let (found, of_found) = class.method(name).unwrap();
                assert_eq!((found, of_found.name), (place, signature.name));
                assert!(!class.has_method(&name[1..]), "{name}");
                count += 1;
            }
            assert!(count * 2 < MethodTable::SLOTS, "{class} has room");
            assert!(!class.has_method("") && !class.has_method("é"));
        }
    }
}
