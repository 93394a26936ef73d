//! `VehicleControlAPI`: a car.

use std::sync::{Arc, LazyLock};

use spar_python::signature::Default;
use spar_python::{
    BinaryOperator, Comparison, Dict, Outcome, Random, Value, binary, compare, equal, iterate,
    seeded, subscript, to_float,
};

use super::message::as_dict;
use super::method::{Method, error, methods};
use super::mutation::{augmented, insert};
use crate::Process;

/// What draws in scenarios that give no seed.
static UNSEEDED: LazyLock<Random> = LazyLock::new(|| Random::from_u64(141_053));
const MAX_FUEL_LEVEL: i64 = 50;
const MIN_FUEL_LEVEL: f64 = 0.0;
const MILES_PER_GALLON: f64 = 20.0;
/// Newtons of a brake that is pressed fully.
const MAX_BRAKE_FORCE: i64 = 1000;

/// Kilometres between two cities, by their codes, in either direction.
const DISTANCES: [(&str, &str, f64); 12] = [
    ("83214", "74532", 750.0),
    ("56108", "62947", 320.0),
    ("71354", "83462", 450.0),
    ("47329", "52013", 290.0),
    ("69238", "51479", 630.0),
    ("94016", "83214", 980.0),
    ("94016", "94704", 600.0),
    ("94704", "08540", 2550.0),
    ("94016", "08540", 1950.0),
    ("62947", "47329", 1053.0),
    ("94016", "62947", 780.0),
    ("74532", "94016", 880.0),
];

const CODES: [(&str, &str); 11] = [
    ("Rivermist", "83214"),
    ("Stonebrook", "74532"),
    ("Maplecrest", "56108"),
    ("Silverpine", "62947"),
    ("Shadowridge", "71354"),
    ("Sunset Valley", "83462"),
    ("Oakendale", "47329"),
    ("Willowbend", "52013"),
    ("Crescent Hollow", "69238"),
    ("Autumnville", "51479"),
    ("San Francisco", "94016"),
];

/// The car. Names are those of the program, whose configuration calls some of them otherwise.
#[derive(Debug, Clone)]
pub(crate) struct Vehicle {
    random: Random,
    pub(crate) fuel_level: Value,
    pub(crate) battery_voltage: Value,
    pub(crate) engine_state: Value,
    pub(crate) remaining_unlocked_doors: Value,
    pub(crate) door_status: Value,
    pub(crate) ac_temperature: Value,
    pub(crate) fan_speed: Value,
    pub(crate) ac_mode: Value,
    pub(crate) humidity_level: Value,
    pub(crate) headlight_status: Value,
    pub(crate) parking_brake_status: Value,
    parking_brake_force: Value,
    slope_angle: Value,
    pub(crate) brake_pedal_status: Value,
    brake_pedal_force: Value,
    pub(crate) distance_to_next_vehicle: Value,
    pub(crate) cruise_status: Value,
    pub(crate) destination: Value,
    /// Front left, front right, rear left, rear right.
    pub(crate) tire_pressures: [Value; 4],
    pub(crate) long_context: bool,
}

