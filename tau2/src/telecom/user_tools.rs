//! What the user of the domain telecom can do with the phone.

use spar_python::{
    Comparison, Exception, Outcome, Value, compare, equal, format_fixed, iterate, repr, repr_str,
};

use super::device::{Device, Vpn, assert, on_off};
use super::device_data::{APN, Around, CONNECTIONS, MODES, Phone};
use crate::database::Database;
use crate::object::{attribute, lower, refuse, set, shown};
use crate::reply::Reply;
use crate::signature::ArgumentType::{Bool, Float, Object, OneOf, Str};
use crate::signature::ToolKind::{Hidden, Read, Write};
use crate::signature::{Arguments, Parameter, Signature, ToolKind, argument, optional};
use crate::validate::validate;

const APP: Parameter = argument("app_name", Str, "The app, as `messaging`.");
const EXPECTED: Parameter = argument("expected_status", Bool, "What is expected.");

const fn plain(name: &'static str, kind: ToolKind, about: &'static str) -> Signature {
    Signature { name, kind, parameters: &[], about }
}

const fn taking(
    name: &'static str,
    kind: ToolKind,
    parameters: &'static [Parameter],
    about: &'static str,
) -> Signature {
    Signature { name, kind, parameters, about }
}

/// The tools, and what else initial states and assertions call.
pub(crate) const SIGNATURES: &[Signature] = &[
    plain("check_status_bar", Read, "Shows the bar at the top of your phone's screen."),
    plain("check_network_status", Read, "Shows how your phone is connected."),
    plain("check_network_mode_preference", Read, "Shows which networks your phone prefers."),
    taking(
        "set_network_mode_preference",
        Write,
        &[argument("mode", OneOf(MODES), "What it is to prefer.")],
        "Sets which networks your phone prefers.",
    ),
    plain("run_speed_test", Read, "Measures how fast your connection is."),
    plain("toggle_airplane_mode", Write, "Turns airplane mode on or off."),
    plain("check_sim_status", Read, "Shows whether your SIM card works."),
    plain("reseat_sim_card", Write, "Takes the SIM card out and puts it in again."),
    plain("toggle_data", Write, "Turns mobile data on or off."),
    plain("toggle_roaming", Write, "Turns data roaming on or off."),
    plain("check_data_restriction_status", Read, "Shows whether data saver mode is on."),
    plain("toggle_data_saver_mode", Write, "Turns data saver mode on or off."),
    plain("check_apn_settings", Read, "Shows the settings of your access point."),
    taking(
        "set_apn_settings",
        Write,
        &[argument(
            "apn_settings",
            Object(&["apn_name", "mms_apn", "mmsc_url", "mms_proxy", "#mms_port"]),
            "The settings.",
        )],
        "Sets the settings of your access point.",
    ),
    plain(
        "reset_apn_settings",
        Write,
        "Has the settings of your access point reset at the next start.",
    ),
    plain("check_wifi_status", Read, "Shows whether you are connected to a wireless network."),
    plain("toggle_wifi", Write, "Turns wireless networks on or off."),
    plain("check_wifi_calling_status", Read, "Shows whether calls go over wireless networks."),
    plain("toggle_wifi_calling", Write, "Turns calls over wireless networks on or off."),
    plain("check_vpn_status", Read, "Shows whether you are connected to a VPN."),
    plain("connect_vpn", Write, "Connects to your VPN."),
    plain("disconnect_vpn", Write, "Ends the connection to your VPN."),
    plain("check_installed_apps", Read, "Lists the apps on your phone."),
    taking("check_app_status", Read, &[APP], "Shows an app and what it may do."),
    taking("check_app_permissions", Read, &[APP], "Shows what an app may do."),
    taking(
        "grant_app_permission",
        Write,
        &[APP, argument("permission", Str, "What it may do then, in lower case, as `storage`.")],
        "Allows something to an app.",
    ),
    plain("can_send_mms", Read, "Shows whether you can send pictures."),
    plain("reboot_device", Write, "Starts your phone anew."),
    plain("check_payment_request", Read, "Shows whether you were asked to pay a bill."),
    plain("make_payment", Write, "Pays the bill that you were asked to pay."),
    taking(
        "set_user_info",
        Hidden,
        &[argument("name", Str, "The name."), argument("phone_number", Str, "The number.")],
        "Sets whose phone it is.",
    ),
    taking(
        "set_user_location",
        Hidden,
        &[argument("abroad", Bool, "Whether the user is abroad.")],
        "Sets where the user is.",
    ),
    plain("turn_airplane_mode_on", Hidden, "Turns airplane mode on."),
    plain("turn_airplane_mode_off", Hidden, "Turns airplane mode off."),
    plain("unseat_sim_card", Hidden, "Takes the SIM card out."),
    taking(
        "lock_sim_card",
        Hidden,
        &[argument("mode", OneOf(&["pin", "puk"]), "With what.")],
        "Locks the SIM card.",
    ),
    plain("turn_data_on", Hidden, "Turns mobile data on."),
    plain("turn_data_off", Hidden, "Turns mobile data off."),
    plain("turn_roaming_on", Hidden, "Turns data roaming on."),
    plain("turn_roaming_off", Hidden, "Turns data roaming off."),
    plain("turn_data_saver_mode_on", Hidden, "Turns data saver mode on."),
    plain("turn_data_saver_mode_off", Hidden, "Turns data saver mode off."),
    plain("break_apn_settings", Hidden, "Breaks the settings of the access point."),
    plain("break_apn_mms_setting", Hidden, "Takes away where pictures go."),
    taking(
        "set_wifi_calling",
        Hidden,
        &[
            argument("enabled", Bool, "Whether calls go over wireless networks."),
            optional("mms_over_wifi", Bool, "Whether pictures do."),
        ],
        "Sets what goes over wireless networks.",
    ),
    plain("break_vpn", Hidden, "Makes the VPN slow."),
    taking(
        "remove_app_permission",
        Hidden,
        &[APP, argument("permission", Str, "What it may not do any more.")],
        "Forbids something to an app.",
    ),
    plain("simulate_network_search", Hidden, "Looks for a network."),
    taking("assert_airplane_mode_status", Hidden, &[EXPECTED], "Whether airplane mode is so."),
    taking(
        "assert_service_status",
        Hidden,
        &[argument("expected_status", OneOf(CONNECTIONS), "What is expected.")],
        "Whether the connection is so.",
    ),
    taking("assert_mobile_data_status", Hidden, &[EXPECTED], "Whether mobile data works so."),
    taking("assert_mobile_roaming_status", Hidden, &[EXPECTED], "Whether roaming is so."),
    taking(
        "assert_mobile_data_saver_mode_status",
        Hidden,
        &[EXPECTED],
        "Whether data saver is so.",
    ),
    taking(
        "assert_internet_speed",
        Hidden,
        &[
            argument("expected_speed", Float, "The least speed."),
            optional("expected_desc", Str, "The name of the speed."),
        ],
        "Whether the connection is as fast as that.",
    ),
    plain("assert_internet_not_excellent", Hidden, "Whether the connection is not excellent."),
    taking("assert_can_send_mms", Hidden, &[EXPECTED], "Whether pictures can be sent."),
    taking(
        "assert_mobile_data_usage_exceeded",
        Hidden,
        &[EXPECTED],
        "Whether the data are used up.",
    ),
];

