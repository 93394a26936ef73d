//! What the agent of the domain telecom can do.

use spar_python::BinaryOperator::{Add, Multiply, Subtract};
use spar_python::{
    Comparison, Exception, Outcome, Value, absolute, binary, compare, contains, equal,
    format_fixed, iterate, slice,
};

use super::billing::{self, BillIds, TODAY};
use crate::database::Database;
use crate::object::{attribute, in_place, lower, refuse, set, shown};
use crate::reply::{Part, Reply};
use crate::signature::ArgumentType::{Bool, Float, Int, Str};
use crate::signature::ToolKind::{Generic, Hidden, Read, Write};
use crate::signature::{Arguments, Parameter, Signature, argument, optional};

const CUSTOMER_ID: Parameter =
    argument("customer_id", Str, "The customer who has the line or bill.");
const LINE_ID: Parameter = argument("line_id", Str, "The line.");

/// The tools, and what else initial states and assertions call.
pub(crate) const SIGNATURES: &[Signature] = &[
    Signature {
        name: "get_customer_by_phone",
        kind: Read,
        parameters: &[argument("phone_number", Str, "The number.")],
        about: "Finds a customer by the number of a line or the main number.",
    },
    Signature {
        name: "get_customer_by_id",
        kind: Read,
        parameters: &[argument("customer_id", Str, "The id.")],
        about: "Finds a customer by id.",
    },
    Signature {
        name: "get_customer_by_name",
        kind: Read,
        parameters: &[
            argument("full_name", Str, "The whole name."),
            argument("dob", Str, "The day of birth, as YYYY-MM-DD."),
        ],
        about: "Finds customers by name and day of birth.",
    },
    Signature {
        name: "get_details_by_id",
        kind: Read,
        parameters: &[argument("id", Str, "The id of a customer, line, device, bill or plan.")],
        about: "Shows whatever has an id.",
    },
    Signature {
        name: "suspend_line",
        kind: Write,
        parameters: &[CUSTOMER_ID, LINE_ID, argument("reason", Str, "Why.")],
        about: "Suspends an active line, for six months at the most.",
    },
    Signature {
        name: "resume_line",
        kind: Write,
        parameters: &[CUSTOMER_ID, LINE_ID],
        about: "Resumes a line that is suspended or awaits activation.",
    },
    Signature {
        name: "get_bills_for_customer",
        kind: Read,
        parameters: &[
            CUSTOMER_ID,
            optional("limit", Int, "How many at the most; 12 where nothing is said."),
        ],
        about: "Lists a customer's bills, the newest first.",
    },
    Signature {
        name: "send_payment_request",
        kind: Write,
        parameters: &[CUSTOMER_ID, argument("bill_id", Str, "The bill.")],
        about: "Asks the customer to pay a bill. Only one may await payment, and whether it is paid already is not checked.",
    },
    Signature {
        name: "get_data_usage",
        kind: Read,
        parameters: &[CUSTOMER_ID, LINE_ID],
        about: "Shows how much data a line used in this cycle, its limit, and what was added.",
    },
    Signature {
        name: "enable_roaming",
        kind: Write,
        parameters: &[CUSTOMER_ID, LINE_ID],
        about: "Allows a line to be used abroad.",
    },
    Signature {
        name: "disable_roaming",
        kind: Write,
        parameters: &[CUSTOMER_ID, LINE_ID],
        about: "Forbids that a line is used abroad.",
    },
    Signature {
        name: "transfer_to_human_agents",
        kind: Generic,
        parameters: &[argument("summary", Str, "What the user's problem is, in short.")],
        about: "Hands the user over to a human. Only where the user asks for one, or where neither the policy nor the tools allow to solve the problem.",
    },
    Signature {
        name: "refuel_data",
        kind: Write,
        parameters: &[CUSTOMER_ID, LINE_ID, argument("gb_amount", Float, "How many gigabytes.")],
        about: "Adds data to a line, and charges its price to the next bill.",
    },
    Signature {
        name: "get_available_plan_ids",
        kind: Hidden,
        parameters: &[],
        about: "The ids of all plans.",
    },
    Signature {
        name: "set_data_usage",
        kind: Hidden,
        parameters: &[CUSTOMER_ID, LINE_ID, argument("data_used_gb", Float, "How much was used.")],
        about: "Sets how much data a line used.",
    },
    Signature {
        name: "suspend_line_for_overdue_bill",
        kind: Hidden,
        parameters: &[
            CUSTOMER_ID,
            LINE_ID,
            argument("new_bill_id", Str, "The id of the bill that is made."),
            argument("contract_ended", Bool, "Whether the contract ended."),
        ],
        about: "Suspends a line because a bill was not paid.",
    },
    Signature {
        name: "assert_data_refueling_amount",
        kind: Hidden,
        parameters: &[CUSTOMER_ID, LINE_ID, argument("expected_amount", Float, "How much.")],
        about: "Whether so much data was added to a line.",
    },
    Signature {
        name: "assert_line_status",
        kind: Hidden,
        parameters: &[CUSTOMER_ID, LINE_ID, argument("expected_status", Str, "The status.")],
        about: "Whether a line has this status.",
    },
    Signature {
        name: "assert_overdue_bill_exists",
        kind: Hidden,
        parameters: &[CUSTOMER_ID, argument("overdue_bill_id", Str, "The bill.")],
        about: "Whether a bill is overdue.",
    },
    Signature {
        name: "assert_no_overdue_bill",
        kind: Hidden,
        parameters: &[argument("overdue_bill_id", Str, "The bill.")],
        about: "Whether a bill is paid, or is none.",
    },
];

