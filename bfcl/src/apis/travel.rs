//! `TravelAPI`: flights, cards and bookings.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use spar_python::characters::is_digit;
use spar_python::signature::Default;
use spar_python::{
    BinaryOperator, Comparison, Dict, Exception, ExceptionKind, Outcome, Random, Value, binary,
    compare, contains, equal, iterate, repr, round, seeded, subscript, to_float, to_int, to_str,
};

use super::file_system::text_of;
use super::flights::{AIRPORTS, BASE_COSTS, base_cost};
use super::message::as_dict;
use super::method::{Method, error, methods};
use super::mutation::{insert, part, update};
use crate::Process;
use crate::dates::{DAY, parse_date};

/// What draws in scenarios that give no seed.
static UNSEEDED: LazyLock<Random> = LazyLock::new(|| Random::from_u64(141_053));

const RATES: [(&str, f64); 10] = [
    ("RMB", 7.0),
    ("EUR", 0.8),
    ("JPY", 110.0),
    ("GBP", 0.7),
    ("CAD", 1.3),
    ("AUD", 1.4),
    ("INR", 70.0),
    ("RUB", 60.0),
    ("BRL", 3.8),
    ("MXN", 20.0),
];

const NEAREST: [(&str, &str); 23] = [
    ("Rivermist", "RMS"),
    ("Stonebrook", "SBK"),
    ("Maplecrest", "MPC"),
    ("Silverpine", "SVP"),
    ("Shadowridge", "SHD"),
    ("London", "LHR"),
    ("Paris", "CDG"),
    ("Sunset Valley", "SSV"),
    ("Oakendale", "OKD"),
    ("Willowbend", "WLB"),
    ("Crescent Hollow", "CRH"),
    ("Autumnville", "ATV"),
    ("Pinehaven", "PHV"),
    ("Greenfield", "GFD"),
    ("San Francisco", "SFO"),
    ("Los Angeles", "LAX"),
    ("New York", "JFK"),
    ("Chicago", "ORD"),
    ("Boston", "BOS"),
    ("Beijing", "PEK"),
    ("Hong Kong", "HKG"),
    ("Rome", "CIA"),
    ("Tokyo", "HND"),
];

/// The traveller's account.
#[derive(Debug, Clone)]
pub(crate) struct Travel {
    random: Random,
    /// Cards by number. Those of the long context are the process's: here only their number stands.
    pub(crate) credit_card_list: Value,
    pub(crate) booking_record: Value,
    pub(crate) access_token: Value,
    pub(crate) token_type: Value,
    pub(crate) token_expires_in: Value,
    pub(crate) token_scope: Value,
    pub(crate) user_first_name: Value,
    pub(crate) user_last_name: Value,
    pub(crate) budget_limit: Value,
    pub(crate) long_context: bool,
    flight_costs: Arc<HashMap<String, f64>>,
}

