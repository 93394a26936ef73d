//! What the agent of the domain telecom can do.

use spar_python::BinaryOperator::{Add, Multiply, Subtract};
use spar_python::{
    Comparison, Exception, Outcome, Value, absolute, binary, compare, contains, equal,
    format_fixed, iterate, slice,
};

use super::billing::{self, BillIds, TODAY};
use super::data::{Bill, Customer, Line, Plan};
use crate::database::Database;
use crate::object::{attribute, in_place, lower, refuse, shown};
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
            if !is_line(target, "Active") {
                return refuse("Line must be active to suspend");
            }
            let message = "Line suspended successfully. $5/month holding fee will apply.";
            set_status(db, argument(1), "Suspended", TODAY.into(), message)
        }
        "resume_line" => {
            let target = target(db, argument(0), argument(1))?;
            if !is_line(target, "Suspended") && !is_line(target, "Pending Activation") {
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
            let ids = plans.iter().map(|plan| Plan::PlanId.of(plan).cloned());
            Ok(Reply::Models(Value::list(ids.collect::<Outcome<Vec<_>>>()?)))
        }
        "set_data_usage" => {
            let (line_id, used) = (argument(1), argument(2));
            target(db, argument(0), line_id)?;
            *Line::DataUsedGb.of_mut(line_mut(db, line_id)?)? = used.clone();
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
            let added = Line::DataRefuelingGb.of(target)?;
            let distance = absolute(&binary(Subtract, added, argument(2))?)?;
            compare(Comparison::Less, &distance, &Value::Float(1e-6))
        }
        "assert_line_status" => {
            Ok(equal(Line::Status.of(target(db, argument(0), argument(1))?)?, argument(2)))
        }
        "assert_overdue_bill_exists" => {
            let (owner, id) = (customer(db, argument(0))?, argument(1));
            if !contains(Customer::BillIds.of(owner)?, id)? {
                return refuse(format_args!("Overdue bill {} not found", shown(id)?));
            }
            if !is_bill(bill(db, id)?, "Overdue") {
                return refuse(format_args!("Overdue bill {} is not overdue", shown(id)?));
            }
            Ok(true)
        }
        _ => Ok(bill(db, argument(0)).map_or(true, |bill| is_bill(bill, "Paid"))),
    }
}

/// What tells a row of a table from the others.
type KeyOf = fn(&Value) -> Outcome<&Value>;

/// The row of a list whose attribute has a value.
fn row<'d>(db: &'d Database, table: &str, key: KeyOf, value: &Value) -> Outcome<Option<&'d Value>> {
    let rows = db.field(table)?.as_list().unwrap_or_default();
    Ok(place(rows, key, value).and_then(|place| rows.get(place)))
}

/// The place of the first of some rows whose attribute has a value.
fn place(rows: &[Value], key: KeyOf, value: &Value) -> Option<usize> {
    let is_it = |row: &Value| match (key(row), value) {
        (Ok(Value::Str(found)), Value::Str(wanted)) => found == wanted,
        (Ok(found), _) => equal(found, value),
        (Err(_), _) => false,
    };
    rows.iter().position(is_it)
}

/// As `row`, to be changed.
///
/// # Errors
///
/// A `ValueError` where there is none.
fn row_mut<'d>(
    db: &'d mut Database,
    table: &str,
    key: KeyOf,
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

/// A line by id, to be changed.
///
/// # Errors
///
/// A `ValueError` where there is none.
pub(super) fn line_mut<'d>(db: &'d mut Database, id: &Value) -> Outcome<&'d mut Value> {
    row_mut(db, "lines", |row| Line::LineId.of(row), id)
}

/// A bill by id, to be changed.
///
/// # Errors
///
/// A `ValueError` where there is none.
pub(super) fn bill_mut<'d>(db: &'d mut Database, id: &Value) -> Outcome<&'d mut Value> {
    row_mut(db, "bills", |row| Bill::BillId.of(row), id)
}

/// A customer by id, to be changed.
///
/// # Errors
///
/// A `ValueError` where there is none.
pub(super) fn customer_mut<'d>(db: &'d mut Database, id: &Value) -> Outcome<&'d mut Value> {
    row_mut(db, "customers", |row| Customer::CustomerId.of(row), id)
}

fn found<'d>(
    db: &'d Database,
    table: &str,
    key: KeyOf,
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
    found(db, "customers", |row| Customer::CustomerId.of(row), "Customer with ID", id)
}

/// A line by id.
///
/// # Errors
///
/// The `ValueError` of one that there is not.
pub(super) fn line<'d>(db: &'d Database, id: &Value) -> Outcome<&'d Value> {
    found(db, "lines", |row| Line::LineId.of(row), "Line with ID", id)
}

/// A line by its number.
///
/// # Errors
///
/// The `ValueError` of one that there is not.
pub(super) fn line_by_phone<'d>(db: &'d Database, number: &Value) -> Outcome<&'d Value> {
    found(db, "lines", |row| Line::PhoneNumber.of(row), "Line with phone number", number)
}

/// A plan by id.
///
/// # Errors
///
/// The `ValueError` of one that there is not.
pub(super) fn plan<'d>(db: &'d Database, id: &Value) -> Outcome<&'d Value> {
    found(db, "plans", |row| Plan::PlanId.of(row), "Plan with ID", id)
}

/// A bill by id.
///
/// # Errors
///
/// The `ValueError` of one that there is not.
pub(super) fn bill<'d>(db: &'d Database, id: &Value) -> Outcome<&'d Value> {
    found(db, "bills", |row| Bill::BillId.of(row), "Bill with ID", id)
}

