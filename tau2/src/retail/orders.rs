//! How orders are cancelled, exchanged, changed and returned.

use spar_python::BinaryOperator::{Add, Subtract};
use spar_python::{Comparison, Outcome, Value, absolute, compare, equal, iterate, length, round};

use super::data::PAYMENT;
use super::tools::{order, order_mut, product, user};
use crate::database::Database;
use crate::object::{attribute, count, in_place, list_mut, refuse, set, shown, sorted_list};
use crate::reply::Reply;
use crate::validate::make;

/// Whether an order is pending, be it that its items were changed.
///
/// # Errors
///
/// The `AttributeError` of what is no order.
pub(super) fn is_pending(order: &Value) -> Outcome<bool> {
    Ok(has_status(order, |status| status.contains("pending")))
}

fn has_status(order: &Value, is_it: impl Fn(&str) -> bool) -> bool {
    attribute(order, "status").ok().and_then(Value::as_str).is_some_and(is_it)
}

/// A payment method of a user.
fn payment_method<'d>(db: &'d Database, user_id: &Value, id: &Value) -> Outcome<&'d Value> {
    let methods = attribute(user(db, user_id)?, "payment_methods")?.as_dict();
    match methods.map(|methods| methods.get(id)).transpose()?.flatten() {
        Some(method) => Ok(method),
        None => refuse("Payment method not found"),
    }
}

fn is_gift_card(method: &Value) -> bool {
    attribute(method, "source").ok().and_then(Value::as_str) == Some("gift_card")
}

/// Adds to what is on a gift card, in whole cents.
fn add_to_card(db: &mut Database, user_id: &Value, id: &Value, amount: &Value) -> Outcome<()> {
    let Some(user) = db.row_mut("users", user_id)? else { return refuse("User not found") };
    let methods = crate::object::attribute_mut(user, "payment_methods")?.as_dict_mut();
    let Some(method) = methods.map(|methods| methods.get_mut(id)).transpose()?.flatten() else {
        return refuse("Payment method not found");
    };
    let balance = in_place(Add, attribute(method, "balance")?, amount)?;
    set(method, "balance", round(&balance, &Value::from(2_i64))?)
}

fn take_from_card(db: &mut Database, user_id: &Value, id: &Value, amount: &Value) -> Outcome<()> {
    // Subtracting is adding what is negative, to the bit.
    add_to_card(db, user_id, id, &spar_python::negate(amount)?)
}

fn payment(kind: &str, amount: &Value, method: &Value) -> Outcome<Value> {
    make(
        &PAYMENT,
        [
            ("transaction_type", kind.into()),
            ("amount", amount.clone()),
            ("payment_method_id", method.clone()),
        ],
    )
}

/// Cancels a pending order and pays back what was paid.
///
/// # Errors
///
/// What the tool raises.
pub(super) fn cancel(db: &mut Database, id: &Value, reason: &Value) -> Outcome<Reply> {
    let order = order(db, id)?.clone();
    if !has_status(&order, |status| status == "pending") {
        return refuse("Non-pending order cannot be cancelled");
    }
    reason.check_hashable()?;
    if !matches!(reason.as_str(), Some("no longer needed" | "ordered by mistake")) {
        return refuse("Invalid reason");
    }
    let user_id = attribute(&order, "user_id")?;
    let mut refunds = Vec::new();
    for paid in iterate(attribute(&order, "payment_history")?)? {
        let (method_id, amount) =
            (attribute(&paid, "payment_method_id")?, attribute(&paid, "amount")?);
        refunds.push(payment("refund", amount, method_id)?);
        let own_id = attribute(user(db, user_id)?, "user_id")?.clone();
        if is_gift_card(payment_method(db, &own_id, method_id)?) {
            add_to_card(db, &own_id, method_id, amount)?;
        }
    }
    let order = order_mut(db, id)?;
    set(order, "status", "cancelled".into())?;
    set(order, "cancel_reason", reason.clone())?;
    list_mut(order, "payment_history")?.extend(refunds);
    Ok(Reply::Models(order.clone()))
}

/// The ids of the items of an order.
fn item_ids_of(order: &Value) -> Outcome<Value> {
    let ids = iterate(attribute(order, "items")?)?
        .iter()
        .map(|item| attribute(item, "item_id").cloned())
        .collect::<Outcome<Vec<_>>>()?;
    Ok(Value::list(ids))
}

