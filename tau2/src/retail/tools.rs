//! What the agent of the domain retail can do.

use spar_python::{JsonOptions, Outcome, Value, equal, json_dumps_with};

use super::orders;
use crate::calculate::calculate;
use crate::database::{Database, Key};
use crate::object::{attribute, is_lower, lower, refuse, set};
use crate::reply::Reply;
use crate::signature::ArgumentType::{OneOf, Str, Strs};
use crate::signature::ToolKind::{Generic, Read, Write};
use crate::signature::{Arguments, Parameter, Signature, argument};
use crate::validate::validate;

const ORDER_ID: Parameter = argument("order_id", Str, "The order, with its `#`, as `#W0000000`.");
const USER_ID: Parameter = argument("user_id", Str, "The user, as `sara_doe_496`.");
const ITEM_IDS: Parameter =
    argument("item_ids", Strs, "The items, as `1008292230`; an item may stand there twice.");
const NEW_ITEM_IDS: Parameter = argument(
    "new_item_ids",
    Strs,
    "What they become, in the same order; each has to be of the same product as what it replaces.",
);
const PAYMENT_METHOD_ID: Parameter = argument(
    "payment_method_id",
    Str,
    "What pays or is paid back to, as `gift_card_0000000`; the user's details list them.",
);
const ADDRESS: [Parameter; 6] = [
    argument("address1", Str, "The first line, as `123 Main St`."),
    argument("address2", Str, "The second line, as `Apt 1`, or nothing."),
    argument("city", Str, "The city."),
    argument("state", Str, "The state, as `CA`."),
    argument("country", Str, "The country, as `USA`."),
    argument("zip", Str, "The zip code, as `12345`."),
];

/// The tools.
pub(crate) const SIGNATURES: &[Signature] = &[
    Signature {
        name: "calculate",
        kind: Generic,
        parameters: &[argument("expression", Str, "Numbers, + - * /, parentheses and blanks.")],
        about: "Computes an expression.",
    },
    Signature {
        name: "cancel_pending_order",
        kind: Write,
        parameters: &[
            ORDER_ID,
            argument(
                "reason",
                OneOf(&["no longer needed", "ordered by mistake"]),
                "Why it is cancelled.",
            ),
        ],
        about: "Cancels an order that is pending, once the user has confirmed it. What was paid goes back: to a gift card at once, else within 5 to 7 business days.",
    },
    Signature {
        name: "exchange_delivered_order_items",
        kind: Write,
        parameters: &[ORDER_ID, ITEM_IDS, NEW_ITEM_IDS, PAYMENT_METHOD_ID],
        about: "Exchanges items of a delivered order for others of the same products, once the user has confirmed it. An order can be exchanged or returned only once.",
    },
    Signature {
        name: "find_user_id_by_name_zip",
        kind: Read,
        parameters: &[
            argument("first_name", Str, "The first name."),
            argument("last_name", Str, "The last name."),
            argument("zip", Str, "The zip code."),
        ],
        about: "Finds a user by name and zip code, where the email address does not help.",
    },
    Signature {
        name: "find_user_id_by_email",
        kind: Read,
        parameters: &[argument("email", Str, "The email address.")],
        about: "Finds a user by email address.",
    },
    Signature {
        name: "get_order_details",
        kind: Read,
        parameters: &[ORDER_ID],
        about: "Shows an order.",
    },
    Signature {
        name: "get_product_details",
        kind: Read,
        parameters: &[argument(
            "product_id",
            Str,
            "The product, as `6086499569`; it is not the id of an item.",
        )],
        about: "Shows a product and its variants.",
    },
    Signature {
        name: "get_item_details",
        kind: Read,
        parameters: &[argument(
            "item_id",
            Str,
            "The item, as `1008292230`; it is not the id of a product.",
        )],
        about: "Shows one variant of a product.",
    },
    Signature {
        name: "get_user_details",
        kind: Read,
        parameters: &[USER_ID],
        about: "Shows a user and the user's orders.",
    },
    Signature {
        name: "list_all_product_types",
        kind: Read,
        parameters: &[],
        about: "Lists the names and ids of all products.",
    },
    Signature {
        name: "modify_pending_order_address",
        kind: Write,
        parameters: &[
            ORDER_ID, ADDRESS[0], ADDRESS[1], ADDRESS[2], ADDRESS[3], ADDRESS[4], ADDRESS[5],
        ],
        about: "Changes where a pending order goes, once the user has confirmed it.",
    },
    Signature {
        name: "modify_pending_order_items",
        kind: Write,
        parameters: &[ORDER_ID, ITEM_IDS, NEW_ITEM_IDS, PAYMENT_METHOD_ID],
        about: "Changes items of a pending order to others of the same products, once the user has confirmed it. An order can be changed so only once.",
    },
    Signature {
        name: "modify_pending_order_payment",
        kind: Write,
        parameters: &[ORDER_ID, PAYMENT_METHOD_ID],
        about: "Changes what pays for a pending order, once the user has confirmed it.",
    },
    Signature {
        name: "modify_user_address",
        kind: Write,
        parameters: &[
            USER_ID, ADDRESS[0], ADDRESS[1], ADDRESS[2], ADDRESS[3], ADDRESS[4], ADDRESS[5],
        ],
        about: "Changes a user's address, once the user has confirmed it.",
    },
    Signature {
        name: "return_delivered_order_items",
        kind: Write,
        parameters: &[ORDER_ID, ITEM_IDS, PAYMENT_METHOD_ID],
        about: "Returns items of a delivered order, once the user has confirmed it. An email says how.",
    },
    Signature {
        name: "transfer_to_human_agents",
        kind: Generic,
        parameters: &[argument("summary", Str, "What the user's problem is, in short.")],
        about: "Hands the user over to a human. Only where the user asks for one, or where neither the policy nor the tools allow to solve the problem.",
    },
];

