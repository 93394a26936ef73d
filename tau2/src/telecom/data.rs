//! The data of the domain telecom.

use spar_python::Value;

use crate::schema::Kind::{Bool, Date, DateTime, Enum, Float, List, Model as Of, Str};
use crate::schema::{Model, attributes, defaults, optional, required};

const NO: fn() -> Value = || Value::Bool(false);
const ZERO: fn() -> Value = || Value::Float(0.0);
const EMPTY: fn() -> Value = || Value::list([]);

static ADDRESS: Model = Model::closed(
    "Address",
    &[
        required("street", Str),
        required("city", Str),
        required("state", Str),
        required("zip_code", Str),
    ],
);

static PLAN: Model = Model::closed(
    "Plan",
    &[
        required("plan_id", Str),
        required("name", Str),
        required("data_limit_gb", Float),
        required("price_per_month", Float),
        required("data_refueling_price_per_gb", Float),
    ],
);
attributes! {
    /// An attribute of a plan, in the order of the model's fields.
    Plan of PLAN {
        PlanId,
        Name,
        DataLimitGb,
        PricePerMonth,
        DataRefuelingPricePerGb,
    }
}

static DEVICE: Model = Model::closed(
    "Device",
    &[
        required("device_id", Str),
        required("device_type", Enum(&["phone", "router", "tablet", "watch", "other"])),
        required("model", Str),
        optional("imei", &Str),
        required("is_esim_capable", Bool),
        defaults("activated", Bool, NO),
        optional("activation_date", &DateTime),
        optional("last_esim_transfer_date", &DateTime),
    ],
);

static LINE: Model = Model::closed(
    "Line",
    &[
        required("line_id", Str),
        required("phone_number", Str),
        defaults("status", Enum(&["Active", "Suspended", "Pending Activation", "Closed"]), || {
            Value::from("Pending Activation")
        }),
        required("plan_id", Str),
        optional("device_id", &Str),
        defaults("data_used_gb", Float, ZERO),
        defaults("data_refueling_gb", Float, ZERO),
        defaults("roaming_enabled", Bool, NO),
        optional("contract_end_date", &Date),
        optional("last_plan_change_date", &Date),
        optional("last_sim_replacement_date", &Date),
        optional("suspension_start_date", &Date),
    ],
);
attributes! {
    /// An attribute of a line, in the order of the model's fields.
    Line of LINE {
        LineId,
        PhoneNumber,
        Status,
        PlanId,
        DeviceId,
        DataUsedGb,
        DataRefuelingGb,
        RoamingEnabled,
        ContractEndDate,
        LastPlanChangeDate,
        LastSimReplacementDate,
        SuspensionStartDate,
    }
}

/// A charge or credit on a bill.
pub(crate) static LINE_ITEM: Model = Model::closed(
    "LineItem",
    &[
        required("description", Str),
        required("amount", Float),
        required("date", Date),
        required("item_type", Str),
    ],
);

/// A bill.
pub(crate) static BILL: Model = Model::closed(
    "Bill",
    &[
        required("bill_id", Str),
        required("customer_id", Str),
        required("period_start", Date),
        required("period_end", Date),
        required("issue_date", Date),
        required("total_due", Float),
        required("due_date", Date),
        defaults("line_items", List(&Of(&LINE_ITEM)), EMPTY),
        defaults(
            "status",
            Enum(&["Draft", "Issued", "Awaiting Payment", "Paid", "Overdue", "Disputed"]),
            || Value::from("Draft"),
        ),
    ],
);
attributes! {
    /// An attribute of a bill, in the order of the model's fields.
    Bill of BILL {
        BillId,
        CustomerId,
        PeriodStart,
        PeriodEnd,
        IssueDate,
        TotalDue,
        DueDate,
        LineItems,
        Status,
    }
}

static PAYMENT_METHOD: Model = Model::closed(
    "PaymentMethod",
    &[
        required("method_type", Enum(&["Credit Card", "Debit Card", "PayPal"])),
        required("account_number_last_4", Str),
        required("expiration_date", Str),
    ],
);

static CUSTOMER: Model = Model::closed(
    "Customer",
    &[
        required("customer_id", Str),
        required("full_name", Str),
        required("date_of_birth", Str),
        required("email", Str),
        required("phone_number", Str),
        required("address", Of(&ADDRESS)),
        defaults(
            "account_status",
            Enum(&["Active", "Suspended", "Pending Verification", "Closed"]),
            || Value::from("Pending Verification"),
        ),
        defaults("payment_methods", List(&Of(&PAYMENT_METHOD)), EMPTY),
        defaults("line_ids", List(&Str), EMPTY),
        defaults("bill_ids", List(&Str), EMPTY),
        // The reference's default is a day where times are expected, and is written as one.
        defaults("created_at", DateTime, || Value::from("2025-01-01")),
        optional("last_extension_date", &Date),
        defaults("goodwill_credit_used_this_year", Float, ZERO),
    ],
);
attributes! {
    /// An attribute of a customer, in the order of the model's fields.
    Customer of CUSTOMER {
        CustomerId,
        FullName,
        DateOfBirth,
        Email,
        PhoneNumber,
        Address,
        AccountStatus,
        PaymentMethods,
        LineIds,
        BillIds,
        CreatedAt,
        LastExtensionDate,
        GoodwillCreditUsedThisYear,
    }
}

/// The database of the agent.
pub(crate) static DATABASE: Model = Model::closed(
    "TelecomDB",
    &[
        defaults("plans", List(&Of(&PLAN)), EMPTY),
        defaults("customers", List(&Of(&CUSTOMER)), EMPTY),
        defaults("lines", List(&Of(&LINE)), EMPTY),
        defaults("bills", List(&Of(&BILL)), EMPTY),
        defaults("devices", List(&Of(&DEVICE)), EMPTY),
    ],
);
