//! `TradingBot`: stocks, orders and an account.

use std::sync::{Arc, LazyLock};

use spar_python::signature::Default;
use spar_python::text::lower;
use spar_python::{
    BinaryOperator, Comparison, Dict, Outcome, Random, Value, absolute, binary, compare, contains,
    equal, format_fixed, iterate, repr, seeded, subscript, to_float, to_int, to_str,
};

use super::file_system::text_of;
use super::message::as_dict;
use super::method::{Method, error, methods};
use super::mutation::{append, augmented, extend, insert, part, remove, update};
use crate::Process;
use crate::dates::{DAY, DateTime, SECOND, parse_date};

/// What draws in scenarios that give no seed.
static UNSEEDED: LazyLock<Random> = LazyLock::new(|| Random::from_u64(1_053_520));
/// The time at which all happens.
const NOW: DateTime = DateTime { hour: 10, minute: 30, ..DateTime::day(2024, 9, 1) };
/// Its seconds since 1970, UTC.
const NOW_SECONDS: i64 = 1_725_186_600;
const DAY_SECONDS: i64 = 86_400;

/// Symbol, price, change in percent, volume, averages over 5 and 20 days.
const STOCKS: [(&str, [f64; 5]); 11] = [
    ("AAPL", [227.16, 0.17, 2.552, 227.11, 227.09]),
    ("GOOG", [2840.34, 0.24, 1.123, 2835.67, 2842.15]),
    ("TSLA", [667.92, -0.12, 1.654, 671.15, 668.20]),
    ("MSFT", [310.23, 0.09, 3.234, 309.88, 310.11]),
    ("NVDA", [220.34, 0.34, 1.234, 220.45, 220.67]),
    ("ALPH", [1320.45, -0.08, 1.567, 1321.12, 1325.78]),
    ("OMEG", [457.23, 0.12, 2.345, 456.78, 458.12]),
    ("QUAS", [725.89, -0.03, 1.789, 726.45, 728.00]),
    ("NEPT", [88.34, 0.19, 0.654, 88.21, 88.67]),
    ("SYNX", [345.67, 0.11, 2.112, 345.34, 346.12]),
    ("ZETA", [22.09, -0.05, 0.789, 22.12, 22.34]),
];

const SYMBOLS: [(&str, &str); 13] = [
    ("Apple", "AAPL"),
    ("Google", "GOOG"),
    ("Tesla", "TSLA"),
    ("Microsoft", "MSFT"),
    ("Nvidia", "NVDA"),
    ("Zeta Corp", "ZETA"),
    ("Alpha Tech", "ALPH"),
    ("Omega Industries", "OMEG"),
    ("Quasar Ltd.", "QUAS"),
    ("Neptune Systems", "NEPT"),
    ("Synex Solutions", "SYNX"),
    ("Amazon", "AMZN"),
    ("Gorilla", "GORI"),
];

/// The account and the market.
#[derive(Debug, Clone)]
pub(crate) struct Trading {
    random: Random,
    pub(crate) orders: Value,
    pub(crate) account_info: Value,
    pub(crate) authenticated: Value,
    pub(crate) market_status: Value,
    pub(crate) order_counter: Value,
    pub(crate) stocks: Value,
    pub(crate) watch_list: Value,
    pub(crate) transaction_history: Value,
    pub(crate) long_context: bool,
}