pub(crate) const METHODS: &[Method<Vehicle>] = methods!(Vehicle, "VehicleControlAPI", {
    startEngine(ignitionMode) => |car, _, given| car.start(&given[0]);
    fillFuelTank(fuelAmount) => |car, _, given| car.fill(&given[0]);
    lockDoors(unlock, door) => |car, _, given| car.lock(&given[0], &given[1]);
    adjustClimateControl(temperature, unit = Default::Str("celsius"), fanSpeed = Default::Int(50), mode = Default::Str("auto")) => |car, _, given| {
        car.climate(&given[0], &given[1], &given[2], &given[3])
    };
    get_outside_temperature_from_google() => |car, process, _| {
        let temperature = Value::Float(car.random.uniform(-10.0, 40.0));
        let mut weather = match car.long_context {
            true => process.long()?.weather.clone(),
            false => Value::record([]),
        };
        insert(&mut weather, Value::from("outsideTemperature"), temperature)?;
        Ok(weather)
    };
    get_outside_temperature_from_weather_com() => |_, _, _| {
        Ok(Value::record([("error", Value::from(404_i64))]))
    };
    setHeadlights(mode) => |car, _, given| {
        let state = match given[0].as_str() {
            Some("on") => "on",
            Some("off" | "auto") => "off",
            _ => return Ok(error("Invalid headlight mode.")),
        };
        car.headlight_status = Value::from(state);
        Ok(Value::record([("headlightStatus", Value::from(state))]))
    };
    displayCarStatus(option) => |car, process, given| car.display(process, &given[0]);
    activateParkingBrake(mode) => |car, process, given| car.parking_brake(process, &given[0]);
    pressBrakePedal(pedalPosition) => |car, _, given| car.press_brake(&given[0]);
    releaseBrakePedal() => |car, _, _| Ok(car.release_brake());
    setCruiseControl(speed, activate, distanceToNextVehicle) => |car, _, given| {
        car.cruise(&given[0], &given[1], &given[2])
    };
    get_current_speed() => |car, _, _| {
        let speed = car.random.uniform(0.0, 120.0);
        Ok(Value::record([("currentSpeed", Value::Float(speed))]))
    };
    display_log(messages) => |_, _, given| Ok(Value::record([("log", given[0].clone())]));
    estimate_drive_feasibility_by_mileage(distance) => |car, _, given| {
        let range = binary(BinaryOperator::Multiply, &car.fuel_level, &Value::Float(MILES_PER_GALLON))?;
        let can = !compare(Comparison::Less, &range, &given[0])?;
        Ok(Value::record([("canDrive", Value::Bool(can))]))
    };
    liter_to_gallon(liter) => |_, _, given| {
        let gallon = binary(BinaryOperator::Multiply, &given[0], &Value::Float(0.264172))?;
        Ok(Value::record([("gallon", gallon)]))
    };
    gallon_to_liter(gallon) => |_, _, given| {
        let liter = binary(BinaryOperator::Multiply, &given[0], &Value::Float(3.78541))?;
        Ok(Value::record([("liter", liter)]))
    };
    estimate_distance(cityA, cityB) => |car, process, given| {
        let (one, other) = (given[0].as_str(), given[1].as_str());
        let known = DISTANCES.iter().find(|(a, b, _)| {
            (one, other) == (Some(a), Some(b)) || (one, other) == (Some(b), Some(a))
        });
        let mut distance = match known {
            Some((_, _, kilometres)) => Value::record([("distance", Value::Float(*kilometres))]),
            None => error("distance not found in database."),
        };
        if car.long_context {
            let cities = process.long()?.intermediary_cities.clone();
            insert(&mut distance, Value::from("intermediaryCities"), cities)?;
        }
        Ok(distance)
    };
    get_zipcode_based_on_city(city) => |_, _, given| {
        let known = CODES.iter().find(|(city, _)| given[0].as_str() == Some(city));
        Ok(Value::record([("zipcode", Value::from(known.map_or("00000", |(_, code)| code)))]))
    };
    set_navigation(destination) => |car, _, given| {
        car.destination = given[0].clone();
        let told = binary(BinaryOperator::Add, &Value::from("Navigating to "), &given[0])?;
        Ok(Value::record([("status", told)]))
    };
    check_tire_pressure() => |car, process, _| car.tires(process);
    find_nearest_tire_shop() => |_, _, _| {
        let place = "456 Oakwood Avenue, Rivermist, 83214";
        Ok(Value::record([("shopLocation", Value::from(place))]))
    };
});

