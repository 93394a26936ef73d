//! Bills: charges, overdue ones, and what awaits payment.

use sha2::{Digest, Sha256};
use spar_python::BinaryOperator::Add;
use spar_python::{Comparison, Outcome, Value, compare, elements};

use super::data::{BILL, Bill, Customer, LINE_ITEM, Line, Plan};
use super::tools::{
    bill, bill_mut, customer, customer_mut, is_bill, is_line, line, line_mut, plan,
};
use crate::database::Database;
use crate::object::{in_place, list_mut, refuse, shown};
use crate::reply::Reply;
use crate::signature::Arguments;
use crate::validate::make;

/// The day it is.
pub(super) const TODAY: &str = "2025-02-25";

/// Where the ids of new bills come from: the reference draws them at random, here they follow from a seed.
#[derive(Debug, Clone, Default)]
pub(crate) struct BillIds {
    stream: u64,
    num_drawn: u64,
}

impl BillIds {
    /// The ids of a stream; those of other streams are others.
    pub(crate) fn new(stream: u64) -> Self {
        Self { stream, num_drawn: 0 }
    }

    /// Whether an id was drawn.
    pub(crate) fn has_drawn(&self) -> bool {
        self.num_drawn > 0
    }

    fn next(&mut self) -> String {
        let digest: [u8; 32] = Sha256::new()
            .chain_update(self.stream.to_le_bytes())
            .chain_update(self.num_drawn.to_le_bytes())
            .finalize()
            .into();
        self.num_drawn += 1;
        let [a, b, c, d, ..] = digest;
        format!("B{:08x}", u32::from_be_bytes([a, b, c, d]))
    }
}

/// The bills of a customer that have a status, in their order.
///
/// # Errors
///
/// The `ValueError` of a bill that there is not.
pub(super) fn with_status<'d>(
    db: &'d Database,
    customer: &Value,
    status: &str,
) -> Outcome<Vec<&'d Value>> {
    let mut found = Vec::new();
    for id in elements(Customer::BillIds.of(customer)?)?.iter() {
        let bill = bill(db, id)?;
        if is_bill(bill, status) {
            found.push(bill);
        }
    }
    Ok(found)
}

fn line_item(description: String, amount: &Value, kind: &str) -> Outcome<Value> {
    make(
        &LINE_ITEM,
        [
            ("description", description.into()),
            ("amount", amount.clone()),
            ("date", TODAY.into()),
            ("item_type", kind.into()),
        ],
    )
}

/// Adds a charge to the customer's draft of a bill, and makes one where there is none.
///
/// # Errors
///
/// What the tool raises.
pub(super) fn charge(
    db: &mut Database,
    ids: &mut BillIds,
    customer_id: &Value,
    amount: &Value,
    description: String,
) -> Outcome<()> {
    let owner = customer(db, customer_id)?;
    let mut draft = None;
    for id in elements(Customer::BillIds.of(owner)?)?.iter() {
        if is_bill(bill(db, id)?, "Draft") {
            draft = Some(id.clone());
            break;
        }
    }
    let draft = match draft {
        Some(id) => id,
        None => {
            let id = Value::from(ids.next());
            let bill = make(
                &BILL,
                [
                    ("bill_id", id.clone()),
                    ("customer_id", customer_id.clone()),
                    ("period_start", "2025-03-01".into()),
                    ("period_end", "2025-03-31".into()),
                    ("issue_date", "2025-03-01".into()),
                    ("total_due", Value::from(0_i64)),
                    ("due_date", "2025-03-15".into()),
                    ("status", "Draft".into()),
                ],
            )?;
            add(db, customer_id, &id, bill)?;
            id
        }
    };
    let is_credit = compare(Comparison::Less, amount, &Value::from(0_i64))?;
    let item = line_item(description, amount, if is_credit { "Credit" } else { "Charge" })?;
    let bill = bill_mut(db, &draft)?;
    list_mut(bill, "line_items")?.push(item);
    let total = in_place(Add, Bill::TotalDue.of(bill)?, amount)?;
    *Bill::TotalDue.of_mut(bill)? = total;
    Ok(())
}

/// Adds a bill to all bills and to the customer's.
fn add(db: &mut Database, customer_id: &Value, id: &Value, bill: Value) -> Outcome<()> {
    if let Some(bills) = db.field_mut("bills")?.as_list_mut() {
        bills.push(bill);
    }
    let owner = customer_mut(db, customer_id)?;
    list_mut(owner, "bill_ids")?.push(id.clone());
    Ok(())
}

/// Suspends a line because a bill, which is made for it, was not paid.
///
/// # Errors
///
/// What the function raises.
pub(super) fn suspend_for_overdue_bill(db: &mut Database, arguments: &Arguments) -> Outcome<Reply> {
    let (customer_id, line_id) = (arguments.get(0), arguments.get(1));
    let (bill_id, has_ended) = (arguments.get(2), arguments.get(3));
    let suspended = line(db, line_id)?;
    if !is_line(suspended, "Active") {
        return refuse("Line must be active to suspend for unpaid bill");
    }
    let amount = Plan::PricePerMonth.of(plan(db, Line::PlanId.of(suspended)?)?)?.clone();
    let description = format!("Charge for line {}", shown(Line::LineId.of(suspended)?)?);
    if compare(Comparison::LessOrEqual, &amount, &Value::from(0_i64))? {
        return refuse("Amount must be positive for overdue bill");
    }
    let owner = customer(db, customer_id)?;
    if !with_status(db, owner, "Overdue")?.is_empty() {
        return refuse("Customer already has an overdue bill");
    }
    let mut bill = make(
        &BILL,
        [
            ("bill_id", bill_id.clone()),
            ("customer_id", customer_id.clone()),
            ("period_start", "2025-01-01".into()),
            ("period_end", "2025-01-31".into()),
            ("issue_date", "2025-01-01".into()),
            ("total_due", Value::from(0_i64)),
            ("due_date", "2025-01-15".into()),
            ("status", "Overdue".into()),
        ],
    )?;
    list_mut(&mut bill, "line_items")?.push(line_item(description, &amount, "Charge")?);
    let total = in_place(Add, Bill::TotalDue.of(&bill)?, &amount)?;
    *Bill::TotalDue.of_mut(&mut bill)? = total;
    add(db, customer_id, bill_id, bill)?;
    let suspended = line_mut(db, line_id)?;
    *Line::Status.of_mut(suspended)? = "Suspended".into();
    *Line::SuspensionStartDate.of_mut(suspended)? = TODAY.into();
    if has_ended.is_true() {
        *Line::ContractEndDate.of_mut(suspended)? = "2025-01-31".into();
    }
    let (line_id, bill_id) = (shown(line_id)?, shown(bill_id)?);
    Ok(Reply::Text(format!(
        "Line {line_id} suspended for unpaid bill {bill_id}. Contract ended: {}",
        shown(has_ended)?
    )))
}
