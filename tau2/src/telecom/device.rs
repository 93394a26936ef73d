//! How the user's phone behaves: what it shows, how it looks for a network, what works on it.

use std::fmt::Write as _;
use std::sync::LazyLock;

use spar_python::{Exception, Outcome, Value, round, to_float};

use super::device_data::{Around, Phone, default_apn, default_vpn};
use crate::database::Database;
use crate::object::{attribute, attribute_mut, set, shown};

/// The phone and the surroundings, and the VPN it connects to.
pub(super) struct Device<'d> {
    pub(super) db: &'d mut Database,
    pub(super) vpn: &'d mut Vpn,
}

/// The VPN that connecting brings, which breaking it spoils for good.
#[derive(Debug, Clone)]
pub(crate) struct Vpn {
    details: Value,
    /// Whether the phone is connected to that very VPN, so that what changes one changes the other.
    is_shared: bool,
}

impl Default for Vpn {
    fn default() -> Self {
        static DETAILS: LazyLock<Value> = LazyLock::new(default_vpn);
        Self { details: DETAILS.clone(), is_shared: false }
    }
}

impl Vpn {
    /// The phone's data were read anew: what it is connected to is its own.
    pub(crate) fn detach(&mut self) {
        self.is_shared = false;
    }
}

/// A yes or no of the phone as words.
pub(super) fn on_off(on: bool) -> &'static str {
    if on { "ON" } else { "OFF" }
}