/// Carries out a tool of [`SIGNATURES`].
///
/// # Errors
///
/// What the tool raises.
pub(crate) fn call(
    db: &mut Database,
    ids: &mut BillIds,
    name: &str,
    arguments: &Arguments,
) -> Outcome<Reply> {
    let argument = |place| arguments.get(place);
    let models = |value: &Value| Ok(Reply::Models(value.clone()));
    match name {
        "get_customer_by_phone" => models(customer_by_phone(db, argument(0))?),
        "get_customer_by_id" => models(customer(db, argument(0))?),
        "get_customer_by_name" => by_name(db, argument(0), argument(1)),
        "get_details_by_id" => details(db, argument(0)),
        "suspend_line" => {
            let target = target(db, argument(0), argument(1))?;
            if !is_status(target, "Active") {
                return refuse("Line must be active to suspend");
            }
            let message = "Line suspended successfully. $5/month holding fee will apply.";
            set_status(db, argument(1), "Suspended", TODAY.into(), message)
        }
        "resume_line" => {
            let target = target(db, argument(0), argument(1))?;
            if !is_status(target, "Suspended") && !is_status(target, "Pending Activation") {
                return refuse("Line must be suspended to resume");
            }
            set_status(db, argument(1), "Active", Value::None, "Line resumed successfully")
        }
        "get_bills_for_customer" => {
            const TWELVE: i64 = 12;
            let limit = arguments.given(1).cloned().unwrap_or_else(|| Value::from(TWELVE));
            bills(db, argument(0), &limit)
        }
        "send_payment_request" => request_payment(db, argument(0), argument(1)),
        "get_data_usage" => data_usage(db, argument(0), argument(1)),
        "enable_roaming" => roam(db, argument(0), argument(1), true),
        "disable_roaming" => roam(db, argument(0), argument(1), false),
        "transfer_to_human_agents" => Ok(Reply::text("Transfer successful")),
        "refuel_data" => refuel(db, ids, argument(0), argument(1), argument(2)),
        "get_available_plan_ids" => {
            let plans = iterate(db.field("plans")?)?;
            let ids = plans.iter().map(|plan| attribute(plan, "plan_id").cloned());
            Ok(Reply::Models(Value::list(ids.collect::<Outcome<Vec<_>>>()?)))
        }
        "set_data_usage" => {
            let (line_id, used) = (argument(1), argument(2));
            target(db, argument(0), line_id)?;
            set(row_mut(db, "lines", "line_id", line_id)?, "data_used_gb", used.clone())?;
            let (line_id, used) = (shown(line_id)?, shown(used)?);
            Ok(Reply::Text(format!("Data usage set to {used} GB for line {line_id}")))
        }
        "suspend_line_for_overdue_bill" => billing::suspend_for_overdue_bill(db, arguments),
        _ => Ok(Reply::Truth(assert(db, name, arguments)?)),
    }
}