pub(crate) const METHODS: &[Method<Travel>] = methods!(Travel, "TravelAPI", {
    authenticate_travel(client_id, client_secret, refresh_token, grant_type, user_first_name, user_last_name) => |api, _, given| {
        api.token_expires_in = Value::from(2_i64);
        api.access_token = Value::from(api.draw(100_000, 999_999)?.to_string());
        api.token_type = Value::from("Bearer");
        api.token_scope = given[3].clone();
        api.user_first_name = given[4].clone();
        api.user_last_name = given[5].clone();
        Ok(Value::record([
            ("expires_in", Value::from(2_i64)),
            ("access_token", api.access_token.clone()),
            ("token_type", Value::from("Bearer")),
            ("scope", given[3].clone()),
        ]))
    };
    travel_get_login_status() => |api, _, _| {
        let is_out = matches!(api.token_expires_in, Value::None) || api.is_expired();
        Ok(Value::record([("status", Value::Bool(!is_out))]))
    };
    get_budget_fiscal_year(lastModifiedAfter = Default::None, includeRemoved = Default::None) => |_, _, _| {
        Ok(Value::record([("budget_fiscal_year", Value::from("2018"))]))
    };
    register_credit_card(access_token, card_number, expiration_date, cardholder_name, card_verification_number) => |api, _, given| {
        api.register(given)
    };
    get_flight_cost(travel_from, travel_to, travel_date, travel_class) => |api, _, given| {
        let costs = api.flight_cost(&given[0], &given[1], &given[2], &given[3])?;
        Ok(Value::record([("travel_cost_list", Value::list(costs.into_iter().map(Value::Float)))]))
    };
    get_credit_card_balance(access_token, card_id) => |api, process, given| {
        if let Some(told) = api.refusal(&given[0]) {
            return Ok(told);
        }
        if !contains(&api.credit_card_list, &given[1])? {
            let ids = Value::list(as_dict(&api.credit_card_list, "keys")?.keys().cloned());
            return Ok(error(format!(
                "Card not registered. Here are a list of card_id's: {}",
                repr(&ids)?
            )));
        }
        Ok(Value::record([("card_balance", api.balance(process, &given[1])?)]))
    };
    book_flight(access_token, card_id, travel_date, travel_from, travel_to, travel_class) => |api, process, given| {
        api.book(process, given)
    };
    retrieve_invoice(access_token, booking_id = Default::None, insurance_id = Default::None) => |api, _, given| {
        if let Some(told) = api.refusal(&given[0]) {
            return Ok(told);
        }
        if !contains(&api.booking_record, &given[1])? {
            return Ok(error("Booking not found"));
        }
        let booking = subscript(&api.booking_record, &given[1])?;
        let mut invoice = Dict::default();
        invoice.insert_str("booking_id", given[1].clone());
        for name in [
            "travel_date", "travel_from", "travel_to", "travel_class", "travel_cost", "transaction_id",
        ] {
            invoice.insert_str(name, subscript(&booking, &Value::from(name))?);
        }
        Ok(Value::record([("invoice", Value::Dict(invoice.into()))]))
    };
    get_booking_history(access_token) => |api, _, given| {
        if let Some(told) = api.refusal(&given[0]) {
            return Ok(told);
        }
        Ok(Value::record([("booking_history", api.booking_record.clone())]))
    };
    list_all_airports() => |_, _, _| Ok(Value::list(AIRPORTS.map(Value::from)));
    cancel_booking(access_token, booking_id) => |api, process, given| api.cancel(process, &given[0], &given[1]);
    compute_exchange_rate(base_currency, target_currency, value) => |_, _, given| {
        exchange(&given[0], &given[1], &given[2])
    };
    verify_traveler_information(first_name, last_name, date_of_birth, passport_number) => |api, process, given| {
        api.verify(process, given)
    };
    set_budget_limit(access_token, budget_limit) => |api, _, given| {
        if let Some(told) = api.refusal(&given[0]) {
            return Ok(told);
        }
        api.budget_limit = Value::Float(to_float(&given[1])?);
        Ok(Value::record([("budget_limit", api.budget_limit.clone())]))
    };
    get_nearest_airport_by_city(location) => |_, _, given| {
        given[0].check_hashable()?;
        let known = NEAREST.iter().find(|(city, _)| given[0].as_str() == Some(city));
        let airport = known.map_or("Unknown", |(_, airport)| airport);
        Ok(Value::record([("nearest_airport", Value::from(airport))]))
    };
    purchase_insurance(access_token, insurance_type, booking_id, insurance_cost, card_id) => |api, process, given| {
        api.insure(process, &given[0], &given[2], &given[3], &given[4])
    };
    contact_customer_support(booking_id, message) => |api, _, given| {
        if !contains(&api.booking_record, &given[0])? {
            return Ok(error("Booking not found"));
        }
        let text = "Thank you for contacting customer support. Your message has been received and we will get back to you shortly.";
        Ok(Value::record([("customer_support_message", Value::from(text))]))
    };
    get_all_credit_cards() => |api, process, _| {
        Ok(Value::record([("credit_card_list", api.cards_in(process)?)]))
    };
});

impl Travel {
    pub(crate) fn load(scenario: &Dict, process: &Process, long_context: bool) -> Outcome<Self> {
        let given = |name: &str| scenario.get_str(name).cloned();
        let random = match scenario.get_str("random_seed") {
            Some(seed) => seeded(seed)?,
            None => UNSEEDED.clone(),
        };
        let mut cards = given("credit_card_list").unwrap_or_else(|| Value::record([]));
        let mut bookings = given("booking_record").unwrap_or_else(|| Value::record([]));
        if long_context {
            for (id, _) in as_dict(process.shared_cards(), "items")?.iter() {
                if !contains(&cards, id)? {
                    insert(&mut cards, id.clone(), Process::shared_card())?;
                }
            }
            for (id, booking) in as_dict(&process.long()?.bookings, "items")?.iter() {
                if !contains(&bookings, id)? {
                    insert(&mut bookings, id.clone(), booking.clone())?;
                }
            }
        }
        Ok(Self {
            random,
            credit_card_list: cards,
            booking_record: bookings,
            access_token: given("access_token").unwrap_or_default(),
            token_type: given("token_type").unwrap_or_default(),
            token_expires_in: given("token_expires_in").unwrap_or_default(),
            token_scope: given("token_scope").unwrap_or_default(),
            user_first_name: given("user_first_name").unwrap_or_default(),
            user_last_name: given("user_last_name").unwrap_or_default(),
            budget_limit: given("budget_limit").unwrap_or_default(),
            long_context,
            flight_costs: Arc::default(),
        })
    }