/// Whether a line has a status.
pub(super) fn is_line(line: &Value, status: &str) -> bool {
    Line::Status.of(line).ok().and_then(Value::as_str) == Some(status)
}

/// Whether a bill has a status.
pub(super) fn is_bill(bill: &Value, status: &str) -> bool {
    Bill::Status.of(bill).ok().and_then(Value::as_str) == Some(status)
}

/// A customer by the main number or that of a line.
///
/// # Errors
///
/// The `ValueError` of one that there is not, or of a line that a customer names and that there is not.
pub(super) fn customer_by_phone<'d>(db: &'d Database, number: &Value) -> Outcome<&'d Value> {
    for customer in db.field("customers")?.as_list().unwrap_or_default() {
        if equal(Customer::PhoneNumber.of(customer)?, number) {
            return Ok(customer);
        }
        for id in Customer::LineIds.of(customer)?.as_list().unwrap_or_default() {
            if equal(Line::PhoneNumber.of(line(db, id)?)?, number) {
                return Ok(customer);
            }
        }
    }
    refuse(format_args!("Customer with phone number {} not found", shown(number)?))
}

/// A line of a customer's.
fn target<'d>(db: &'d Database, customer_id: &Value, line_id: &Value) -> Outcome<&'d Value> {
    let owner = customer(db, customer_id)?;
    if !contains(Customer::LineIds.of(owner)?, line_id)? {
        let (line_id, customer_id) = (shown(line_id)?, shown(customer_id)?);
        return refuse(format_args!("Line {line_id} not found for customer {customer_id}"));
    }
    line(db, line_id)
}

fn by_name(db: &Database, name: &Value, birth: &Value) -> Outcome<Reply> {
    let mut found = Vec::new();
    for customer in db.field("customers")?.as_list().unwrap_or_default() {
        if lower(Customer::FullName.of(customer)?)? == lower(name)?
            && equal(Customer::DateOfBirth.of(customer)?, birth)
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
        Some('D') => found(db, "devices", |row| attribute(row, "device_id"), "Device with ID", id)?,
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
    let target = line_mut(db, line_id)?;
    *Line::Status.of_mut(target)? = status.into();
    *Line::SuspensionStartDate.of_mut(target)? = since;
    let parts =
        vec![("message", Part::Value(message.into())), ("line", Part::Model(target.clone()))];
    Ok(Reply::Mixed(parts))
}

fn bills(db: &Database, customer_id: &Value, limit: &Value) -> Outcome<Reply> {
    let ids = iterate(Customer::BillIds.of(customer(db, customer_id)?)?)?;
    let mut bills = ids.iter().map(|id| bill(db, id)).collect::<Outcome<Vec<_>>>()?;
    let issued = |bill: &Value| Bill::IssueDate.of(bill).ok()?.as_str().map(str::to_owned);
    bills.sort_by_key(|bill| std::cmp::Reverse(issued(bill)));
    let bills = Value::list(bills.into_iter().cloned());
    Ok(Reply::Models(slice(&bills, &Value::None, limit)?))
}

fn request_payment(db: &mut Database, customer_id: &Value, bill_id: &Value) -> Outcome<Reply> {
    let owner = customer(db, customer_id)?;
    if !billing::with_status(db, owner, "Awaiting Payment")?.is_empty() {
        return refuse("A bill is already awaiting payment for this customer");
    }
    if !contains(Customer::BillIds.of(owner)?, bill_id)? {
        let (bill_id, customer_id) = (shown(bill_id)?, shown(customer_id)?);
        return refuse(format_args!("Bill {bill_id} not found for customer {customer_id}"));
    }
    bill(db, bill_id)?;
    *Bill::Status.of_mut(bill_mut(db, bill_id)?)? = "Awaiting Payment".into();
    Ok(Reply::Text(format!("Payment request sent to the customer for bill {}", shown(bill_id)?)))
}

fn data_usage(db: &Database, customer_id: &Value, line_id: &Value) -> Outcome<Reply> {
    let target = target(db, customer_id, line_id)?;
    let plan = plan(db, Line::PlanId.of(target)?)?;
    let value = |found: Outcome<&Value>| found.cloned().map(Part::Value);
    Ok(Reply::Mixed(vec![
        ("line_id", Part::Value(line_id.clone())),
        ("data_used_gb", value(Line::DataUsedGb.of(target))?),
        ("data_limit_gb", value(Plan::DataLimitGb.of(plan))?),
        ("data_refueling_gb", value(Line::DataRefuelingGb.of(target))?),
        ("cycle_end_date", Part::Value("2025-02-28".into())),
    ]))
}

fn roam(db: &mut Database, customer_id: &Value, line_id: &Value, on: bool) -> Outcome<Reply> {
    let word = if on { "enabled" } else { "disabled" };
    if Line::RoamingEnabled.of(target(db, customer_id, line_id)?)?.is_true() == on {
        return Ok(Reply::Text(format!("Roaming was already {word}")));
    }
    *Line::RoamingEnabled.of_mut(line_mut(db, line_id)?)? = on.into();
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
    let plan = plan(db, Line::PlanId.of(old)?)?;
    let price = Plan::DataRefuelingPricePerGb.of(plan)?.clone();
    let charge = binary(Multiply, amount, &price)?;
    let added = in_place(Add, Line::DataRefuelingGb.of(old)?, amount)?;
    *Line::DataRefuelingGb.of_mut(line_mut(db, line_id)?)? = added.clone();
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
