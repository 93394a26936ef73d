//! What the phone gets to know of its line, and the company of what was paid.

use spar_python::BinaryOperator::Add;
use spar_python::{Comparison, Outcome, Value, binary, compare};

use super::billing;
use super::data::{Bill, Line, Plan};
use super::device::is_same;
use super::device_data::{Around, PAYMENT_REQUEST};
use super::tools::{bill, bill_mut, customer_by_phone, is_line, line_by_phone, plan};
use crate::database::Database;
use crate::object::attribute;
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
    // What was paid and what awaits payment was carried over when these were changed last.
    let may_differ = ["customers", "bills"].iter().any(|table| company.is_touched(Some(table)))
        || user.is_touched(Some(SURROUNDINGS));
    let number = Around::PhoneNumber.of(user.field(SURROUNDINGS)?)?.clone();
    if matches!(number, Value::None) {
        return Ok(());
    }
    let line = line_by_phone(company, &number)?;
    let plan = plan(company, Line::PlanId.of(line)?)?;
    let allowed = Line::DataRefuelingGb.of(line)?;
    let is_active = is_line(line, "Active");
    let may_roam = Line::RoamingEnabled.of(line)?.is_true();
    put(user, Around::LineActive, is_active)?;
    put(user, Around::RoamingAllowed, may_roam)?;
    let limit = binary(Add, Plan::DataLimitGb.of(plan)?, allowed)?;
    let is_exceeded = compare(Comparison::GreaterOrEqual, Line::DataUsedGb.of(line)?, &limit)?;
    put(user, Around::MobileDataUsageExceeded, is_exceeded)?;

    if !may_differ {
        return Ok(());
    }
    let mut request = Around::PaymentRequest.of(user.field(SURROUNDINGS)?)?.clone();
    if !matches!(request, Value::None) && attribute(&request, "paid")?.is_true() {
        let id = attribute(&request, "bill_id")?;
        bill(company, id)?;
        *Bill::Status.of_mut(bill_mut(company, id)?)? = "Paid".into();
        *Around::PaymentRequest.of_mut(user.field_mut(SURROUNDINGS)?)? = Value::None;
        request = Value::None;
    }
    if matches!(request, Value::None) {
        let customer = customer_by_phone(company, &number)?;
        let awaiting = billing::with_status(company, customer, "Awaiting Payment")?;
        if let Some(bill) = awaiting.first() {
            let fields = [
                ("bill_id", Bill::BillId.of(bill)?.clone()),
                ("amount_due", Bill::TotalDue.of(bill)?.clone()),
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