/// Carries out a tool of [`SIGNATURES`].
///
/// # Errors
///
/// What the tool raises.
pub(crate) fn call(
    db: &mut Database,
    vpn: &mut Vpn,
    signature: &Signature,
    arguments: &Arguments,
) -> Outcome<Reply> {
    let mut device = Device { db, vpn };
    let name = signature.name;
    match signature.kind {
        Read => look(&device, name, arguments).map(Reply::Text),
        Write | ToolKind::Generic => change(&mut device, name, arguments).map(Reply::Text),
        Hidden => match name.strip_prefix("assert_") {
            Some(name) => expectation(&device, name, arguments).map(Reply::Truth),
            None => prepare(&mut device, name, arguments),
        },
    }
}

/// Tools that change something.
fn change(device: &mut Device<'_>, name: &str, arguments: &Arguments) -> Outcome<String> {
    if let Some(done) = switch(device, name)? {
        return device.with_bar(&done);
    }
    Ok(match name {
        "set_network_mode_preference" => set_mode(device, arguments.get(0))?,
        "set_apn_settings" => {
            let given = arguments.get(0);
            let settings = match given.as_dict() {
                Some(_) => validate(&APN, given)?,
                None => given.clone(),
            };
            device.set(Phone::ActiveApnSettings, settings)?;
            let name = shown(device.apn("apn_name")?)?;
            device.search_network()?;
            device.with_bar(&["APN settings set to: ", &name])?
        }
        "connect_vpn" => match device.connect_vpn()? {
            true => device.with_bar(&["VPN connected successfully."])?,
            false => "VPN already connected.".to_owned(),
        },
        "grant_app_permission" => {
            let (is_granted, told) = permit(device, arguments.get(0), arguments.get(1), true)?;
            let result = if is_granted { "Success. " } else { "Error. " };
            device.with_bar(&[result, &told])?
        }
        _ => make_payment(device)?,
    })
}