impl Vehicle {
    pub(crate) fn load(scenario: &Dict, long_context: bool) -> Outcome<Self> {
        let given = |name: &str, default: Value| scenario.get_str(name).cloned().unwrap_or(default);
        let float = |name: &str, default: f64| given(name, Value::Float(default));
        let text = |name: &str, default: &str| given(name, Value::from(default));
        let random = match scenario.get_str("random_seed") {
            Some(seed) => seeded(seed)?,
            None => UNSEEDED.clone(),
        };
        let doors = ["driver", "passenger", "rear_left", "rear_right"];
        let unlocked = || Value::dict(doors.map(|door| (door, Value::from("unlocked"))));
        let door_status = given("doorStatus", unlocked());
        let locked = as_dict(&door_status, "keys")?
            .values()
            .filter(|status| equal(status, &Value::from("locked")))
            .count();
        Ok(Self {
            random,
            fuel_level: float("fuelLevel", 0.0),
            battery_voltage: float("batteryVoltage", 12.6),
            engine_state: text("engineState", "stopped"),
            remaining_unlocked_doors: Value::from(4 - locked as i64),
            door_status,
            ac_temperature: float("acTemperature", 25.0),
            fan_speed: given("fanSpeed", Value::from(50_i64)),
            ac_mode: text("acMode", "auto"),
            humidity_level: float("humidityLevel", 50.0),
            headlight_status: text("headLightStatus", "off"),
            parking_brake_status: text("parkingBrakeStatus", "released"),
            parking_brake_force: float("parkingBrakeForce", 0.0),
            slope_angle: float("slopeAngle", 0.0),
            brake_pedal_status: text("brakePedalStatus", "released"),
            brake_pedal_force: float("brakePedalForce", 0.0),
            distance_to_next_vehicle: float("distanceToNextVehicle", 50.0),
            cruise_status: text("cruiseStatus", "inactive"),
            destination: text("destination", "None"),
            tire_pressures: [
                float("frontLeftTirePressure", 32.0),
                float("frontRightTirePressure", 32.0),
                float("rearLeftTirePressure", 30.0),
                float("rearRightTirePressure", 30.0),
            ],
            long_context,
        })
    }

    fn start(&mut self, mode: &Value) -> Outcome<Value> {
        if mode.as_str() == Some("STOP") {
            self.engine_state = Value::from("stopped");
        }
        let zero = Value::from(0_i64);
        if compare(Comparison::Greater, &self.remaining_unlocked_doors, &zero)? {
            let open = as_dict(&self.door_status, "items")?
                .iter()
                .filter(|(_, status)| equal(status, &Value::from("unlocked")))
                .map(|(door, _)| door.clone());
            let open = spar_python::join(", ", &Value::list(open))?;
            return Ok(error(format!(
                "All doors must be locked before starting the engine. Here are the unlocked doors: {open}"
            )));
        }
        if !equal(&self.brake_pedal_status, &Value::from("pressed")) {
            return Ok(error("Brake pedal needs to be pressed when starting the engine."));
        }
        if !equal(&self.brake_pedal_force, &Value::Float(MAX_BRAKE_FORCE as f64)) {
            return Ok(error("Must press the brake fully before starting the engine."));
        }
        if compare(Comparison::Less, &self.fuel_level, &Value::Float(MIN_FUEL_LEVEL))? {
            return Ok(error("Fuel tank is empty."));
        }
        if mode.as_str() != Some("START") {
            return Ok(error("Invalid ignition mode."));
        }
        self.engine_state = Value::from("running");
        Ok(Value::record([
            ("engineState", self.engine_state.clone()),
            ("fuelLevel", self.fuel_level.clone()),
            ("batteryVoltage", self.battery_voltage.clone()),
        ]))
    }

    fn fill(&mut self, amount: &Value) -> Outcome<Value> {
        if compare(Comparison::Less, amount, &Value::from(0_i64))? {
            return Ok(error("Fuel amount cannot be negative."));
        }
        let level = binary(BinaryOperator::Add, &self.fuel_level, amount)?;
        if compare(Comparison::Greater, &level, &Value::from(MAX_FUEL_LEVEL))? {
            return Ok(error("Cannot fill gas above the tank capacity."));
        }
        if compare(Comparison::Less, &level, &Value::Float(MIN_FUEL_LEVEL))? {
            return Ok(error("Fuel tank is empty. Min fuel level is 0 gallons."));
        }
        self.fuel_level = level;
        Ok(Value::record([("fuelLevel", self.fuel_level.clone())]))
    }