pub(crate) const METHODS: &[Method<Trading>] = methods!(Trading, "TradingBot", {
    get_current_time() => |_, _, _| {
        Ok(Value::record([("current_time", Value::from("10:30 AM"))]))
    };
    get_symbol_by_name(name) => |_, _, given| {
        given[0].check_hashable()?;
        let known = SYMBOLS.iter().find(|(name, _)| given[0].as_str() == Some(name));
        let symbol = known.map_or("Stock not found", |(_, symbol)| symbol);
        Ok(Value::record([("symbol", Value::from(symbol))]))
    };
    get_stock_info(symbol) => |api, process, given| api.stock(process, &given[0]);
    get_order_details(order_id) => |api, process, given| api.order(process, &given[0]);
    cancel_order(order_id) => |api, _, given| api.cancel(&given[0]);
    place_order(order_type, symbol, price, amount) => |api, _, given| {
        api.place(&given[0], &given[1], &given[2], &given[3])
    };
    withdraw_funds(amount) => |api, _, given| api.withdraw(&given[0]);
    get_account_info() => |api, _, _| {
        if !api.authenticated.is_true() {
            return Ok(log_in("view account information"));
        }
        Ok(api.account_info.clone())
    };
    trading_login(username, password) => |api, _, _| {
        let told = if api.authenticated.is_true() { "Already logged in" } else { "Logged in successfully" };
        if !api.authenticated.is_true() {
            api.authenticated = Value::Bool(true);
        }
        Ok(status(told))
    };
    trading_get_login_status() => |api, _, _| {
        Ok(Value::record([("status", Value::Bool(api.authenticated.is_true()))]))
    };
    trading_logout() => |api, _, _| {
        if !api.authenticated.is_true() {
            return Ok(status("No user is currently logged in"));
        }
        api.authenticated = Value::Bool(false);
        Ok(status("Logged out successfully"))
    };
    fund_account(amount) => |api, _, given| api.fund(&given[0]);
    remove_stock_from_watchlist(symbol) => |api, _, given| api.unwatch(&given[0]);
    get_watchlist() => |api, process, _| {
        if !api.authenticated.is_true() {
            let text = "Error: User not authenticated. Please log in to view the watchlist.";
            return Ok(Value::list([Value::from(text)]));
        }
        if api.long_context {
            let mut list = api.watch_list.clone();
            extend(&mut list, &process.long()?.watch_list)?;
            return Ok(list);
        }
        Ok(Value::record([("watchlist", api.watch_list.clone())]))
    };
    get_order_history() => |api, _, _| {
        if !api.authenticated.is_true() {
            return Ok(Value::list([log_in("view order history")]));
        }
        let orders = as_dict(&api.orders, "keys")?.keys().cloned();
        Ok(Value::record([("history", Value::list(orders))]))
    };
    get_transaction_history(start_date = Default::None, end_date = Default::None) => |api, process, given| {
        api.transactions(process, &given[0], &given[1])
    };
    get_available_stocks(sector) => |api, process, given| {
        let (technology, automobile) = (["AAPL", "GOOG", "MSFT", "NVDA"], ["TSLA", "F", "GM"]);
        let mut sectors = Value::record([
            ("Technology", Value::list(technology.map(Value::from))),
            ("Automobile", Value::list(automobile.map(Value::from))),
        ]);
        if api.long_context {
            let long = process.long()?;
            extend(part(&mut sectors, &Value::from("Technology"))?, &long.technology)?;
            extend(part(&mut sectors, &Value::from("Automobile"))?, &long.automobile)?;
        }
        let found = as_dict(&sectors, "get")?.get(&given[0])?.cloned();
        Ok(Value::record([("stock_list", found.unwrap_or_else(|| Value::list([])))]))
    };
    filter_stocks_by_price(stocks, min_price, max_price) => |api, _, given| {
        let mut kept = Vec::new();
        for symbol in iterate(&given[0])? {
            if compare(Comparison::GreaterOrEqual, &api.price(&symbol)?, &given[1])?
                && compare(Comparison::LessOrEqual, &api.price(&symbol)?, &given[2])?
            {
                kept.push(symbol);
            }
        }
        Ok(Value::record([("filtered_stocks", Value::list(kept))]))
    };
    add_to_watchlist(stock) => |api, _, given| {
        if !contains(&api.watch_list, &given[0])? && contains(&api.stocks, &given[0])? {
            append(&mut api.watch_list, given[0].clone())?;
        }
        Ok(Value::record([("watchlist", api.watch_list.clone())]))
    };
    notify_price_change(stocks, threshold) => |api, _, given| {
        let mut changed = Vec::new();
        for symbol in iterate(&given[0])? {
            if contains(&api.stocks, &symbol)? {
                let change = subscript(&subscript(&api.stocks, &symbol)?, &Value::from("percent_change"))?;
                if compare(Comparison::GreaterOrEqual, &absolute(&change)?, &given[1])? {
                    changed.push(symbol);
                }
            }
        }
        let told = if changed.is_empty() {
            "No significant price changes in the selected stocks.".to_owned()
        } else {
            let names = spar_python::join(", ", &Value::list(changed))?;
            format!("Stocks {names} have significant price changes.")
        };
        Ok(Value::record([("notification", Value::from(told))]))
    };
});

impl Trading {
    pub(crate) fn load(scenario: &Dict, long_context: bool) -> Outcome<Self> {
        let given = |name: &str| scenario.get_str(name).cloned();
        let random = match scenario.get_str("random_seed") {
            Some(seed) => seeded(seed)?,
            None => UNSEEDED.clone(),
        };
        let mut orders = Dict::default();
        for (key, order) in
            as_dict(&given("orders").unwrap_or_else(default_orders), "items")?.iter()
        {
            let is_digits = |text: &str| {
                !text.is_empty() && text.chars().all(spar_python::characters::is_digit)
            };
            let key = match key.as_str() {
                Some(text) if is_digits(text) => Value::from(to_int(key)?),
                _ => key.clone(),
            };
            orders.insert(key, order.clone())?;
        }
        Ok(Self {
            random,
            orders: Value::Dict(Arc::new(orders)),
            account_info: given("account_info").unwrap_or_else(|| {
                Value::record([
                    ("account_id", Value::from(12_345_i64)),
                    ("balance", Value::Float(10_000.0)),
                    ("binding_card", Value::from(1_974_202_140_965_533_i64)),
                ])
            }),
            authenticated: given("authenticated").unwrap_or(Value::Bool(false)),
            market_status: given("market_status").unwrap_or_else(|| Value::from("Closed")),
            order_counter: given("order_counter").unwrap_or_else(|| Value::from(12_446_i64)),
            stocks: given("stocks").unwrap_or_else(default_stocks),
            watch_list: given("watch_list").unwrap_or_else(|| Value::list([Value::from("NVDA")])),
            transaction_history: given("transaction_history").unwrap_or_else(|| Value::list([])),
            long_context,
        })
    }