/// Tools that only look.
fn look(device: &Device<'_>, name: &str, arguments: &Arguments) -> Outcome<String> {
    let yes_no = |yes: bool| if yes { "Yes" } else { "No" };
    Ok(match name {
        "check_status_bar" => format!("Status Bar: {}", device.status_bar()?),
        "check_network_status" => {
            let mut text = format!(
                "Airplane Mode: {}\nSIM Card Status: {}\nCellular Connection: {}\nCellular Signal: {}\n\
                 Cellular Network Type: {}\nMobile Data Enabled: {}\nData Roaming Enabled: {}\n\
                 Wi-Fi Radio: {}\nWi-Fi Connected: {}",
                on_off(device.is(Phone::AirplaneMode)?),
                device.sim_status()?,
                device.text(Phone::NetworkConnectionStatus)?,
                device.text(Phone::NetworkSignalStrength)?,
                device.text(Phone::NetworkTechnologyConnected)?,
                yes_no(device.is(Phone::DataEnabled)?),
                yes_no(device.is(Phone::RoamingEnabled)?),
                on_off(device.is(Phone::WifiEnabled)?),
                yes_no(device.is(Phone::WifiConnected)?),
            );
            if device.is(Phone::WifiConnected)? {
                let network = shown(device.get(Phone::WifiSsid)?)?;
                text.push_str(&format!("\nConnected Wi-Fi Network: {network}"));
            }
            text
        }
        "check_network_mode_preference" => {
            let mode = member(device.get(Phone::NetworkModePreference)?)?;
            format!("Network Mode Preference: {mode}")
        }
        "run_speed_test" => match device.speed()? {
            (None, why) => format!("Speed test failed: {why}."),
            (Some(speed), name) => {
                let advice = match name {
                    "Very Poor" => {
                        "Connection is very slow. Basic web browsing might be difficult."
                    }
                    "Poor" => {
                        "Connection is slow. Web browsing may be sluggish, streaming difficult."
                    }
                    "Fair" => {
                        "Connection is okay for web browsing and some standard definition streaming."
                    }
                    "Good" => "Connection is good for most activities, including HD streaming.",
                    _ => "Connection is very fast.",
                };
                let speed = format_fixed(&Value::Float(speed), 2)?;
                format!("Speed Test Result: {speed} Mbps ({name}). {advice}")
            }
        },
        "check_sim_status" => match device.sim_status()? {
            "active" => "Your SIM card is active and working.",
            "missing" => "No SIM card detected in the phone.",
            "locked_pin" => "The SIM card is locked with a PIN code.",
            _ => "The SIM card is locked with a PUK code.",
        }
        .to_owned(),
        "check_data_restriction_status" => match device.is(Phone::DataSaverMode)? {
            true => "Data Saver mode is ON (limits data usage).",
            false => "Data Saver mode is OFF.",
        }
        .to_owned(),
        "check_apn_settings" => {
            let settings = device.get(Phone::ActiveApnSettings)?;
            if settings.as_dict().is_none() {
                return Err(Exception::no_attribute(settings.type_name(), "model_copy"));
            }
            let or_none = |value: &Value| match value.is_true() {
                true => shown(value),
                false => Ok("Not Set".to_owned()),
            };
            format!(
                "Current APN Name: {}\nMMSC URL (for picture messages): {}\n\
                 (These are technical settings, usually best left unchanged.)",
                or_none(device.apn("apn_name")?)?,
                or_none(device.apn("mmsc_url")?)?
            )
        }
        "check_wifi_status" => {
            match (device.is(Phone::WifiEnabled)?, device.is(Phone::WifiConnected)?) {
                (false, _) => "Wi-Fi is turned OFF.".to_owned(),
                (true, false) => "Wi-Fi is ON but not connected to any network.".to_owned(),
                (true, true) => format!(
                    "Wi-Fi is ON and connected to '{}'. Signal strength: {}.",
                    shown(device.get(Phone::WifiSsid)?)?,
                    device.text(Phone::WifiSignalStrength)?
                ),
            }
        }
        "check_wifi_calling_status" => {
            let on = on_off(device.is(Phone::WifiCallingEnabled)?);
            format!("Wi-Fi Calling is currently turned {on}.")
        }
        "check_vpn_status" => vpn_status(device)?,
        "check_installed_apps" => {
            let names = iterate(device.get(Phone::AppStatuses)?)?;
            let names: Vec<_> = names.iter().filter_map(Value::as_str).collect();
            format!("The following apps are installed on the phone: {}", names.join(", "))
        }
        "check_app_status" => {
            let app = arguments.get(0);
            match granted(device, app)? {
                None => format!("App '{}' not found on this phone.", shown(app)?),
                Some(granted) => {
                    let mut text = format!("Status for App: {}", shown(app)?);
                    text.push_str(match granted.is_empty() {
                        true => "\n - Permissions: None granted.",
                        false => "\n - Permissions Granted:",
                    });
                    for permission in granted {
                        text.push_str(&format!("\n   - {permission}"));
                    }
                    text
                }
            }
        }
        "check_app_permissions" => {
            let app = arguments.get(0);
            let name = shown(app)?;
            match granted(device, app)?.as_deref() {
                None => format!("App '{name}' not found on this phone."),
                Some([]) => format!("App '{name}' currently has no permissions granted."),
                Some(granted) => {
                    format!("App '{name}' has permission for: {}.", granted.join(", "))
                }
            }
        }
        "can_send_mms" => match device.can_send_mms()? {
            true => "Your messaging app can send MMS messages.",
            false => "Your messaging app cannot send MMS messages.",
        }
        .to_owned(),
        _ => match device.around(Around::PaymentRequest)? {
            Value::None => "No payment request has been made.".to_owned(),
            request => format!(
                "You have a payment request for bill {} of {} USD.",
                shown(attribute(request, "bill_id")?)?,
                shown(attribute(request, "amount_due")?)?
            ),
        },
    })
}

