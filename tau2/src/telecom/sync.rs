//! What the phone gets to know of its line, and the company of what was paid.

use spar_python::BinaryOperator::Add;
use spar_python::{Comparison, Outcome, Value, binary, compare};

use super::device::is_same;
use super::device_data::{Around, PAYMENT_REQUEST};
use super::tools::{bill, customer_by_phone, line_by_phone, plan, row_mut};
use super::{billing, tools};
use crate::database::Database;
use crate::object::{attribute, set};
use crate::validate::make;

const SURROUNDINGS: &str = "surroundings";

/// Carries the line's state over to the phone's surroundings, and requests and payments of bills both ways.
///
/// Doing so twice is doing so once. What went well is therefore left out as long as nothing was changed that it looks at.
///
/// # Errors
///
/// The `ValueError` of a number that is no line's, and what a broken database raises.
pub(crate) fn bring_in_step(company: &mut Database, user: &mut Database) -> Outcome<()> {
    if company.is_touched(None) || user.is_touched(Some(SURROUNDINGS)) {
        carry_over(company, user)?;
        company.settle();
        user.settle();
    }
    Ok(())
}

fn carry_over(company: &mut Database, user: &mut Database) -> Outcome<()> {
    let number = Around::PhoneNumber.of(user.field(SURROUNDINGS)?)?.clone();
    if matches!(number, Value::None) {
        return Ok(());
    }
    let line = line_by_phone(company, &number)?;
    let plan = plan(company, attribute(line, "plan_id")?)?;
    let allowed = attribute(line, "data_refueling_gb")?;
    let is_active = tools::is_status(line, "Active");
    let may_roam = attribute(line, "roaming_enabled")?.is_true();
    put(user, Around::LineActive, is_active)?;
    put(user, Around::RoamingAllowed, may_roam)?;
    let limit = binary(Add, attribute(plan, "data_limit_gb")?, allowed)?;
    let is_exceeded =
        compare(Comparison::GreaterOrEqual, attribute(line, "data_used_gb")?, &limit)?;
    put(user, Around::MobileDataUsageExceeded, is_exceeded)?;

    let mut request = Around::PaymentRequest.of(user.field(SURROUNDINGS)?)?.clone();
    if !matches!(request, Value::None) && attribute(&request, "paid")?.is_true() {
        let id = attribute(&request, "bill_id")?;
        bill(company, id)?;
        set(row_mut(company, "bills", "bill_id", id)?, "status", "Paid".into())?;
        *Around::PaymentRequest.of_mut(user.field_mut(SURROUNDINGS)?)? = Value::None;
        request = Value::None;
    }
    if matches!(request, Value::None) {
        let customer = customer_by_phone(company, &number)?;
        let awaiting = billing::with_status(company, customer, "Awaiting Payment")?;
        if let Some(bill) = awaiting.first() {
            let fields = [
                ("bill_id", attribute(bill, "bill_id")?.clone()),
                ("amount_due", attribute(bill, "total_due")?.clone()),
            ];
            *Around::PaymentRequest.of_mut(user.field_mut(SURROUNDINGS)?)? =
                make(&PAYMENT_REQUEST, fields)?;
        }
    }
    Ok(())
}

/// Sets a yes or no of the surroundings. What it is already is left alone, so that nothing is copied for it.
fn put(user: &mut Database, attribute: Around, holds: bool) -> Outcome<()> {
    if !is_same(attribute.of(user.field(SURROUNDINGS)?)?, &Value::Bool(holds)) {
        *attribute.of_mut(user.field_mut(SURROUNDINGS)?)? = holds.into();
    }
    Ok(())
}