    fn lock(&mut self, unlock: &Value, doors: &Value) -> Outcome<Value> {
        let (state, operator) = match unlock.is_true() {
            true => ("unlocked", BinaryOperator::Add),
            false => ("locked", BinaryOperator::Subtract),
        };
        for door in iterate(doors)? {
            if equal(&subscript(&self.door_status, &door)?, &Value::from(state)) {
                continue;
            }
            insert(&mut self.door_status, door, Value::from(state))?;
            self.remaining_unlocked_doors =
                augmented(operator, &self.remaining_unlocked_doors, &Value::from(1_i64))?;
        }
        Ok(Value::record([
            ("lockStatus", Value::from(state)),
            ("remainingUnlockedDoors", self.remaining_unlocked_doors.clone()),
        ]))
    }

    fn climate(
        &mut self,
        temperature: &Value,
        unit: &Value,
        fan_speed: &Value,
        mode: &Value,
    ) -> Outcome<Value> {
        if !is_between(0, fan_speed, 100)? {
            return Ok(error("Fan speed must be between 0 and 100."));
        }
        self.ac_temperature = temperature.clone();
        if unit.as_str() == Some("fahrenheit") {
            let above = binary(BinaryOperator::Subtract, temperature, &Value::from(32_i64))?;
            let fivefold = binary(BinaryOperator::Multiply, &above, &Value::from(5_i64))?;
            self.ac_temperature = binary(BinaryOperator::Divide, &fivefold, &Value::from(9_i64))?;
        }
        self.fan_speed = fan_speed.clone();
        self.ac_mode = mode.clone();
        Ok(Value::record([
            ("currentACTemperature", temperature.clone()),
            ("climateMode", mode.clone()),
            ("humidityLevel", self.humidity_level.clone()),
        ]))
    }

    fn display(&self, process: &Process, option: &Value) -> Outcome<Value> {
        let shown: Vec<(&str, &Value)> = match option.as_str() {
            Some("fuel") => vec![("fuelLevel", &self.fuel_level)],
            Some("battery") => vec![("batteryVoltage", &self.battery_voltage)],
            Some("doors") => vec![("doorStatus", &self.door_status)],
            Some("climate") => vec![
                ("currentACTemperature", &self.ac_temperature),
                ("fanSpeed", &self.fan_speed),
                ("climateMode", &self.ac_mode),
                ("humidityLevel", &self.humidity_level),
            ],
            Some("headlights") => vec![("headlightStatus", &self.headlight_status)],
            Some("parkingBrake") => vec![
                ("parkingBrakeStatus", &self.parking_brake_status),
                ("parkingBrakeForce", &self.parking_brake_force),
                ("slopeAngle", &self.slope_angle),
            ],
            Some("brakePedal") => vec![
                ("brakePedalStatus", &self.brake_pedal_status),
                ("brakePedalForce", &self.brake_pedal_force),
            ],
            Some("engine") => vec![("engineState", &self.engine_state)],
            _ => Vec::new(),
        };
        let mut status = Dict::default();
        if self.long_context {
            status.insert_str("metadata", Value::from(&*process.long()?.car_status));
        }
        if shown.is_empty() {
            status.insert_str("error", Value::from("Invalid option"));
        }
        for (name, value) in shown {
            status.insert_str(name, value.clone());
        }
        Ok(Value::Dict(Arc::new(status)))
    }