/// Switches, which answer with the bar at the top of the screen.
fn switch(device: &mut Device<'_>, name: &str) -> Outcome<Option<[&'static str; 3]>> {
    let now = |what, on| [what, on_off(on), "."];
    let only = |words| [words, "", ""];
    Ok(Some(match name {
        "toggle_airplane_mode" => now("Airplane Mode is now ", device.toggle_airplane_mode()?),
        "reseat_sim_card" => {
            device.set(Phone::SimCardMissing, false)?;
            device.search_network()?;
            assert(device.sim_status()? != "missing")?;
            only("SIM card re-seated successfully.")
        }
        "toggle_data" => {
            let on = device.toggle(Phone::DataEnabled)?;
            device.search_network()?;
            now("Mobile Data is now ", on)
        }
        "toggle_roaming" => {
            let on = device.toggle(Phone::RoamingEnabled)?;
            device.search_network()?;
            now("Data Roaming is now ", on)
        }
        "toggle_data_saver_mode" => {
            now("Data Saver Mode is now ", device.toggle(Phone::DataSaverMode)?)
        }
        "reset_apn_settings" => {
            device.set_apn("reset_at_reboot", true.into())?;
            device.search_network()?;
            only("APN settings will reset at reboot.")
        }
        "toggle_wifi" => match device.is(Phone::AirplaneMode)? {
            true => only("Cannot change Wi-Fi settings while Airplane Mode is ON."),
            false => {
                let on = device.toggle(Phone::WifiEnabled)?;
                if !on {
                    device.lose_wifi()?;
                }
                now("Wi-Fi is now ", on)
            }
        },
        "toggle_wifi_calling" => {
            now("Wi-Fi Calling is now ", device.toggle(Phone::WifiCallingEnabled)?)
        }
        "disconnect_vpn" => only(match device.disconnect_vpn()? {
            true => "VPN disconnected successfully.",
            false => "No active VPN connection to disconnect.",
        }),
        "reboot_device" => device.reboot()?,
        _ => return Ok(None),
    }))
}