fn assert(db: &Database, name: &str, arguments: &Arguments) -> Outcome<bool> {
    let argument = |place| arguments.get(place);
    match name {
        "assert_data_refueling_amount" => {
            let target = target(db, argument(0), argument(1))?;
            let added = attribute(target, "data_refueling_gb")?;
            let distance = absolute(&binary(Subtract, added, argument(2))?)?;
            compare(Comparison::Less, &distance, &Value::Float(1e-6))
        }
        "assert_line_status" => {
            Ok(equal(attribute(target(db, argument(0), argument(1))?, "status")?, argument(2)))
        }
        "assert_overdue_bill_exists" => {
            let (owner, id) = (customer(db, argument(0))?, argument(1));
            if !contains(attribute(owner, "bill_ids")?, id)? {
                return refuse(format_args!("Overdue bill {} not found", shown(id)?));
            }
            if !is_status(bill(db, id)?, "Overdue") {
                return refuse(format_args!("Overdue bill {} is not overdue", shown(id)?));
            }
            Ok(true)
        }
        _ => Ok(bill(db, argument(0)).map_or(true, |bill| is_status(bill, "Paid"))),
    }
}

/// The row of a list whose attribute has a value.
fn row<'d>(db: &'d Database, table: &str, key: &str, value: &Value) -> Outcome<Option<&'d Value>> {
    let rows = db.field(table)?.as_list().unwrap_or_default();
    Ok(place(rows, key, value).and_then(|place| rows.get(place)))
}

/// The place of the first of some rows whose attribute has a value. Most rows have their attributes in one order, so that it is
/// looked for once.
fn place(rows: &[Value], key: &str, value: &Value) -> Option<usize> {
    let mut known = None;
    rows.iter().position(|row| {
        let Some(fields) = row.as_dict() else { return false };
        let found = match known.and_then(|(shape, at)| fields.at(shape, at)) {
            Some(found) => Some(found),
            None => {
                known = fields.place_of_str(key).map(|at| (fields.shape(), at));
                known.and_then(|(shape, at)| fields.at(shape, at))
            }
        };
        found.is_some_and(|found| equal(found, value))
    })
}

/// As `row`, to be changed.
///
/// # Errors
///
/// A `ValueError` where there is none.
pub(super) fn row_mut<'d>(
    db: &'d mut Database,
    table: &str,
    key: &str,
    value: &Value,
) -> Outcome<&'d mut Value> {
    let rows = db.field(table)?.as_list().unwrap_or_default();
    let place = place(rows, key, value);
    let rows = db.field_mut(table)?.as_list_mut();
    match place.and_then(|place| rows?.get_mut(place)) {
        Some(row) => Ok(row),
        None => refuse(format_args!("{} not found in {table}", shown(value)?)),
    }
}

fn found<'d>(
    db: &'d Database,
    table: &str,
    key: &str,
    words: &str,
    value: &Value,
) -> Outcome<&'d Value> {
    match row(db, table, key, value)? {
        Some(row) => Ok(row),
        None => refuse(format_args!("{words} {} not found", shown(value)?)),
    }
}

/// A customer by id.
///
/// # Errors
///
/// The `ValueError` of one that there is not.
pub(super) fn customer<'d>(db: &'d Database, id: &Value) -> Outcome<&'d Value> {
    found(db, "customers", "customer_id", "Customer with ID", id)
}