    /// The cards as they are in a process.
    pub(crate) fn cards_in(&self, process: &Process) -> Outcome<Value> {
        if !self.long_context {
            return Ok(self.credit_card_list.clone());
        }
        let mut cards = Dict::default();
        for (id, card) in as_dict(&self.credit_card_list, "items")?.iter() {
            let card = match Process::is_shared_card(card) {
                true => subscript(process.shared_cards(), id)?,
                false => card.clone(),
            };
            cards.insert(id.clone(), card)?;
        }
        Ok(Value::Dict(Arc::new(cards)))
    }

    fn draw(&mut self, first: i64, last: i64) -> Outcome<i64> {
        self.random.int(first, last)
    }

    fn is_expired(&self) -> bool {
        equal(&self.token_expires_in, &Value::from(0_i64))
    }

    /// Why a token is not taken.
    fn token_problem(&self, token: &Value) -> Option<&'static str> {
        if self.is_expired() {
            Some("Token expired")
        } else if !equal(token, &self.access_token) {
            Some("Invalid access token")
        } else {
            None
        }
    }

    fn refusal(&self, token: &Value) -> Option<Value> {
        self.token_problem(token).map(error)
    }

    fn card(&self, process: &Process, id: &Value) -> Outcome<Value> {
        let card = subscript(&self.credit_card_list, id)?;
        if Process::is_shared_card(&card) {
            subscript(process.shared_cards(), id)
        } else {
            Ok(card)
        }
    }

    fn balance(&self, process: &Process, id: &Value) -> Outcome<Value> {
        subscript(&self.card(process, id)?, &Value::from("balance"))
    }

    fn pay(
        &mut self,
        process: &mut Process,
        id: &Value,
        operator: BinaryOperator,
        amount: &Value,
    ) -> Outcome<()> {
        let is_shared = Process::is_shared_card(&subscript(&self.credit_card_list, id)?);
        let cards = match is_shared {
            true => process.shared_cards_mut(),
            false => &mut self.credit_card_list,
        };
        update(part(cards, id)?, &Value::from("balance"), operator, amount)
    }

    fn register(&mut self, given: &[Value]) -> Outcome<Value> {
        if matches!(self.token_expires_in, Value::None) {
            return Ok(error("Token not initialized"));
        }
        if let Some(told) = self.refusal(&given[0]) {
            return Ok(told);
        }
        if contains(&self.credit_card_list, &given[1])? {
            return Ok(error("Card already registered"));
        }
        let id = Value::from(self.draw(100_000_000_000, 999_999_999_999)?.to_string());
        let card = Value::record([
            ("card_number", given[1].clone()),
            ("expiration_date", given[2].clone()),
            ("cardholder_name", given[3].clone()),
            ("card_verification_number", given[4].clone()),
            ("balance", Value::from(self.draw(10_000, 99_999)?)),
        ]);
        insert(&mut self.credit_card_list, id.clone(), card)?;
        Ok(Value::record([("card_id", id)]))
    }

    /// The costs that a question tells; they are remembered for bookings.
    fn flight_cost(
        &mut self,
        from: &Value,
        to: &Value,
        date: &Value,
        class: &Value,
    ) -> Outcome<Vec<f64>> {
        from.check_hashable()?;
        to.check_hashable()?;
        let known = from.as_str().zip(to.as_str()).and_then(|(from, to)| base_cost(from, to));
        let base = known
            .ok_or_else(|| Exception::value_error("No available route for the given airports."))?;
        let factor = match class.as_str() {
            Some("economy") => 1,
            Some("business") => 2,
            Some("first") => 5,
            _ => {
                return Err(Exception::value_error(
                    "Invalid travel class. Options are: economy, business, first.",
                ));
            }
        };
        let mut digits = 0;
        for character in iterate(date)? {
            if text_of(&character, "isdigit")?.chars().all(is_digit) && character.is_true() {
                let digit = to_int(&character)?;
                digits += u32::try_from(digit % 2_u32).unwrap_or(0);
            }
        }
        let multiplier = if digits % 2 == 0 { 2 } else { 1 };
        let cost = |base: u32| f64::from(base * factor * multiplier);
        let rest = format!("|{}|{}", to_str(class)?, to_str(date)?);
        let mut costs = Vec::new();
        let mut remembered = HashMap::new();
        if self.long_context {
            for (from, targets) in BASE_COSTS {
                for (to, base) in *targets {
                    costs.push(cost(*base));
                    remembered.insert(format!("{from}|{to}{rest}"), cost(*base));
                }
            }
        } else {
            costs.push(cost(base));
            remembered.insert(format!("{}|{}{rest}", to_str(from)?, to_str(to)?), cost(base));
        }
        self.flight_costs = Arc::new(remembered);
        Ok(costs)
    }

    fn book(&mut self, process: &mut Process, given: &[Value]) -> Outcome<Value> {
        let [token, card_id, date, from, to, class] = given else {
            return Err(Exception::refused("a booking has six arguments"));
        };
        let refuse = |text: String| {
            Ok(Value::record([
                ("booking_status", Value::Bool(false)),
                ("error", Value::from(text)),
            ]))
        };
        if let Some(problem) = self.token_problem(token) {
            return refuse(problem.to_owned());
        }
        if !contains(&self.credit_card_list, card_id)? {
            return refuse("Card not registered".to_owned());
        }
        if !contains(&self.card(process, card_id)?, &Value::from("balance"))? {
            return refuse("Balance not found".to_owned());
        }
        let is_airport = |code: &Value| code.as_str().is_some_and(|code| AIRPORTS.contains(&code));
        if !is_airport(from) {
            return refuse(format!("Invalid departure airport code: {}", to_str(from)?));
        }
        if !is_airport(to) {
            return refuse(format!("Invalid destination airport code: {}", to_str(to)?));
        }
        match parse_date(date, DAY) {
            Ok(_) => {}
            Err(error) if error.kind == ExceptionKind::Value => {
                return refuse("Invalid date format. Use YYYY-MM-DD.".to_owned());
            }
            Err(error) => return Err(error),
        }
        class.check_hashable()?;
        if !matches!(class.as_str(), Some("economy" | "business" | "first")) {
            // The program prints a set here, whose order changes from process to process.
            return refuse(
                "Invalid travel class. Must be one of {'economy', 'business', 'first'}".to_owned(),
            );
        }
        let cost = match self.flight_cost(from, to, date, class) {
            Ok(_) => {
                let key =
                    [from, to, class, date].map(to_str).into_iter().collect::<Outcome<Vec<_>>>()?;
                match self.flight_costs.get(&key.join("|")) {
                    Some(cost) => Value::Float(*cost),
                    None => {
                        return refuse("No available route for the given parameters".to_owned());
                    }
                }
            }
            Err(error) if error.kind == ExceptionKind::Value => return refuse(error.text),
            Err(error) => return Err(error),
        };
        let balance = self.balance(process, card_id)?;
        if compare(Comparison::Less, &balance, &cost)? {
            return refuse("Insufficient funds".to_owned());
        }
        if !matches!(self.budget_limit, Value::None)
            && compare(Comparison::Less, &balance, &self.budget_limit)?
        {
            return refuse("Balance is less than budget limit".to_owned());
        }
        self.pay(process, card_id, BinaryOperator::Subtract, &cost)?;
        let booking_id = Value::from(self.draw(1_000_000, 9_999_999)?.to_string());
        let transaction_id = Value::from(self.draw(10_000_000, 99_999_999)?.to_string());
        let booking = Value::record([
            ("card_id", card_id.clone()),
            ("travel_date", date.clone()),
            ("travel_from", from.clone()),
            ("travel_to", to.clone()),
            ("travel_class", class.clone()),
            ("travel_cost", cost),
            ("transaction_id", transaction_id.clone()),
        ]);
        insert(&mut self.booking_record, booking_id.clone(), booking)?;
        let history = match self.long_context {
            true => self.booking_record.clone(),
            false => Value::record([]),
        };
        Ok(Value::record([
            ("booking_id", booking_id),
            ("transaction_id", transaction_id),
            ("booking_status", Value::Bool(true)),
            ("booking_history", history),
        ]))
    }

    fn cancel(
        &mut self,
        process: &mut Process,
        token: &Value,
        booking_id: &Value,
    ) -> Outcome<Value> {
        let refuse = |text: &str| {
            Ok(Value::record([("cancel_status", Value::Bool(false)), ("error", Value::from(text))]))
        };
        if let Some(problem) = self.token_problem(token) {
            return refuse(problem);
        }
        if !contains(&self.booking_record, booking_id)? {
            return refuse("Booking not found");
        }
        let booking = subscript(&self.booking_record, booking_id)?;
        let card_id = subscript(&booking, &Value::from("card_id"))?;
        let cost = subscript(&booking, &Value::from("travel_cost"))?;
        self.pay(process, &card_id, BinaryOperator::Add, &cost)?;
        if let Some(bookings) = self.booking_record.as_dict_mut() {
            bookings.remove(booking_id)?;
        }
        Ok(Value::record([("cancel_status", Value::Bool(true))]))
    }

    fn verify(&self, process: &Process, given: &[Value]) -> Outcome<Value> {
        let failed = |text: String| {
            Ok(Value::record([
                ("verification_status", Value::Bool(false)),
                ("verification_failure", Value::from(text)),
            ]))
        };
        if !equal(&self.user_first_name, &given[0]) || !equal(&self.user_last_name, &given[1]) {
            return failed(format!(
                "Cannot book flight information for another user.Expected {} {}, got {} {}",
                to_str(&self.user_first_name)?,
                to_str(&self.user_last_name)?,
                to_str(&given[0])?,
                to_str(&given[1])?
            ));
        }
        let birth = match parse_date(&given[2], DAY) {
            Ok(birth) => birth,
            Err(error) if error.kind == ExceptionKind::Value => {
                return failed("Invalid date of birth format. Please use YYYY-MM-DD.".to_owned());
            }
            Err(error) => return Err(error),
        };
        let today = process.today();
        let before_birthday = (today.month, today.day) < (birth.month, birth.day);
        let age = i64::from(today.year) - i64::from(birth.year) - i64::from(before_birthday);
        if age < 18 {
            return failed("Traveler must be at least 18 years old.".to_owned());
        }
        if !text_of(&given[3], "startswith")?.starts_with("US") {
            return failed("Passport must be issued by the United States.".to_owned());
        }
        Ok(Value::record([("verification_status", Value::Bool(true))]))
    }

    fn insure(
        &mut self,
        process: &mut Process,
        token: &Value,
        booking_id: &Value,
        cost: &Value,
        card_id: &Value,
    ) -> Outcome<Value> {
        let refuse = |text: &str| {
            Ok(Value::record([
                ("insurance_status", Value::Bool(false)),
                ("error", Value::from(text)),
            ]))
        };
        if let Some(problem) = self.token_problem(token) {
            return refuse(problem);
        }
        if !matches!(self.budget_limit, Value::None)
            && compare(Comparison::Less, &self.budget_limit, cost)?
        {
            return refuse("Exceeded budget limit");
        }
        if !contains(&self.booking_record, booking_id)? {
            return refuse("Booking not found");
        }
        if !contains(&self.credit_card_list, card_id)? {
            return refuse("Credit card not registered");
        }
        self.pay(process, card_id, BinaryOperator::Subtract, cost)?;
        let id = self.draw(100_000_000, 999_999_999)?.to_string();
        Ok(Value::record([
            ("insurance_id", Value::from(id)),
            ("insurance_status", Value::Bool(true)),
        ]))
    }
}

fn exchange(base: &Value, target: &Value, value: &Value) -> Outcome<Value> {
    let (base, target) = (base.as_str(), target.as_str());
    for (currency, rate) in RATES {
        // Whole rates are whole numbers in the program, which shows in what does not fit.
        let rate = match currency {
            "RMB" | "JPY" | "INR" | "RUB" | "MXN" => Value::from(rate as i64),
            _ => Value::Float(rate),
        };
        if (base, target) == (Some("USD"), Some(currency)) {
            let product = binary(BinaryOperator::Multiply, value, &rate)?;
            return Ok(Value::record([("exchanged_value", Value::Float(to_float(&product)?))]));
        }
        if (base, target) == (Some(currency), Some("USD")) {
            let quotient = binary(BinaryOperator::Divide, value, &rate)?;
            let rounded = round(&quotient, &Value::from(2_i64))?;
            return Ok(Value::record([("exchanged_value", rounded)]));
        }
    }
    Err(Exception::value_error("No available exchange rate for the given currencies."))
}
