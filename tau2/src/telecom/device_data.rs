//! The user's phone and surroundings, as data.

use spar_python::Value;

use crate::object::object;
use crate::schema::Kind::{Bool, Dict, Enum, Float, Int, Model as Of, Optional, Str};
use crate::schema::{Field, Kind, Model, attributes, defaults, optional, required};

const NO: fn() -> Value = || Value::Bool(false);
const YES: fn() -> Value = || Value::Bool(true);
const NONE: fn() -> Value = || Value::from("none");

/// What a preference for networks may be.
pub(crate) const MODES: &[&str] = &["4g_5g_preferred", "4g_only", "3g_only", "2g_only"];
/// The states of a connection.
pub(crate) const CONNECTIONS: &[&str] = &["connected", "searching", "no_service", "emergency_only"];

const TECHNOLOGY: Kind = Enum(&["none", "2G", "3G", "4G", "5G"]);
const SIGNAL: Kind = Enum(&["none", "poor", "fair", "good", "excellent"]);
const PERFORMANCE: Kind = Enum(&["unknown", "poor", "fair", "good", "excellent"]);

/// Settings of an access point.
pub(crate) static APN: Model = Model::closed(
    "APNSettings",
    &[
        defaults("apn_name", Enum(&["internet", "broken"]), || Value::from("internet")),
        defaults("reset_at_reboot", Bool, NO),
        defaults("mms_apn", Optional(&Str), || Value::from("mms")),
        defaults("mmsc_url", Optional(&Str), || Value::from("http://mms.carrier.com/mms/wapenc")),
        optional("mms_proxy", &Str),
        optional("mms_port", &Int),
    ],
);

static VPN: Model = Model::closed(
    "VpnDetails",
    &[
        optional("server_address", &Str),
        optional("protocol", &Str),
        defaults("server_performance", PERFORMANCE, || Value::from("unknown")),
    ],
);

/// The VPN that a phone connects to.
pub(crate) fn default_vpn() -> Value {
    object([
        ("server_address", "192.168.1.1".into()),
        ("protocol", "OpenVPN".into()),
        ("server_performance", "excellent".into()),
    ])
}

static PERMISSIONS: Model = Model::closed(
    "AppPermissions",
    &[
        defaults("sms", Bool, NO),
        defaults("storage", Bool, NO),
        defaults("phone", Bool, NO),
        defaults("network", Bool, NO),
    ],
);

fn permissions(granted: &[&str]) -> Value {
    Value::dict(
        ["sms", "storage", "phone", "network"]
            .map(|name| (name, Value::Bool(granted.contains(&name)))),
    )
}

static APP: Model = Model::closed(
    "AppStatus",
    &[required("app_name", Str), defaults("permissions", Of(&PERMISSIONS), || permissions(&[]))],
);

fn apps() -> Value {
    let app = |name: &str, granted: &[&str]| {
        object([("app_name", name.into()), ("permissions", permissions(granted))])
    };
    object([
        ("messaging", app("messaging", &["sms", "storage", "phone"])),
        ("browser", app("browser", &["network", "storage"])),
    ])
}

static DEVICE: Model = Model::closed(
    "MockPhoneAttributes",
    &[
        defaults(
            "sim_card_status",
            Enum(&["active", "missing", "locked_pin", "locked_puk"]),
            || Value::from("active"),
        ),
        defaults("sim_card_missing", Bool, NO),
        defaults("airplane_mode", Bool, NO),
        defaults("network_signal_strength", SIGNAL, || Value::from("good")),
        defaults("network_technology_connected", TECHNOLOGY, || Value::from("5G")),
        defaults("network_connection_status", Enum(CONNECTIONS), || Value::from("connected")),
        defaults("battery_level", Int, || Value::from(80_i64)),
        defaults("data_enabled", Bool, YES),
        defaults("roaming_enabled", Bool, NO),
        defaults("network_mode_preference", Enum(MODES), || Value::from("4g_5g_preferred")),
        defaults("active_apn_settings", Of(&APN), default_apn),
        defaults("wifi_enabled", Bool, NO),
        defaults("wifi_connected", Bool, NO),
        optional("wifi_ssid", &Str),
        defaults("wifi_signal_strength", SIGNAL, NONE),
        defaults("wifi_calling_enabled", Bool, NO),
        defaults("wifi_calling_mms_over_wifi", Bool, NO),
        defaults("data_saver_mode", Bool, NO),
        defaults("vpn_enabled_setting", Bool, NO),
        defaults("vpn_connected", Bool, NO),
        optional("vpn_details", &Of(&VPN)),
        defaults("app_statuses", Dict(&Str, &Of(&APP)), apps),
    ],
);

attributes! {
    /// An attribute of the phone, in the order of the model's fields.
    Phone of DEVICE {
        SimCardStatus,
        SimCardMissing,
        AirplaneMode,
        NetworkSignalStrength,
        NetworkTechnologyConnected,
        NetworkConnectionStatus,
        BatteryLevel,
        DataEnabled,
        RoamingEnabled,
        NetworkModePreference,
        ActiveApnSettings,
        WifiEnabled,
        WifiConnected,
        WifiSsid,
        WifiSignalStrength,
        WifiCallingEnabled,
        WifiCallingMmsOverWifi,
        DataSaverMode,
        VpnEnabledSetting,
        VpnConnected,
        VpnDetails,
        AppStatuses,
    }
}

/// A payment that the agent asked for.
pub(crate) static PAYMENT_REQUEST: Model = Model::closed(
    "PaymentRequest",
    &[required("bill_id", Str), required("amount_due", Float), defaults("paid", Bool, NO)],
);

static SURROUNDINGS: Model = Model::closed(
    "UserSurroundings",
    &[
        optional("name", &Str),
        optional("phone_number", &Str),
        defaults("is_abroad", Bool, NO),
        defaults("roaming_allowed", Bool, NO),
        defaults("signal_strength", Dict(&TECHNOLOGY, &SIGNAL), signals),
        defaults("mobile_data_usage_exceeded", Bool, NO),
        defaults("line_active", Bool, YES),
        optional("payment_request", &Of(&PAYMENT_REQUEST)),
    ],
);

attributes! {
    /// An attribute of the surroundings, in the order of the model's fields.
    Around of SURROUNDINGS {
        Name,
        PhoneNumber,
        IsAbroad,
        RoamingAllowed,
        SignalStrength,
        MobileDataUsageExceeded,
        LineActive,
        PaymentRequest,
    }
}

/// The settings that an access point has by itself.
pub(crate) fn default_apn() -> Value {
    initial(&APN)
}

fn signals() -> Value {
    object([
        ("2G", "poor".into()),
        ("3G", "fair".into()),
        ("4G", "good".into()),
        ("5G", "excellent".into()),
    ])
}

/// An object of a model with all its own values; every field has one.
fn initial(model: &'static Model) -> Value {
    let own = |field: &Field| field.default.expect("every field has a value of its own")();
    model.object(model.fields.iter().map(own).collect())
}

/// The database of the user.
pub(crate) static USER_DATABASE: Model = Model::closed(
    "TelecomUserDB",
    &[
        defaults("device", Of(&DEVICE), || initial(&DEVICE)),
        defaults("surroundings", Of(&SURROUNDINGS), || initial(&SURROUNDINGS)),
    ],
);