/// What initial states call.
fn prepare(device: &mut Device<'_>, name: &str, arguments: &Arguments) -> Outcome<Reply> {
    let argument = |place| arguments.get(place);
    let text = match name {
        "set_user_info" => {
            device.set_around(Around::Name, argument(0).clone())?;
            device.set_around(Around::PhoneNumber, argument(1).clone())?;
            return Ok(Reply::Nothing);
        }
        "set_user_location" => {
            device.set_around(Around::IsAbroad, argument(0).clone())?;
            return Ok(Reply::Nothing);
        }
        "simulate_network_search" => {
            device.search_network()?;
            return Ok(Reply::Nothing);
        }
        "remove_app_permission" => {
            let (_, told) = permit(device, argument(0), argument(1), false)?;
            told
        }
        "turn_airplane_mode_on" | "turn_airplane_mode_off" => {
            let wanted = name.ends_with("on");
            if device.toggle_airplane_mode()? != wanted {
                device.toggle_airplane_mode()?;
            }
            format!("Airplane Mode is now {}.", on_off(wanted))
        }
        "unseat_sim_card" => {
            device.set(Phone::SimCardMissing, true)?;
            device.search_network()?;
            "SIM card un-seated successfully.".to_owned()
        }
        "lock_sim_card" => {
            let mode = argument(0);
            if let Some(mode @ ("pin" | "puk")) = mode.as_str() {
                device.set(Phone::SimCardStatus, format!("locked_{mode}"))?;
            }
            device.search_network()?;
            format!("SIM card locked successfully in {} mode.", shown(mode)?)
        }
        "turn_data_on" => {
            device.set(Phone::DataEnabled, true)?;
            "Data connection restored.".to_owned()
        }
        "turn_data_off" => {
            device.set(Phone::DataEnabled, false)?;
            device.search_network()?;
            "Data connection broken.".to_owned()
        }
        "turn_roaming_on" | "turn_roaming_off" => {
            let wanted = name.ends_with("on");
            device.set(Phone::RoamingEnabled, wanted)?;
            device.search_network()?;
            format!("Data Roaming is now {}.", on_off(wanted))
        }
        "turn_data_saver_mode_on" | "turn_data_saver_mode_off" => {
            let wanted = name.ends_with("on");
            device.set(Phone::DataSaverMode, wanted)?;
            format!("Data Saver Mode is now {}.", on_off(wanted))
        }
        "break_apn_settings" => {
            device.set_apn("apn_name", "broken".into())?;
            device.search_network()?;
            assert(device.text(Phone::NetworkConnectionStatus)? == "no_service")?;
            "APN settings broken. Please call reset_apn_settings() to fix.".to_owned()
        }
        "break_apn_mms_setting" => {
            device.set_apn("mmsc_url", Value::None)?;
            assert(!device.can_send_mms()?)?;
            "APN MMS setting broken. Please call reset_apn_settings() to fix.".to_owned()
        }
        "set_wifi_calling" => {
            let (enabled, pictures) = (argument(0), argument(1));
            if !equal(device.get(Phone::WifiCallingEnabled)?, enabled) {
                device.toggle(Phone::WifiCallingEnabled)?;
            }
            let mut text = format!("Wi-Fi Calling is now {}.", on_off(enabled.is_true()));
            if !matches!(pictures, Value::None) {
                device.set(Phone::WifiCallingMmsOverWifi, pictures.clone())?;
                let on = on_off(pictures.is_true());
                text.push_str(&format!("\nMMS over Wi-Fi is now {on}."));
            }
            text
        }
        _ => {
            device.break_vpn()?;
            "VPN connection broken.".to_owned()
        }
    };
    Ok(Reply::Text(text))
}

fn expectation(device: &Device<'_>, name: &str, arguments: &Arguments) -> Outcome<bool> {
    let expected = arguments.get(0);
    let is = |found: bool| equal(&Value::Bool(found), expected);
    Ok(match name {
        "airplane_mode_status" => equal(device.get(Phone::AirplaneMode)?, expected),
        "service_status" => match expected.as_str() {
            Some(text) if CONNECTIONS.contains(&text) => {
                device.text(Phone::NetworkConnectionStatus)? == text
            }
            _ => return refuse(format_args!("{} is not a valid NetworkStatus", repr(expected)?)),
        },
        "mobile_data_status" => is(device.has_data()?),
        "mobile_roaming_status" => equal(device.get(Phone::RoamingEnabled)?, expected),
        "mobile_data_saver_mode_status" => equal(device.get(Phone::DataSaverMode)?, expected),
        "internet_speed" => {
            let (speed, name) = device.speed()?;
            let speed = Value::Float(speed.unwrap_or(0.0));
            compare(Comparison::GreaterOrEqual, &speed, expected)?
                && match arguments.get(1) {
                    Value::None => true,
                    wanted => name.to_lowercase() == lower(wanted)?,
                }
        }
        "internet_not_excellent" => device.speed()?.1 != "Excellent",
        "can_send_mms" => is(device.can_send_mms()?),
        _ => equal(device.around(Around::MobileDataUsageExceeded)?, expected),
    })
}