/// Carries out a tool of [`SIGNATURES`].
///
/// # Errors
///
/// What the tool raises.
pub(crate) fn call(db: &mut Database, name: &str, arguments: &Arguments) -> Outcome<Reply> {
    let argument = |place| arguments.get(place);
    let models = |value: &Value| Ok(Reply::Models(value.clone()));
    match name {
        "calculate" => calculate(argument(0)),
        "find_user_id_by_name_zip" => find_by_name(db, argument(0), argument(1), argument(2)),
        "find_user_id_by_email" => {
            // Where nobody is, nothing is wrong with the argument.
            if db.num_rows("users")? > 0 {
                let wanted = lower(argument(0))?;
                for (user_id, user) in db.rows_under("users", &EMAIL, &wanted)? {
                    if is_lower(attribute(user, "email")?, &wanted)? {
                        return Ok(Reply::text(user_id.as_str().unwrap_or_default()));
                    }
                }
            }
            refuse("User not found")
        }
        "get_order_details" => found(db, "orders", argument(0), "Order not found"),
        "get_product_details" => found(db, "products", argument(0), "Product not found"),
        "get_item_details" => {
            let products = match argument(0).as_str() {
                Some(item_id) => db.rows_under("products", &ITEM, item_id)?,
                None => db.rows("products")?.collect(),
            };
            for (_, product) in products {
                let variants = attribute(product, "variants")?.as_dict();
                if let Some(variant) =
                    variants.map(|all| all.get(argument(0))).transpose()?.flatten()
                {
                    return models(variant);
                }
            }
            refuse("Item not found")
        }
        "get_user_details" => found(db, "users", argument(0), "User not found"),
        "list_all_product_types" => {
            let mut names = spar_python::Dict::default();
            for (_, product) in db.rows("products")? {
                let id = attribute(product, "product_id")?.clone();
                names.insert(attribute(product, "name")?.clone(), id)?;
            }
            let options = JsonOptions { sort_keys: true, ..JsonOptions::default() };
            Ok(Reply::Text(json_dumps_with(&Value::Dict(names.into()), options)?))
        }
        "modify_pending_order_address" => {
            let id = argument(0);
            if !orders::is_pending(order(db, id)?)? {
                return refuse("Non-pending order cannot be modified");
            }
            let address = address(arguments)?;
            let order = order_mut(db, id)?;
            set(order, "address", address)?;
            models(order)
        }
        "modify_user_address" => {
            user(db, argument(0))?;
            let address = address(arguments)?;
            let Some(user) = db.row_mut("users", argument(0))? else {
                return refuse("User not found");
            };
            set(user, "address", address)?;
            models(user)
        }
        "cancel_pending_order" => orders::cancel(db, argument(0), argument(1)),
        "exchange_delivered_order_items" => {
            orders::exchange(db, argument(0), argument(1), argument(2), argument(3))
        }
        "modify_pending_order_items" => {
            orders::modify_items(db, argument(0), argument(1), argument(2), argument(3))
        }
        "modify_pending_order_payment" => orders::modify_payment(db, argument(0), argument(1)),
        "return_delivered_order_items" => {
            orders::return_items(db, argument(0), argument(1), argument(2))
        }
        _ => Ok(Reply::text("Transfer successful")),
    }
}