/// A line by id.
///
/// # Errors
///
/// The `ValueError` of one that there is not.
pub(super) fn line<'d>(db: &'d Database, id: &Value) -> Outcome<&'d Value> {
    found(db, "lines", "line_id", "Line with ID", id)
}

/// A line by its number.
///
/// # Errors
///
/// The `ValueError` of one that there is not.
pub(super) fn line_by_phone<'d>(db: &'d Database, number: &Value) -> Outcome<&'d Value> {
    found(db, "lines", "phone_number", "Line with phone number", number)
}

/// A plan by id.
///
/// # Errors
///
/// The `ValueError` of one that there is not.
pub(super) fn plan<'d>(db: &'d Database, id: &Value) -> Outcome<&'d Value> {
    found(db, "plans", "plan_id", "Plan with ID", id)
}

/// A bill by id.
///
/// # Errors
///
/// The `ValueError` of one that there is not.
pub(super) fn bill<'d>(db: &'d Database, id: &Value) -> Outcome<&'d Value> {
    found(db, "bills", "bill_id", "Bill with ID", id)
}

/// Whether an object has a status.
pub(super) fn is_status(object: &Value, status: &str) -> bool {
    attribute(object, "status").ok().and_then(Value::as_str) == Some(status)
}

/// A customer by the main number or that of a line.
///
/// # Errors
///
/// The `ValueError` of one that there is not, or of a line that a customer names and that there is not.
pub(super) fn customer_by_phone<'d>(db: &'d Database, number: &Value) -> Outcome<&'d Value> {
    for customer in db.field("customers")?.as_list().unwrap_or_default() {
        if equal(attribute(customer, "phone_number")?, number) {
            return Ok(customer);
        }
        for id in attribute(customer, "line_ids")?.as_list().unwrap_or_default() {
            if equal(attribute(line(db, id)?, "phone_number")?, number) {
                return Ok(customer);
            }
        }
    }
    refuse(format_args!("Customer with phone number {} not found", shown(number)?))
}

/// A line of a customer's.
fn target<'d>(db: &'d Database, customer_id: &Value, line_id: &Value) -> Outcome<&'d Value> {
    let owner = customer(db, customer_id)?;
    if !contains(attribute(owner, "line_ids")?, line_id)? {
        let (line_id, customer_id) = (shown(line_id)?, shown(customer_id)?);
        return refuse(format_args!("Line {line_id} not found for customer {customer_id}"));
    }
    line(db, line_id)
}

fn by_name(db: &Database, name: &Value, birth: &Value) -> Outcome<Reply> {
    let mut found = Vec::new();
    for customer in db.field("customers")?.as_list().unwrap_or_default() {
        if lower(attribute(customer, "full_name")?)? == lower(name)?
            && equal(attribute(customer, "date_of_birth")?, birth)
        {
            found.push(customer.clone());
        }
    }
    Ok(Reply::Models(Value::list(found)))
}

fn details(db: &Database, id: &Value) -> Outcome<Reply> {
    let Some(text) = id.as_str() else {
        return Err(Exception::no_attribute(id.type_name(), "startswith"));
    };
    let found = match text.chars().next() {
        Some('L') => line(db, id)?,
        Some('D') => found(db, "devices", "device_id", "Device with ID", id)?,
        Some('B') => bill(db, id)?,
        Some('C') => customer(db, id)?,
        Some('P') => plan(db, id)?,
        _ => return refuse(format_args!("Unknown ID format or type: {text}")),
    };
    Ok(Reply::Models(found.clone()))
}

fn set_status(
    db: &mut Database,
    line_id: &Value,
    status: &str,
    since: Value,
    message: &str,
) -> Outcome<Reply> {
    let target = row_mut(db, "lines", "line_id", line_id)?;
    set(target, "status", status.into())?;
    set(target, "suspension_start_date", since)?;
    let parts =
        vec![("message", Part::Value(message.into())), ("line", Part::Model(target.clone()))];
    Ok(Reply::Mixed(parts))
}