/// The value of a member of an enumeration, which in this data is a text.
fn member(value: &Value) -> Outcome<&str> {
    value.as_str().ok_or_else(|| Exception::no_attribute(value.type_name(), "value"))
}

fn set_mode(device: &mut Device<'_>, mode: &Value) -> Outcome<String> {
    let is_known = mode.as_str().is_none_or(|mode| MODES.contains(&mode));
    if is_known {
        device.set(Phone::NetworkModePreference, mode.clone())?;
        device.search_network()?;
    }
    if !is_known || matches!(mode, Value::None) {
        let (mode, modes) = (shown(mode)?, MODES.join(", "));
        let failed = [
            "Failed to set network mode: '",
            &mode,
            "' is not a valid option. Please use one of: ",
            &modes,
        ];
        return device.with_bar(&failed);
    }
    device.with_bar(&["Preferred Network Mode set to: ", member(mode)?])
}

fn vpn_status(device: &Device<'_>) -> Outcome<String> {
    let details = device.get(Phone::VpnDetails)?;
    Ok(match (device.is(Phone::VpnConnected)?, device.is(Phone::VpnEnabledSetting)?) {
        (true, _) if details.is_true() => {
            let field = |name| repr(attribute(details, name)?);
            let performance =
                attribute(details, "server_performance")?.as_str().unwrap_or_default();
            format!(
                "VPN is ON and connected. Details: {{'server_address': {}, 'protocol': {}, \
                 'server_performance': <PerformanceLevel.{}: {}>}}",
                field("server_address")?,
                field("protocol")?,
                performance.to_uppercase(),
                repr_str(performance)
            )
        }
        (true, _) => "VPN is ON and connected (no specific details available).".to_owned(),
        (false, true) => "VPN is turned ON in settings, but currently not connected.".to_owned(),
        (false, false) => "VPN is turned OFF.".to_owned(),
    })
}

/// What an app may do; `None` where there is no such app.
fn granted<'d>(device: &'d Device<'_>, app: &Value) -> Outcome<Option<Vec<&'d str>>> {
    let Some(app) = device.app(app)? else { return Ok(None) };
    let permissions = attribute(app, "permissions")?.as_dict();
    let granted = permissions.into_iter().flat_map(|all| all.iter());
    let granted = granted.filter(|(_, allowed)| allowed.is_true());
    Ok(Some(granted.filter_map(|(name, _)| name.as_str()).collect()))
}

/// Allows or forbids something to an app: whether that worked, and how it is told.
fn permit(
    device: &mut Device<'_>,
    app: &Value,
    permission: &Value,
    allow: bool,
) -> Outcome<(bool, String)> {
    let is_there = device.app(app)?.is_some();
    let permission = lower(permission)?;
    let name = shown(app)?;
    let (done, verb) = match allow {
        true => ("granted to", "grant"),
        false => ("removed from", "remove"),
    };
    let permissions = match is_there {
        true => device.permissions_mut(app)?,
        false => None,
    };
    let Some(permissions) = permissions else {
        return Ok((false, format!("App '{name}' not found. Cannot {verb} permission.")));
    };
    if attribute(permissions, &permission).is_err() {
        let mut told = format!("Permission '{permission}' not tracked for app '{name}'");
        match allow {
            true => {
                let known = repr(&Value::list(iterate(permissions)?))?;
                told.push_str(&format!(", available permissions: {known}"));
            }
            false => told.push('.'),
        }
        return Ok((false, told));
    }
    set(permissions, &permission, allow.into())?;
    Ok((true, format!("Permission '{permission}' {done} app '{name}'.")))
}

fn make_payment(device: &mut Device<'_>) -> Outcome<String> {
    let mut request = device.around(Around::PaymentRequest)?.clone();
    if matches!(request, Value::None) {
        return Ok("You do not have a payment request.".to_owned());
    }
    set(&mut request, "paid", true.into())?;
    let text = format!(
        "Payment of {} USD has been made for bill {}.",
        shown(attribute(&request, "amount_due")?)?,
        shown(attribute(&request, "bill_id")?)?
    );
    device.set_around(Around::PaymentRequest, request)?;
    Ok(text)
}
