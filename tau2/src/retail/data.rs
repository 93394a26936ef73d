//! The data of the domain retail.

use crate::schema::Kind::{Bool, Dict, Float, List, Literal, Model as Of, Str, Union};
use crate::schema::{Model, optional, required};

static VARIANT: Model = Model::open(
    "Variant",
    &[
        required("item_id", Str),
        required("options", Dict(&Str, &Str)),
        required("available", Bool),
        required("price", Float),
    ],
);

static PRODUCT: Model = Model::open(
    "Product",
    &[
        required("name", Str),
        required("product_id", Str),
        required("variants", Dict(&Str, &Of(&VARIANT))),
    ],
);

static USER_NAME: Model =
    Model::open("UserName", &[required("first_name", Str), required("last_name", Str)]);

/// Where someone lives, or an order goes.
pub(crate) static ADDRESS: Model = Model::open(
    "UserAddress",
    &[
        required("address1", Str),
        required("address2", Str),
        required("city", Str),
        required("country", Str),
        required("state", Str),
        required("zip", Str),
    ],
);

static CREDIT_CARD: Model = Model::open(
    "CreditCard",
    &[
        required("source", Literal(&["credit_card"])),
        required("id", Str),
        required("brand", Str),
        required("last_four", Str),
    ],
);

static GIFT_CARD: Model = Model::open(
    "GiftCard",
    &[required("source", Literal(&["gift_card"])), required("id", Str), required("balance", Float)],
);

static PAYPAL: Model =
    Model::open("Paypal", &[required("source", Literal(&["paypal"])), required("id", Str)]);

static USER: Model = Model::open(
    "User",
    &[
        required("user_id", Str),
        required("name", Of(&USER_NAME)),
        required("address", Of(&ADDRESS)),
        required("email", Str),
        required("payment_methods", Dict(&Str, &Union(&[&CREDIT_CARD, &GIFT_CARD, &PAYPAL]))),
        required("orders", List(&Str)),
    ],
);

static FULFILLMENT: Model = Model::open(
    "OrderFullfilment",
    &[required("tracking_id", List(&Str)), required("item_ids", List(&Str))],
);

static ITEM: Model = Model::open(
    "OrderItem",
    &[
        required("name", Str),
        required("product_id", Str),
        required("item_id", Str),
        required("price", Float),
        required("options", Dict(&Str, &Str)),
    ],
);

/// What was paid for an order, or paid back.
pub(crate) static PAYMENT: Model = Model::open(
    "OrderPayment",
    &[
        required("transaction_type", Literal(&["payment", "refund"])),
        required("amount", Float),
        required("payment_method_id", Str),
    ],
);

static ORDER: Model = Model::open(
    "Order",
    &[
        required("order_id", Str),
        required("user_id", Str),
        required("address", Of(&ADDRESS)),
        required("items", List(&Of(&ITEM))),
        required(
            "status",
            Literal(&[
                "processed",
                "pending",
                "pending (item modified)",
                "delivered",
                "cancelled",
                "exchange requested",
                "return requested",
            ]),
        ),
        required("fulfillments", List(&Of(&FULFILLMENT))),
        required("payment_history", List(&Of(&PAYMENT))),
        optional("cancel_reason", &Literal(&["no longer needed", "ordered by mistake"])),
        optional("exchange_items", &List(&Str)),
        optional("exchange_new_items", &List(&Str)),
        optional("exchange_payment_method_id", &Str),
        optional("exchange_price_difference", &Float),
        optional("return_items", &List(&Str)),
        optional("return_payment_method_id", &Str),
    ],
);

/// The database.
pub(crate) static DATABASE: Model = Model::closed(
    "RetailDB",
    &[
        required("products", Dict(&Str, &Of(&PRODUCT))),
        required("users", Dict(&Str, &Of(&USER))),
        required("orders", Dict(&Str, &Of(&ORDER))),
    ],
);