/// The first item that is asked for more often than the order has it.
fn lacking(order: &Value, item_ids: &Value) -> Outcome<Option<Value>> {
    let all = item_ids_of(order)?;
    for item_id in iterate(item_ids)? {
        if count(item_ids, &item_id)? > count(&all, &item_id)? {
            return Ok(Some(item_id));
        }
    }
    Ok(None)
}

/// The place of an item in an order.
fn place_of(order: &Value, item_id: &Value) -> Outcome<usize> {
    for (place, item) in iterate(attribute(order, "items")?)?.iter().enumerate() {
        if equal(attribute(item, "item_id")?, item_id) {
            return Ok(place);
        }
    }
    refuse(format_args!("Item {} not found", shown(item_id)?))
}

/// A variant of a product.
fn variant<'d>(db: &'d Database, product_id: &Value, id: &Value) -> Outcome<&'d Value> {
    let variants = attribute(product(db, product_id)?, "variants")?.as_dict();
    match variants.map(|variants| variants.get(id)).transpose()?.flatten() {
        Some(variant) => Ok(variant),
        None => refuse("Variant not found"),
    }
}

/// What replaces items: the difference in price, and the variant that was looked at last.
fn replacements(
    db: &Database,
    order: &Value,
    pairs: &[(Value, Value)],
    has_to_differ: bool,
) -> Outcome<(Value, Option<Value>)> {
    let (mut difference, mut last) = (Value::from(0_i64), None);
    let items = iterate(attribute(order, "items")?)?;
    for (item_id, new_item_id) in pairs {
        if has_to_differ && equal(item_id, new_item_id) {
            return refuse("The new item id should be different from the old item id");
        }
        let item = &items[place_of(order, item_id)?];
        let variant = variant(db, attribute(item, "product_id")?, new_item_id)?;
        if !attribute(variant, "available")?.is_true() {
            let new_item_id = shown(new_item_id)?;
            return refuse(format_args!("New item {new_item_id} not found or available"));
        }
        let (old, new) = (attribute(item, "price")?, attribute(variant, "price")?);
        let step = spar_python::binary(Subtract, new, old)?;
        difference = in_place(Add, &difference, &step)?;
        last = Some(variant.clone());
    }
    Ok((difference, last))
}

fn pairs(item_ids: &Value, new_item_ids: &Value) -> Outcome<Vec<(Value, Value)>> {
    Ok(iterate(item_ids)?.into_iter().zip(iterate(new_item_ids)?).collect())
}

/// Whether a payment method is a gift card with less on it than that.
fn is_short(method: &Value, amount: &Value) -> Outcome<bool> {
    if !is_gift_card(method) {
        return Ok(false);
    }
    compare(Comparison::Less, attribute(method, "balance")?, amount)
}

/// Asks for other items in place of delivered ones.
///
/// # Errors
///
/// What the tool raises.
pub(super) fn exchange(
    db: &mut Database,
    id: &Value,
    item_ids: &Value,
    new_item_ids: &Value,
    method_id: &Value,
) -> Outcome<Reply> {
    let order = order(db, id)?;
    if !has_status(order, |status| status == "delivered") {
        return refuse("Non-delivered order cannot be exchanged");
    }
    if let Some(item_id) = lacking(order, item_ids)? {
        return refuse(format_args!("Number of {} not found.", shown(&item_id)?));
    }
    if length(item_ids)? != length(new_item_ids)? {
        return refuse("The number of items to be exchanged should match.");
    }
    let (difference, _) = replacements(db, order, &pairs(item_ids, new_item_ids)?, false)?;
    let difference = round(&difference, &Value::from(2_i64))?;
    let method = payment_method(db, attribute(order, "user_id")?, method_id)?;
    if is_short(method, &difference)? {
        return refuse("Insufficient gift card balance to pay for the price difference");
    }
    let order = order_mut(db, id)?;
    set(order, "status", "exchange requested".into())?;
    set(order, "exchange_items", sorted_list(item_ids)?)?;
    set(order, "exchange_new_items", sorted_list(new_item_ids)?)?;
    set(order, "exchange_payment_method_id", method_id.clone())?;
    set(order, "exchange_price_difference", difference)?;
    Ok(Reply::Models(order.clone()))
}