fn bills(db: &Database, customer_id: &Value, limit: &Value) -> Outcome<Reply> {
    let ids = iterate(attribute(customer(db, customer_id)?, "bill_ids")?)?;
    let mut bills = ids.iter().map(|id| bill(db, id)).collect::<Outcome<Vec<_>>>()?;
    let issued = |bill: &Value| attribute(bill, "issue_date").ok()?.as_str().map(str::to_owned);
    bills.sort_by_key(|bill| std::cmp::Reverse(issued(bill)));
    let bills = Value::list(bills.into_iter().cloned());
    Ok(Reply::Models(slice(&bills, &Value::None, limit)?))
}

fn request_payment(db: &mut Database, customer_id: &Value, bill_id: &Value) -> Outcome<Reply> {
    let owner = customer(db, customer_id)?;
    if !billing::with_status(db, owner, "Awaiting Payment")?.is_empty() {
        return refuse("A bill is already awaiting payment for this customer");
    }
    if !contains(attribute(owner, "bill_ids")?, bill_id)? {
        let (bill_id, customer_id) = (shown(bill_id)?, shown(customer_id)?);
        return refuse(format_args!("Bill {bill_id} not found for customer {customer_id}"));
    }
    bill(db, bill_id)?;
    set(row_mut(db, "bills", "bill_id", bill_id)?, "status", "Awaiting Payment".into())?;
    Ok(Reply::Text(format!("Payment request sent to the customer for bill {}", shown(bill_id)?)))
}

fn data_usage(db: &Database, customer_id: &Value, line_id: &Value) -> Outcome<Reply> {
    let target = target(db, customer_id, line_id)?;
    let plan = plan(db, attribute(target, "plan_id")?)?;
    let value = |object: &Value, name| attribute(object, name).cloned().map(Part::Value);
    Ok(Reply::Mixed(vec![
        ("line_id", Part::Value(line_id.clone())),
        ("data_used_gb", value(target, "data_used_gb")?),
        ("data_limit_gb", value(plan, "data_limit_gb")?),
        ("data_refueling_gb", value(target, "data_refueling_gb")?),
        ("cycle_end_date", Part::Value("2025-02-28".into())),
    ]))
}

fn roam(db: &mut Database, customer_id: &Value, line_id: &Value, on: bool) -> Outcome<Reply> {
    let word = if on { "enabled" } else { "disabled" };
    if attribute(target(db, customer_id, line_id)?, "roaming_enabled")?.is_true() == on {
        return Ok(Reply::Text(format!("Roaming was already {word}")));
    }
    set(row_mut(db, "lines", "line_id", line_id)?, "roaming_enabled", on.into())?;
    Ok(Reply::Text(format!("Roaming {word} successfully")))
}

fn refuel(
    db: &mut Database,
    ids: &mut BillIds,
    customer_id: &Value,
    line_id: &Value,
    amount: &Value,
) -> Outcome<Reply> {
    let old = target(db, customer_id, line_id)?;
    if compare(Comparison::LessOrEqual, amount, &Value::from(0_i64))? {
        return refuse("Refuel amount must be positive");
    }
    let plan = plan(db, attribute(old, "plan_id")?)?;
    let price = attribute(plan, "data_refueling_price_per_gb")?.clone();
    let charge = binary(Multiply, amount, &price)?;
    let added = in_place(Add, attribute(old, "data_refueling_gb")?, amount)?;
    set(row_mut(db, "lines", "line_id", line_id)?, "data_refueling_gb", added.clone())?;
    let amount = shown(amount)?;
    let description = format!("Data refueling: {amount} GB at ${}/GB", shown(&price)?);
    billing::charge(db, ids, customer_id, &charge, description)?;
    let cost = format_fixed(&charge, 2)?;
    let message =
        format!("Successfully added {amount} GB of data for line {} for ${cost}", shown(line_id)?);
    Ok(Reply::Mixed(vec![
        ("message", Part::Value(message.into())),
        ("new_data_refueling_gb", Part::Value(added)),
        ("charge", Part::Value(charge)),
    ]))
}
