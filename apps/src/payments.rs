//! Money that is sent, requested and scheduled.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::World;
use crate::arguments::{address, cents, clipped, lines, money, optional_text};
use crate::diff::Change;
use crate::moment::{Date, Moment};
use crate::table::{self, Table};
use crate::tool::{AppTool, NoArguments, tool};

const MOST_LISTED: usize = 20;
const MOST_NOTE: usize = 120;

/// Money that came or went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Payment {
    /// `sent` or `received`.
    pub(crate) direction: String,
    /// The address of the other.
    pub(crate) with: String,
    pub(crate) cents: i64,
    pub(crate) note: String,
    pub(crate) at: Moment,
}

/// Money that somebody wants.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Request {
    /// `incoming` where the owner is to pay, else `outgoing`.
    pub(crate) direction: String,
    /// The address of the other.
    pub(crate) with: String,
    pub(crate) cents: i64,
    pub(crate) note: String,
    pub(crate) at: Moment,
    /// `open`, `paid`, `declined` or `cancelled`.
    pub(crate) status: String,
}

/// Money that is to go on a day.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Scheduled {
    /// The address of the other.
    pub(crate) with: String,
    pub(crate) cents: i64,
    pub(crate) note: String,
    pub(crate) on: Date,
}

/// All money. What the owner has follows from what came and went.
#[derive(Debug, Clone, Default)]
pub(crate) struct Payments {
    pub(crate) opening_cents: i64,
    pub(crate) payments: Table<u32, Payment>,
    pub(crate) requests: Table<u32, Request>,
    pub(crate) scheduled: Table<u32, Scheduled>,
}

impl Payments {
    pub(crate) fn diff(&self, after: &Self, changes: &mut Vec<Change>) {
        self.payments.diff(&after.payments, "payment", |key| table::id('p', *key), changes);
        self.requests.diff(&after.requests, "request", |key| table::id('r', *key), changes);
        self.scheduled.diff(&after.scheduled, "scheduled", |key| table::id('s', *key), changes);
    }

    pub(crate) fn num_records(&self) -> usize {
        self.payments.len() + self.requests.len() + self.scheduled.len()
    }

    /// What the owner has, in cents.
    pub(crate) fn balance(&self) -> i64 {
        self.payments.iter().fold(self.opening_cents, |sum, (_, payment)| {
            sum + if payment.direction == "sent" { -payment.cents } else { payment.cents }
        })
    }

    fn request_mut(&mut self, id: &str) -> Result<(u32, &mut Request), String> {
        let key = table::key('r', "a request", id)?;
        let request = self.requests.get_mut(&key).ok_or_else(|| {
            format!("There is no request `r{key}`; `payments_requests` lists the open ones.")
        })?;
        Ok((key, request))
    }

    /// A request that is open, in this direction.
    fn open_mut(&mut self, id: &str, direction: &str) -> Result<(u32, &mut Request), String> {
        let (key, request) = self.request_mut(id)?;
        if request.status != "open" {
            return Err(format!("`r{key}` is {} already.", request.status));
        }
        if request.direction != direction {
            return Err(format!("`r{key}` is no {direction} request."));
        }
        Ok((key, request))
    }
}

/// The address of somebody who has an account: those among the contacts.
fn payee(world: &World, email: &str) -> Result<String, String> {
    let email = address(email)?;
    match world.contacts.people.iter().any(|(_, contact)| contact.email == email) {
        true => Ok(email),
        false => {
            Err(format!("{email} is none of your contacts, and only these can be paid or asked."))
        }
    }
}

fn send(world: &mut World, with: String, cents: i64, note: String) -> Result<u32, String> {
    let has = world.payments.balance();
    if cents > has {
        return Err(format!("You have {}, which is less than {}.", money(has), money(cents)));
    }
    let at = world.now;
    let direction = "sent".to_owned();
    world.payments.payments.add(Payment { direction, with, cents, note, at })
}

fn note(given: Option<String>) -> Result<String, String> {
    optional_text("note", &given.unwrap_or_default(), MOST_NOTE)
}

fn payment_line(world: &World, key: u32, it: &Payment) -> String {
    let towards = if it.direction == "sent" { "to" } else { "from" };
    let name = world.contacts.name_of(&it.with);
    let direction = &it.direction;
    format!(
        "{} | {direction} {} {towards} {name} | {} | {}",
        table::id('p', key),
        money(it.cents),
        it.note,
        it.at
    )
}

fn request_line(world: &World, key: u32, it: &Request) -> String {
    let name = world.contacts.name_of(&it.with);
    let words = match it.direction.as_str() {
        "incoming" => format!("{name} wants {} from you", money(it.cents)),
        _ => format!("you want {} from {name}", money(it.cents)),
    };
    format!("{} | {words} | {} | {} | {}", table::id('r', key), it.note, it.at, it.status)
}