/// Users by their first name in small letters.
const FIRST_NAME: Key = Key {
    slot: 0,
    texts: |user| {
        let name = attribute(user, "name").and_then(|name| attribute(name, "first_name"));
        name.and_then(lower).into_iter().collect()
    },
};
/// Users by their address in small letters.
const EMAIL: Key =
    Key { slot: 1, texts: |user| attribute(user, "email").and_then(lower).into_iter().collect() };
/// Products by the ids of their variants.
const ITEM: Key = Key {
    slot: 0,
    texts: |product| {
        let variants = attribute(product, "variants").ok().and_then(Value::as_dict);
        let ids = variants.into_iter().flat_map(|variants| variants.keys());
        ids.filter_map(Value::as_str).map(str::to_owned).collect()
    },
};

/// A row as an answer.
fn found(db: &Database, table: &str, id: &Value, none: &str) -> Outcome<Reply> {
    db.reply(table, id)?.map_or_else(|| refuse(none), Ok)
}

fn find_by_name(db: &Database, first: &Value, last: &Value, zip: &Value) -> Outcome<Reply> {
    if db.num_rows("users")? == 0 {
        return refuse("User not found");
    }
    let wanted = lower(first)?;
    for (user_id, user) in db.rows_under("users", &FIRST_NAME, &wanted)? {
        let name = attribute(user, "name")?;
        // What is wrong with the last name comes to light where the first one fits.
        let is_it = is_lower(attribute(name, "first_name")?, &wanted)?
            && lower(attribute(name, "last_name")?)? == lower(last)?
            && equal(attribute(attribute(user, "address")?, "zip")?, zip);
        if is_it {
            return Ok(Reply::text(user_id.as_str().unwrap_or_default()));
        }
    }
    refuse("User not found")
}

/// The address that the arguments behind the first one are.
fn address(arguments: &Arguments) -> Outcome<Value> {
    let fields = ADDRESS.iter().enumerate();
    let fields = fields.map(|(at, field)| (field.name, arguments.get(at + 1).clone()));
    validate(&super::data::ADDRESS, &Value::dict(fields))
}

/// An order.
///
/// # Errors
///
/// The `ValueError` of one that there is not, the `TypeError` of what cannot be looked up.
pub(super) fn order<'d>(db: &'d Database, id: &Value) -> Outcome<&'d Value> {
    match db.row("orders", id)? {
        Some(order) => Ok(order),
        None => refuse("Order not found"),
    }
}

/// As [`order`], to be changed.
///
/// # Errors
///
/// The same.
pub(super) fn order_mut<'d>(db: &'d mut Database, id: &Value) -> Outcome<&'d mut Value> {
    match db.row_mut("orders", id)? {
        Some(order) => Ok(order),
        None => refuse("Order not found"),
    }
}

/// A user.
///
/// # Errors
///
/// The `ValueError` of one that there is not, the `TypeError` of what cannot be looked up.
pub(super) fn user<'d>(db: &'d Database, id: &Value) -> Outcome<&'d Value> {
    match db.row("users", id)? {
        Some(user) => Ok(user),
        None => refuse("User not found"),
    }
}

/// A product.
///
/// # Errors
///
/// The `ValueError` of one that there is not, the `TypeError` of what cannot be looked up.
pub(super) fn product<'d>(db: &'d Database, id: &Value) -> Outcome<&'d Value> {
    match db.row("products", id)? {
        Some(product) => Ok(product),
        None => refuse("Product not found"),
    }
}