impl Device<'_> {
    fn phone(&self) -> Outcome<&Value> {
        self.db.field("device")
    }

    /// An attribute of the phone.
    pub(super) fn get(&self, attribute: Phone) -> Outcome<&Value> {
        attribute.of(self.phone()?)
    }

    /// An attribute of the phone, to be changed.
    fn get_mut(&mut self, attribute: Phone) -> Outcome<&mut Value> {
        attribute.of_mut(self.db.field_mut("device")?)
    }

    /// Whether an attribute of the phone holds.
    pub(super) fn is(&self, attribute: Phone) -> Outcome<bool> {
        Ok(self.get(attribute)?.is_true())
    }

    /// The text that an attribute of the phone is.
    pub(super) fn text(&self, attribute: Phone) -> Outcome<&str> {
        Ok(self.get(attribute)?.as_str().unwrap_or_default())
    }

    /// Sets an attribute of the phone. What it is already is left alone, so that nothing is copied for it.
    pub(super) fn set(&mut self, attribute: Phone, value: impl Into<Value>) -> Outcome<()> {
        let value = value.into();
        if !is_same(self.get(attribute)?, &value) {
            *self.get_mut(attribute)? = value;
        }
        Ok(())
    }

    /// Sets an attribute of the phone to a text.
    pub(super) fn set_text(&mut self, attribute: Phone, text: &'static str) -> Outcome<()> {
        if self.get(attribute)?.as_str() != Some(text) {
            *self.get_mut(attribute)? = text.into();
        }
        Ok(())
    }

    /// Turns an attribute round, and says what it is then.
    pub(super) fn toggle(&mut self, attribute: Phone) -> Outcome<bool> {
        let value = self.get_mut(attribute)?;
        let on = !value.is_true();
        *value = on.into();
        Ok(on)
    }

    /// An attribute of the surroundings.
    pub(super) fn around(&self, attribute: Around) -> Outcome<&Value> {
        attribute.of(self.db.field("surroundings")?)
    }

    pub(super) fn set_around(&mut self, attribute: Around, value: Value) -> Outcome<()> {
        *attribute.of_mut(self.db.field_mut("surroundings")?)? = value;
        Ok(())
    }

    /// An attribute of the settings of the access point.
    pub(super) fn apn(&self, name: &str) -> Outcome<&Value> {
        attribute(self.get(Phone::ActiveApnSettings)?, name)
    }

    pub(super) fn set_apn(&mut self, name: &str, value: Value) -> Outcome<()> {
        set(self.get_mut(Phone::ActiveApnSettings)?, name, value)
    }

    /// The bar at the top of the screen.
    pub(super) fn status_bar(&self) -> Outcome<String> {
        let mut bar = String::new();
        self.write_bar(&mut bar)?;
        Ok(bar)
    }

    /// Writes the bar at the top of the screen.
    fn write_bar(&self, out: &mut String) -> Outcome<()> {
        let phone = self.phone()?;
        let is = |attribute: Phone| attribute.of(phone).map(Value::is_true);
        let text = |attribute: Phone| attribute.of(phone).map(|it| it.as_str().unwrap_or_default());
        if is(Phone::AirplaneMode)? {
            out.push_str("✈️ Airplane Mode");
        } else {
            out.push_str(match text(Phone::NetworkSignalStrength)? {
                "poor" => "📶¹ Poor",
                "fair" => "📶² Fair",
                "good" => "📶³ Good",
                "excellent" => "📶⁴ Excellent",
                _ => "📵 No Signal",
            });
            let technology = text(Phone::NetworkTechnologyConnected)?;
            let has_network = technology != "none";
            if has_network {
                out.push_str(" | ");
                out.push_str(technology);
            }
            if has_network && is(Phone::DataEnabled)? {
                out.push_str(" | 📱 Data Enabled");
                if is(Phone::DataSaverMode)? {
                    out.push_str(" | 🔽 Data Saver");
                }
            } else {
                out.push_str(" | 📵 Data Disabled");
            }
        }
        if is(Phone::WifiEnabled)? && is(Phone::WifiConnected)? {
            let network = Phone::WifiSsid.of(phone)?;
            match network.is_true() {
                true => {
                    out.push_str(" | 📡 Connected to ");
                    out.push_str(&shown(network)?);
                }
                false => out.push_str(" | 📡 Enabled"),
            }
        }
        if is(Phone::VpnConnected)? {
            out.push_str(" | 🔒 VPN Connected");
        }
        out.push_str(" | 🔋 ");
        let level = Phone::BatteryLevel.of(phone)?;
        let number = if let Value::Int(number) = level { number.to_i64() } else { None };
        match number {
            // As it usually is: written without a text of its own.
            Some(number) => write!(out, "{number}").expect("a text takes whatever is written"),
            None => out.push_str(&shown(level)?),
        }
        out.push('%');
        Ok(())
    }

    /// What was done, and the bar at the top of the screen.
    pub(super) fn with_bar(&self, done: &[&str]) -> Outcome<String> {
        const BAR: &str = "\nStatus Bar: ";
        const USUAL_BYTES: usize = 120;
        let bytes: usize = done.iter().map(|part| part.len()).sum();
        let mut text = String::with_capacity(bytes + BAR.len() + USUAL_BYTES);
        done.iter().for_each(|part| text.push_str(part));
        text.push_str(BAR);
        self.write_bar(&mut text)?;
        Ok(text)
    }

    /// The state of the SIM card.
    pub(super) fn sim_status(&self) -> Outcome<&str> {
        match self.is(Phone::SimCardMissing)? {
            true => Ok("missing"),
            false => self.text(Phone::SimCardStatus),
        }
    }

    /// Looks for a network, as far as card, settings and line allow one.
    pub(super) fn search_network(&mut self) -> Outcome<()> {
        let is_flying = self.is(Phone::AirplaneMode)?;
        if is_flying || self.sim_status()? != "active" {
            self.lose_network()?;
        } else {
            let preference = self.get(Phone::NetworkModePreference)?.as_str();
            let technology = match preference {
                Some("4g_5g_preferred") if self.signal_of("5G")?.as_str() != Some("none") => "5G",
                Some("3g_only") => "3G",
                Some("2g_only") => "2G",
                _ => "4G",
            };
            let signal = self.signal_of(technology)?;
            self.set_network("connected", technology, signal)?;
        }
        // These are looked at behind that, since settings that are none raise and leave what was found.
        if self.apn("apn_name")?.as_str() == Some("broken") {
            self.lose_network()?;
        }
        if !self.around(Around::LineActive)?.is_true() {
            self.lose_network()?;
        }
        Ok(())
    }

    /// The signal of a technology, which is a text.
    fn signal_of(&self, technology: &str) -> Outcome<Value> {
        let signals = self.around(Around::SignalStrength)?.as_dict();
        let signal = signals.and_then(|signals| signals.get_str(technology));
        Ok(signal.filter(|signal| signal.as_str().is_some()).cloned().unwrap_or("none".into()))
    }

    fn lose_network(&mut self) -> Outcome<()> {
        self.set_network("no_service", "none", "none".into())
    }

    /// Sets what the phone is connected to. What it is already is left alone, so that nothing is copied for it.
    fn set_network(
        &mut self,
        status: &'static str,
        technology: &'static str,
        signal: Value,
    ) -> Outcome<()> {
        let phone = self.phone()?;
        let is = |attribute: Phone, text: Option<&str>| {
            attribute.of(phone).map(|found| found.as_str() == text)
        };
        if is(Phone::NetworkConnectionStatus, Some(status))?
            && is(Phone::NetworkTechnologyConnected, Some(technology))?
            && is(Phone::NetworkSignalStrength, signal.as_str())?
        {
            return Ok(());
        }
        let phone = self.db.field_mut("device")?;
        *Phone::NetworkConnectionStatus.of_mut(phone)? = status.into();
        *Phone::NetworkTechnologyConnected.of_mut(phone)? = technology.into();
        *Phone::NetworkSignalStrength.of_mut(phone)? = signal;
        Ok(())
    }

    /// Whether mobile data works.
    pub(super) fn has_data(&self) -> Outcome<bool> {
        if self.is(Phone::AirplaneMode)?
            || self.text(Phone::NetworkSignalStrength)? == "none"
            || self.text(Phone::NetworkConnectionStatus)? == "no_service"
        {
            return Ok(false);
        }
        if self.around(Around::IsAbroad)?.is_true()
            && !(self.is(Phone::RoamingEnabled)? && self.around(Around::RoamingAllowed)?.is_true())
        {
            return Ok(false);
        }
        Ok(self.is(Phone::DataEnabled)? && !self.around(Around::MobileDataUsageExceeded)?.is_true())
    }

    /// The speed of mobile data in megabits per second, and its name; without data no speed.
    pub(super) fn speed(&self) -> Outcome<(Option<f64>, &'static str)> {
        if !self.has_data()? {
            return Ok((None, "No Connection"));
        }
        let mut factor = 1.0;
        let details = self.get(Phone::VpnDetails)?;
        if self.is(Phone::VpnConnected)?
            && details.is_true()
            && attribute(details, "server_performance")?.as_str() == Some("poor")
        {
            factor = 0.1;
        }
        if self.is(Phone::DataSaverMode)? {
            factor *= 0.2;
        }
        let (least, most) = match self.text(Phone::NetworkTechnologyConnected)? {
            "2G" => (0.1, 0.4),
            "3G" => (1.0, 5.0),
            "4G" => (10.0, 100.0),
            "5G" => (50.0, 500.0),
            _ => (0.0, 0.0),
        };
        let signal = match self.text(Phone::NetworkSignalStrength)? {
            "poor" => 0.2,
            "fair" => 0.5,
            "good" => 0.8,
            "excellent" => 1.0,
            _ => 0.0,
        };
        let speed: f64 = (least + most) / 2.0 * signal * factor;
        let speed = to_float(&round(&Value::Float(speed), &Value::from(2_i64))?)?;
        let name = match speed {
            speed if speed < 1.0 => "Very Poor",
            speed if speed < 5.0 => "Poor",
            speed if speed < 25.0 => "Fair",
            speed if speed < 100.0 => "Good",
            _ => "Excellent",
        };
        Ok((Some(speed), name))
    }

    /// Whether pictures can be sent.
    pub(super) fn can_send_mms(&self) -> Outcome<bool> {
        if !self.has_data()?
            || self.text(Phone::NetworkTechnologyConnected)? == "2G"
            || (self.is(Phone::WifiCallingEnabled)? && self.is(Phone::WifiCallingMmsOverWifi)?)
            || matches!(self.apn("mmsc_url")?, Value::None)
        {
            return Ok(false);
        }
        let Some(app) = self.app(&"messaging".into())? else { return Ok(false) };
        let permissions = attribute(app, "permissions")?;
        Ok(attribute(permissions, "storage")?.is_true() && attribute(permissions, "sms")?.is_true())
    }

    /// An app by its name.
    pub(super) fn app(&self, name: &Value) -> Outcome<Option<&Value>> {
        let apps = self.get(Phone::AppStatuses)?.as_dict();
        Ok(apps.map(|apps| apps.get(name)).transpose()?.flatten())
    }

    /// The permissions of an app, to be changed.
    pub(super) fn permissions_mut(&mut self, name: &Value) -> Outcome<Option<&mut Value>> {
        let apps = self.get_mut(Phone::AppStatuses)?.as_dict_mut();
        let app = apps.map(|apps| apps.get_mut(name)).transpose()?.flatten();
        app.map(|app| attribute_mut(app, "permissions")).transpose()
    }

    /// Flies or lands.
    pub(super) fn toggle_airplane_mode(&mut self) -> Outcome<bool> {
        let on = self.toggle(Phone::AirplaneMode)?;
        if !on {
            self.set_text(Phone::NetworkConnectionStatus, "searching")?;
        }
        if on || self.is(Phone::WifiEnabled)? {
            self.lose_wifi()?;
        }
        if on {
            self.disconnect_vpn()?;
        }
        self.search_network()?;
        Ok(on)
    }

    pub(super) fn lose_wifi(&mut self) -> Outcome<()> {
        self.set(Phone::WifiConnected, false)?;
        self.set(Phone::WifiSsid, Value::None)?;
        self.set_text(Phone::WifiSignalStrength, "none")
    }

    /// Connects to the VPN, unless there is a connection.
    pub(super) fn connect_vpn(&mut self) -> Outcome<bool> {
        if self.is(Phone::VpnConnected)? {
            return Ok(false);
        }
        self.set(Phone::VpnConnected, true)?;
        let details = self.vpn.details.clone();
        self.set(Phone::VpnDetails, details)?;
        self.vpn.is_shared = true;
        Ok(true)
    }

    /// Ends the connection to a VPN, if there is one.
    pub(super) fn disconnect_vpn(&mut self) -> Outcome<bool> {
        if !self.is(Phone::VpnConnected)? {
            return Ok(false);
        }
        self.set(Phone::VpnConnected, false)?;
        self.set(Phone::VpnDetails, Value::None)?;
        self.vpn.is_shared = false;
        Ok(true)
    }

    /// Connects to the VPN and makes it slow.
    pub(super) fn break_vpn(&mut self) -> Outcome<()> {
        self.connect_vpn()?;
        let details = self.get_mut(Phone::VpnDetails)?;
        set(details, "server_performance", "poor".into())?;
        if self.vpn.is_shared {
            set(&mut self.vpn.details, "server_performance", "poor".into())?;
        }
        Ok(())
    }

    /// Starts the phone anew.
    pub(super) fn reboot(&mut self) -> Outcome<[&'static str; 3]> {
        let resets = self.apn("reset_at_reboot")?.is_true();
        if resets {
            self.set(Phone::ActiveApnSettings, default_apn())?;
        }
        self.set_text(Phone::NetworkConnectionStatus, "searching")?;
        self.search_network()?;
        let first = if resets { "Resetting APN settings...\n" } else { "" };
        Ok([first, "Restarting network services...", ""])
    }
}

/// Whether two values are one and the same, as far as that is told without going into them.
pub(super) fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::None, Value::None) => true,
        (Value::Bool(one), Value::Bool(other)) => one == other,
        (Value::Str(one), Value::Str(other)) => one == other,
        _ => false,
    }
}

/// What fails where a function of the reference makes sure of something, without words.
pub(super) fn assert(holds: bool) -> Outcome<()> {
    match holds {
        true => Ok(()),
        false => Err(Exception::new(spar_python::ExceptionKind::Other, "")),
    }
}