    fn stock(&self, process: &Process, symbol: &Value) -> Outcome<Value> {
        if !contains(&self.stocks, symbol)? {
            return Ok(error(format!("Stock with symbol '{}' not found.", to_str(symbol)?)));
        }
        let mut stock = subscript(&self.stocks, symbol)?;
        if self.long_context {
            let long = process.long()?;
            insert(&mut stock, Value::from("MA(5)"), long.ma_5.clone())?;
            insert(&mut stock, Value::from("MA(20)"), long.ma_20.clone())?;
        }
        Ok(stock)
    }

    fn order(&self, process: &Process, order_id: &Value) -> Outcome<Value> {
        if !contains(&self.orders, order_id)? {
            let ids = Value::list(as_dict(&self.orders, "keys")?.keys().cloned());
            return Ok(error(format!(
                "Order with ID {} not found.Here is the list of orders_id: {}",
                to_str(order_id)?,
                repr(&ids)?
            )));
        }
        let mut order = subscript(&self.orders, order_id)?;
        if self.long_context {
            let symbol = to_str(&subscript(&order, &Value::from("symbol"))?)?;
            let details = process.long()?.order_details(&symbol);
            insert(&mut order, Value::from("metadata"), details)?;
        }
        Ok(order)
    }

    fn cancel(&mut self, order_id: &Value) -> Outcome<Value> {
        let id = || to_str(order_id);
        if !contains(&self.orders, order_id)? {
            return Ok(error(format!("Order with ID {} not found.", id()?)));
        }
        let order = part(&mut self.orders, order_id)?;
        if equal(&subscript(order, &Value::from("status"))?, &Value::from("Completed")) {
            return Ok(error(format!("Can't cancel order {}. Order is already completed.", id()?)));
        }
        insert(order, Value::from("status"), Value::from("Cancelled"))?;
        Ok(Value::record([("order_id", order_id.clone()), ("status", Value::from("Cancelled"))]))
    }

    fn place(
        &mut self,
        order_type: &Value,
        symbol: &Value,
        price: &Value,
        amount: &Value,
    ) -> Outcome<Value> {
        if !self.authenticated.is_true() {
            return Ok(log_in("place an order"));
        }
        if !contains(&self.stocks, symbol)? {
            return Ok(error(format!("Invalid stock symbol: {}", to_str(symbol)?)));
        }
        if is_at_most_zero(price)? || is_at_most_zero(amount)? {
            return Ok(error("Price and amount must be positive values."));
        }
        if lower(text_of(order_type, "lower")?) == "buy" {
            let cost = binary(
                BinaryOperator::Multiply,
                &Value::Float(to_float(price)?),
                &Value::from(to_int(amount)?),
            )?;
            let balance = as_dict(&self.account_info, "get")?.get_str("balance").cloned();
            let balance = balance.unwrap_or_else(|| Value::from(0_i64));
            if compare(Comparison::Greater, &cost, &balance)? {
                return Ok(error(format!(
                    "Insufficient funds: required ${} but only ${} available.",
                    format_fixed(&cost, 2)?,
                    format_fixed(&balance, 2)?
                )));
            }
        }
        let price = Value::Float(to_float(price)?);
        let id = self.order_counter.clone();
        let order = Value::record([
            ("id", id.clone()),
            ("order_type", order_type.clone()),
            ("symbol", symbol.clone()),
            ("price", price.clone()),
            ("amount", amount.clone()),
            ("status", Value::from("Open")),
        ]);
        insert(&mut self.orders, id.clone(), order)?;
        self.order_counter =
            augmented(BinaryOperator::Add, &self.order_counter, &Value::from(1_i64))?;
        Ok(Value::record([
            ("order_id", id),
            ("order_type", order_type.clone()),
            ("status", Value::from("Pending")),
            ("price", price),
            ("amount", amount.clone()),
        ]))
    }