fn scheduled_line(world: &World, key: u32, it: &Scheduled) -> String {
    let name = world.contacts.name_of(&it.with);
    format!("{} | {} to {name} on {} | {}", table::id('s', key), money(it.cents), it.on, it.note)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct With {
    /// The mail address of the other; left out, all payments are listed.
    email: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OnePayment {
    /// The id of the payment, such as p4.
    payment: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Send {
    /// The mail address of who gets it.
    to: String,
    /// How much, as 12.50.
    amount: f64,
    /// What it is for.
    note: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Ask {
    /// The mail address of who is to pay.
    from: String,
    /// How much, as 12.50.
    amount: f64,
    /// What it is for.
    note: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneRequest {
    /// The id of the request, such as r2.
    request: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Schedule {
    /// The mail address of who gets it.
    to: String,
    /// How much, as 12.50.
    amount: f64,
    /// The date on which it goes, as 2031-03-14.
    on: String,
    /// What it is for.
    note: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneScheduled {
    /// The id of the scheduled payment, such as s1.
    scheduled: String,
}

pub(crate) const TOOLS: &[AppTool] = &[
    tool!(
        "payments_balance",
        Payments,
        "Tells how much money you have.",
        NoArguments,
        |world, _| { Ok(format!("You have {}.", money(world.payments.balance()))) }
    ),
    tool!("payments_history", Payments, "Lists payments, the latest first.", With, |world, it| {
        let email = it.email.as_deref().map(address).transpose()?;
        let all = world.payments.payments.iter();
        let mut found: Vec<_> = all
            .filter(|(_, payment)| email.as_ref().is_none_or(|email| payment.with == *email))
            .collect();
        found.sort_by_key(|(key, payment)| std::cmp::Reverse((payment.at, **key)));
        let all = found.into_iter().map(|(key, it)| payment_line(world, *key, it)).collect();
        Ok(lines("payment", all, MOST_LISTED))
    }),
    tool!("payments_get", Payments, "Shows a payment.", OnePayment, |world, it| {
        let key = table::key('p', "a payment", &it.payment)?;
        let found = world.payments.payments.get(&key);
        let found = found.ok_or_else(|| {
            format!("There is no payment `p{key}`; `payments_history` lists them.")
        })?;
        Ok(payment_line(world, key, found))
    }),
    tool!("payments_send", Payments, "Sends money to a contact.", Send, |world, it| {
        let (to, cents) = (payee(world, &it.to)?, cents(it.amount)?);
        let note = note(it.note)?;
        let key = send(world, to.clone(), cents, note)?;
        Ok(format!("Sent {} to {to} ({}).", money(cents), table::id('p', key)))
    }),
    tool!("payments_request", Payments, "Asks a contact for money.", Ask, |world, it| {
        let (with, cents) = (payee(world, &it.from)?, cents(it.amount)?);
        let request = Request {
            direction: "outgoing".to_owned(),
            with: with.clone(),
            cents,
            note: note(it.note)?,
            at: world.now,
            status: "open".to_owned(),
        };
        let key = world.payments.requests.add(request)?;
        Ok(format!("Asked {with} for {} ({}).", money(cents), table::id('r', key)))
    }),
    tool!(
        "payments_requests",
        Payments,
        "Lists the open requests, by you and of you.",
        NoArguments,
        |world, _| {
            let open =
                world.payments.requests.iter().filter(|(_, request)| request.status == "open");
            let all = open.map(|(key, it)| request_line(world, *key, it)).collect();
            Ok(lines("open request", all, MOST_LISTED))
        }
    ),
    tool!("payments_get_request", Payments, "Shows a request.", OneRequest, |world, it| {
        let (key, request) = world.payments.request_mut(&it.request)?;
        let request = request.clone();
        Ok(request_line(world, key, &request))
    }),
    tool!(
        "payments_pay_request",
        Payments,
        "Pays what somebody wants from you.",
        OneRequest,
        |world, it| {
            let (key, request) = world.payments.open_mut(&it.request, "incoming")?;
            request.status = "paid".to_owned();
            let (with, cents, note) = (request.with.clone(), request.cents, request.note.clone());
            let payment = send(world, with, cents, note)?;
            Ok(format!("Paid {} with {}.", table::id('r', key), table::id('p', payment)))
        }
    ),
    tool!(
        "payments_decline_request",
        Payments,
        "Declines what somebody wants from you.",
        OneRequest,
        |world, it| {
            let (key, request) = world.payments.open_mut(&it.request, "incoming")?;
            request.status = "declined".to_owned();
            Ok(format!("Declined {}.", table::id('r', key)))
        }
    ),
    tool!(
        "payments_cancel_request",
        Payments,
        "Takes back what you want from somebody.",
        OneRequest,
        |world, it| {
            let (key, request) = world.payments.open_mut(&it.request, "outgoing")?;
            request.status = "cancelled".to_owned();
            Ok(format!("Cancelled {}.", table::id('r', key)))
        }
    ),
    tool!(
        "payments_schedule",
        Payments,
        "Has money sent on a later day.",
        Schedule,
        |world, it| {
            let on = Date::parse(it.on.trim()).ok_or_else(|| {
                format!("`{}` is no date, which is written as in 2031-03-14.", clipped(&it.on, 40))
            })?;
            if on <= world.now.date() {
                return Err(format!("{on} is not behind today, {}.", world.now.date()));
            }
            let (with, cents) = (payee(world, &it.to)?, cents(it.amount)?);
            let scheduled = Scheduled { with, cents, note: note(it.note)?, on };
            let shown = scheduled.clone();
            let key = world.payments.scheduled.add(scheduled)?;
            Ok(format!("Scheduled {}.", scheduled_line(world, key, &shown)))
        }
    ),
    tool!(
        "payments_scheduled",
        Payments,
        "Lists the scheduled payments.",
        NoArguments,
        |world, _| {
            let all = world.payments.scheduled.iter();
            let all = all.map(|(key, it)| scheduled_line(world, *key, it)).collect();
            Ok(lines("scheduled payment", all, MOST_LISTED))
        }
    ),
    tool!(
        "payments_cancel_scheduled",
        Payments,
        "Cancels a scheduled payment.",
        OneScheduled,
        |world, it| {
            let key = table::key('s', "a scheduled payment", &it.scheduled)?;
            let found = world.payments.scheduled.remove(&key);
            let found = found.ok_or_else(|| format!("There is no scheduled payment `s{key}`."))?;
            Ok(format!("Cancelled {}.", scheduled_line(world, key, &found)))
        }
    ),
];