/// Changes the items of a pending order.
///
/// # Errors
///
/// What the tool raises.
pub(super) fn modify_items(
    db: &mut Database,
    id: &Value,
    item_ids: &Value,
    new_item_ids: &Value,
    method_id: &Value,
) -> Outcome<Reply> {
    let order = order(db, id)?.clone();
    if !has_status(&order, |status| status == "pending") {
        return refuse("Non-pending order cannot be modified");
    }
    if let Some(item_id) = lacking(&order, item_ids)? {
        return refuse(format_args!("{} not found", shown(&item_id)?));
    }
    if length(item_ids)? != length(new_item_ids)? {
        return refuse("The number of items to be exchanged should match");
    }
    let pairs = pairs(item_ids, new_item_ids)?;
    let (difference, last) = replacements(db, &order, &pairs, true)?;
    let user_id = attribute(&order, "user_id")?;
    let method = payment_method(db, user_id, method_id)?;
    if is_short(method, &difference)? {
        return refuse("Insufficient gift card balance to pay for the new item");
    }
    let is_card = is_gift_card(method);
    let is_dearer = compare(Comparison::Greater, &difference, &Value::from(0_i64))?;
    let kind = if is_dearer { "payment" } else { "refund" };
    let paid = payment(kind, &absolute(&difference)?, method_id)?;
    list_mut(order_mut(db, id)?, "payment_history")?.push(paid);
    if is_card {
        take_from_card(db, user_id, method_id, &difference)?;
    }
    for (item_id, new_item_id) in &pairs {
        let order = order_mut(db, id)?;
        let place = place_of(order, item_id)?;
        let item = &mut list_mut(order, "items")?[place];
        set(item, "item_id", new_item_id.clone())?;
        // The reference gives every item the price and options of the variant it looked at last.
        if let Some(variant) = &last {
            set(item, "price", attribute(variant, "price")?.clone())?;
            set(item, "options", attribute(variant, "options")?.clone())?;
        }
    }
    let order = order_mut(db, id)?;
    set(order, "status", "pending (item modified)".into())?;
    Ok(Reply::Models(order.clone()))
}

/// Changes what pays for a pending order.
///
/// # Errors
///
/// What the tool raises.
pub(super) fn modify_payment(db: &mut Database, id: &Value, method_id: &Value) -> Outcome<Reply> {
    let order = order(db, id)?.clone();
    if !is_pending(&order)? {
        return refuse("Non-pending order cannot be modified");
    }
    let user_id = attribute(&order, "user_id")?;
    let method = payment_method(db, user_id, method_id)?;
    let history = iterate(attribute(&order, "payment_history")?)?;
    let [paid] = &history[..] else {
        return refuse("There should be exactly one payment for a pending order");
    };
    if attribute(paid, "transaction_type")?.as_str() != Some("payment") {
        return refuse("There should be exactly one payment for a pending order");
    }
    let old_id = attribute(paid, "payment_method_id")?;
    if equal(old_id, method_id) {
        return refuse("The new payment method should be different from the current one");
    }
    let amount = attribute(paid, "amount")?;
    if is_short(method, amount)? {
        return refuse("Insufficient gift card balance to pay for the order");
    }
    let is_card = is_gift_card(method);
    let moved = [payment("payment", amount, method_id)?, payment("refund", amount, old_id)?];
    list_mut(order_mut(db, id)?, "payment_history")?.extend(moved);
    if is_card {
        take_from_card(db, user_id, method_id, amount)?;
    }
    if is_gift_card(payment_method(db, user_id, old_id)?) {
        add_to_card(db, user_id, old_id, amount)?;
    }
    Ok(Reply::Models(order_mut(db, id)?.clone()))
}

/// Asks to return delivered items.
///
/// # Errors
///
/// What the tool raises.
pub(super) fn return_items(
    db: &mut Database,
    id: &Value,
    item_ids: &Value,
    method_id: &Value,
) -> Outcome<Reply> {
    let order = order(db, id)?;
    if !has_status(order, |status| status == "delivered") {
        return refuse("Non-delivered order cannot be returned");
    }
    let owner = user(db, attribute(order, "user_id")?)?;
    let method = payment_method(db, attribute(owner, "user_id")?, method_id)?;
    if !is_gift_card(method) {
        let history = iterate(attribute(order, "payment_history")?)?;
        let Some(first) = history.first() else {
            return Err(spar_python::Exception::new(
                spar_python::ExceptionKind::Index,
                "list index out of range",
            ));
        };
        if !equal(attribute(first, "payment_method_id")?, method_id) {
            return refuse("Payment method should be the original payment method");
        }
    }
    if lacking(order, item_ids)?.is_some() {
        return refuse("Some item not found");
    }
    let order = order_mut(db, id)?;
    set(order, "status", "return requested".into())?;
    set(order, "return_items", sorted_list(item_ids)?)?;
    set(order, "return_payment_method_id", method_id.clone())?;
    Ok(Reply::Models(order.clone()))
}