    fn parking_brake(&mut self, process: &Process, mode: &Value) -> Outcome<Value> {
        let (state, force) = match mode.as_str() {
            Some("engage") => ("engaged", 500.0),
            Some("release") => ("released", 0.0),
            _ => return Ok(error("Invalid mode")),
        };
        self.parking_brake_status = Value::from(state);
        self.parking_brake_force = Value::Float(force);
        self.slope_angle = Value::Float(10.0);
        let mut told = Dict::default();
        if self.long_context {
            let text = Value::from(&*process.long()?.parking_brake);
            told.insert_str("parkingBrakeInstruction", text);
        }
        told.insert_str("parkingBrakeStatus", self.parking_brake_status.clone());
        told.insert_str("_parkingBrakeForce", self.parking_brake_force.clone());
        told.insert_str("_slopeAngle", self.slope_angle.clone());
        Ok(Value::Dict(Arc::new(told)))
    }

    fn press_brake(&mut self, position: &Value) -> Outcome<Value> {
        if !is_between(0, position, 1)? {
            return Ok(error("Pedal position must be between 0 and 1."));
        }
        if equal(position, &Value::from(0_i64)) {
            return Ok(self.release_brake());
        }
        let force = binary(BinaryOperator::Multiply, position, &Value::from(MAX_BRAKE_FORCE))?;
        self.brake_pedal_status = Value::from("pressed");
        self.brake_pedal_force = force.clone();
        Ok(Value::record([
            ("brakePedalStatus", Value::from("pressed")),
            ("brakePedalForce", Value::Float(to_float(&force)?)),
        ]))
    }

    fn release_brake(&mut self) -> Value {
        self.brake_pedal_status = Value::from("released");
        self.brake_pedal_force = Value::Float(0.0);
        Value::record([
            ("brakePedalStatus", Value::from("released")),
            ("brakePedalForce", Value::Float(0.0)),
        ])
    }

    fn cruise(&mut self, speed: &Value, activate: &Value, distance: &Value) -> Outcome<Value> {
        let distance = Value::Float(to_float(distance)?);
        let speed = to_float(speed)?;
        if equal(&self.engine_state, &Value::from("stopped")) {
            return Ok(error("Start the engine before activating the cruise control."));
        }
        self.distance_to_next_vehicle = distance.clone();
        let state = if activate.is_true() {
            if !(0.0..=120.0).contains(&speed) || speed % 5.0 != 0.0 {
                return Ok(error("Invalid speed"));
            }
            "active"
        } else {
            "inactive"
        };
        self.cruise_status = Value::from(state);
        Ok(Value::record([
            ("cruiseStatus", Value::from(state)),
            ("currentSpeed", Value::Float(speed)),
            ("distanceToNextVehicle", distance),
        ]))
    }

    fn tires(&self, process: &Process) -> Outcome<Value> {
        let mut total = self.tire_pressures[0].clone();
        for pressure in &self.tire_pressures[1..] {
            total = binary(BinaryOperator::Add, &total, pressure)?;
        }
        let mean = binary(BinaryOperator::Divide, &total, &Value::from(4_i64))?;
        let is_healthy = is_between(30, &mean, 35)?;
        let names = [
            "frontLeftTirePressure",
            "frontRightTirePressure",
            "rearLeftTirePressure",
            "rearRightTirePressure",
        ];
        let mut status = Dict::default();
        for (name, pressure) in names.into_iter().zip(&self.tire_pressures) {
            status.insert_str(name, pressure.clone());
        }
        status.insert_str("healthy_tire_pressure", Value::Bool(is_healthy));
        let info = match self.long_context {
            true => Value::from(&*process.long()?.car_status),
            false => Value::record([]),
        };
        status.insert_str("car_info", info);
        Ok(Value::Dict(Arc::new(status)))
    }
}

/// `low <= value <= high`
fn is_between(low: i64, value: &Value, high: i64) -> Outcome<bool> {
    Ok(compare(Comparison::LessOrEqual, &Value::from(low), value)?
        && compare(Comparison::LessOrEqual, value, &Value::from(high))?)
}