    fn withdraw(&mut self, amount: &Value) -> Outcome<Value> {
        if !self.authenticated.is_true() {
            return Ok(log_in("make a transaction"));
        }
        if !equal(&self.market_status, &Value::from("Open")) {
            return Ok(error("Market is closed. Transactions are not allowed."));
        }
        if is_at_most_zero(amount)? {
            return Ok(error("Transaction amount must be positive."));
        }
        let balance = subscript(&self.account_info, &Value::from("balance"))?;
        if compare(Comparison::Greater, amount, &balance)? {
            return Ok(error("Insufficient funds for withdrawal."));
        }
        self.transact("withdrawal", BinaryOperator::Subtract, amount, "Withdrawal successful")
    }

    fn fund(&mut self, amount: &Value) -> Outcome<Value> {
        if !self.authenticated.is_true() {
            return Ok(log_in("fund the account"));
        }
        if is_at_most_zero(amount)? {
            return Ok(error("Funding amount must be positive."));
        }
        self.transact("deposit", BinaryOperator::Add, amount, "Account funded successfully")
    }

    fn transact(
        &mut self,
        kind: &str,
        operator: BinaryOperator,
        amount: &Value,
        told: &str,
    ) -> Outcome<Value> {
        update(&mut self.account_info, &Value::from("balance"), operator, amount)?;
        let drawn = self.random.int(NOW_SECONDS, NOW_SECONDS + DAY_SECONDS)?;
        let time = NOW.plus_seconds((drawn - NOW_SECONDS) as u32);
        let transaction = Value::record([
            ("type", Value::from(kind)),
            ("amount", amount.clone()),
            ("timestamp", Value::from(time.written())),
        ]);
        append(&mut self.transaction_history, transaction)?;
        Ok(Value::record([
            ("status", Value::from(told)),
            ("new_balance", subscript(&self.account_info, &Value::from("balance"))?),
        ]))
    }

    fn unwatch(&mut self, symbol: &Value) -> Outcome<Value> {
        if !self.authenticated.is_true() {
            return Ok(log_in("modify the watchlist"));
        }
        if !contains(&self.watch_list, symbol)? {
            return Ok(error(format!("Stock {} not found in watchlist.", to_str(symbol)?)));
        }
        remove(&mut self.watch_list, symbol)?;
        Ok(status(&format!("Stock {} removed from watchlist successfully.", to_str(symbol)?)))
    }

    fn transactions(&self, process: &Process, start: &Value, end: &Value) -> Outcome<Value> {
        if !self.authenticated.is_true() {
            return Ok(Value::list([log_in("view transaction history")]));
        }
        let bound = |date: &Value, default: DateTime| match date.is_true() {
            true => parse_date(date, DAY),
            false => Ok(default),
        };
        let (start, end) = (bound(start, DateTime::FIRST)?, bound(end, DateTime::LAST)?);
        let mut kept = Vec::new();
        for transaction in iterate(&self.transaction_history)? {
            let time = parse_date(&subscript(&transaction, &Value::from("timestamp"))?, SECOND)?;
            if start <= time && time <= end {
                kept.push(transaction);
            }
        }
        let mut kept = Value::list(kept);
        if self.long_context {
            extend(&mut kept, &process.long()?.transaction_history)?;
        }
        Ok(Value::record([("transaction_history", kept)]))
    }

    /// `self.stocks.get(symbol, {}).get("price", 0)`
    fn price(&self, symbol: &Value) -> Outcome<Value> {
        let zero = || Value::from(0_i64);
        match as_dict(&self.stocks, "get")?.get(symbol)? {
            Some(stock) => {
                Ok(as_dict(stock, "get")?.get_str("price").cloned().unwrap_or_else(zero))
            }
            None => Ok(zero()),
        }
    }
}

fn is_at_most_zero(amount: &Value) -> Outcome<bool> {
    compare(Comparison::LessOrEqual, amount, &Value::from(0_i64))
}

fn log_in(to: &str) -> Value {
    error(format!("User not authenticated. Please log in to {to}."))
}

fn status(text: &str) -> Value {
    Value::record([("status", Value::from(text))])
}

fn default_orders() -> Value {
    let order = |id: i64, kind: &str, symbol: &str, price: f64, amount: i64, status: &str| {
        Value::record([
            ("id", Value::from(id)),
            ("order_type", Value::from(kind)),
            ("symbol", Value::from(symbol)),
            ("price", Value::Float(price)),
            ("amount", Value::from(amount)),
            ("status", Value::from(status)),
        ])
    };
    Value::record([
        ("12345", order(12_345, "Buy", "AAPL", 210.65, 10, "Completed")),
        ("12446", order(12_446, "Sell", "GOOG", 2840.56, 5, "Pending")),
    ])
}

fn default_stocks() -> Value {
    Value::dict(STOCKS.map(|(symbol, numbers)| {
        let names = ["price", "percent_change", "volume", "MA(5)", "MA(20)"];
        (symbol, Value::dict(names.into_iter().zip(numbers.map(Value::Float))))
    }))
}
