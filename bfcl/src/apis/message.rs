//! `MessageAPI`: users of a workspace and what they write to each other.

use std::sync::{Arc, LazyLock};

use spar_python::text::{lower, zero_fill};
use spar_python::{
    BinaryOperator, Dict, Exception, Outcome, Random, Set, Value, contains, equal, iterate, length,
    seeded, subscript, to_list, to_str,
};

use super::file_system::text_of;
use super::method::{Method, error, methods};
use super::mutation::{append, augmented, insert};

/// What draws in scenarios that give no seed.
static UNSEEDED: LazyLock<Random> = LazyLock::new(|| Random::from_u64(200_191));

/// The workspace.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    random: Random,
    pub(crate) generated_ids: Value,
    pub(crate) user_count: Value,
    pub(crate) user_map: Value,
    pub(crate) inbox: Value,
    pub(crate) message_count: Value,
    pub(crate) current_user: Value,
}

pub(crate) const METHODS: &[Method<Message>] = methods!(Message, "MessageAPI", {
    list_users() => |api, _, _| api.list_users();
    get_user_id(user) => |api, _, given| api.get_user_id(&given[0]);
    message_login(user_id) => |api, _, given| api.login(&given[0]);
    message_get_login_status() => |api, _, _| {
        Ok(Value::record([("login_status", Value::Bool(api.current_user.is_true()))]))
    };
    send_message(receiver_id, message) => |api, _, given| api.send(&given[0], &given[1]);
    delete_message(receiver_id) => |api, _, given| api.delete(&given[0]);
    view_messages_sent() => |api, _, _| api.view_sent();
    add_contact(user_name) => |api, _, given| api.add_contact(&given[0]);
    search_messages(keyword) => |api, _, given| api.search(&given[0]);
    get_message_stats() => |api, _, _| api.stats();
});

impl Message {
    pub(crate) fn load(scenario: &Dict) -> Outcome<Self> {
        let given = |name: &str| scenario.get_str(name).cloned();
        let random = match scenario.get_str("random_seed") {
            Some(seed) => seeded(seed)?,
            None => UNSEEDED.clone(),
        };
        let names = ["Alice", "Bob", "Catherine", "Daniel"];
        let ids = ["USR001", "USR002", "USR003", "USR004"].map(Value::from);
        let message = |to: &'static str, text: &str| Value::record([(to, Value::from(text))]);
        Ok(Self {
            random,
            generated_ids: given("generated_ids").unwrap_or_else(|| Value::Set(Arc::default())),
            user_count: given("user_count").unwrap_or_else(|| Value::from(4_i64)),
            user_map: given("user_map").unwrap_or_else(|| Value::dict(names.into_iter().zip(ids))),
            inbox: given("inbox").unwrap_or_else(|| {
                Value::list([
                    message("USR002", "My name is Alice. I want to connect."),
                    message("USR003", "Could you upload the file?"),
                    message("USR004", "Could you upload the file?"),
                ])
            }),
            message_count: given("message_count").unwrap_or_else(|| Value::from(3_i64)),
            current_user: given("current_user").unwrap_or_default(),
        })
    }

    fn user_ids(&self) -> Outcome<Value> {
        let map = as_dict(&self.user_map, "values")?;
        Ok(Value::list(map.values().cloned()))
    }

    fn list_users(&self) -> Outcome<Value> {
        let map = as_dict(&self.user_map, "keys")?;
        Ok(Value::record([("user_list", Value::list(map.keys().cloned()))]))
    }

    fn get_user_id(&self, user: &Value) -> Outcome<Value> {
        if !contains(&self.user_map, user)? {
            return Ok(error(format!("User '{}' not found in the workspace.", to_str(user)?)));
        }
        Ok(Value::record([("user_id", subscript(&self.user_map, user)?)]))
    }

    fn login(&mut self, user_id: &Value) -> Outcome<Value> {
        let told = |status: bool, text: String| {
            Value::record([("login_status", Value::Bool(status)), ("message", Value::from(text))])
        };
        if !contains(&self.user_ids()?, user_id)? {
            return Ok(told(false, format!("User ID '{}' not found.", to_str(user_id)?)));
        }
        self.current_user = user_id.clone();
        Ok(told(true, format!("User '{}' logged in successfully.", to_str(user_id)?)))
    }

    fn generate_id(&mut self) -> Outcome<Value> {
        let id = loop {
            let id = Value::from(self.random.int(10_000, 99_999)?);
            if !contains(&self.generated_ids, &id)? {
                break id;
            }
        };
        match &mut self.generated_ids {
            Value::Set(set) => Arc::make_mut(set).insert(id.clone())?,
            other => return Err(Exception::no_attribute(other.type_name(), "add")),
        }
        Ok(Value::record([("new_id", id)]))
    }

    fn send(&mut self, receiver: &Value, message: &Value) -> Outcome<Value> {
        if !self.current_user.is_true() {
            return Ok(not_logged_in());
        }
        if !contains(&self.user_ids()?, receiver)? {
            return Ok(error(format!("Receiver ID '{}' not found.", to_str(receiver)?)));
        }
        let id = self.generate_id()?;
        let mut entry = Dict::default();
        entry.insert(receiver.clone(), message.clone())?;
        append(&mut self.inbox, Value::Dict(entry.into()))?;
        self.message_count =
            augmented(BinaryOperator::Add, &self.message_count, &Value::from(1_i64))?;
        Ok(Value::record([
            ("sent_status", Value::Bool(true)),
            ("message_id", id),
            (
                "message",
                Value::from(format!("Message sent to '{}' successfully.", to_str(receiver)?)),
            ),
        ]))
    }

    fn delete(&mut self, receiver: &Value) -> Outcome<Value> {
        if !self.current_user.is_true() {
            return Ok(not_logged_in());
        }
        let inbox = iterate(&self.inbox)?;
        for message in inbox.iter().rev() {
            let (to, _) = first_entry(message)?;
            if !equal(&to, receiver) {
                continue;
            }
            // The first message that is equal goes, which need not be the one that was found.
            let at = inbox.iter().position(|other| equal(other, message));
            if let (Some(at), Some(inbox)) = (at, self.inbox.as_list_mut()) {
                inbox.remove(at);
            }
            let text =
                format!("Receiver {}'s latest message deleted successfully.", to_str(receiver)?);
            return Ok(Value::record([
                ("deleted_status", Value::Bool(true)),
                ("receiver_id", to),
                ("message", Value::from(text)),
            ]));
        }
        Ok(error(format!("Receiver ID {} not found.", to_str(receiver)?)))
    }

    fn view_sent(&self) -> Outcome<Value> {
        if !self.current_user.is_true() {
            return Ok(not_logged_in());
        }
        let mut sent = Value::record([]);
        for message in iterate(&self.inbox)? {
            let (to, text) = first_entry(&message)?;
            match sent.as_dict_mut().map(|sent| sent.get_mut(&to)).transpose()?.flatten() {
                Some(texts) => append(texts, text)?,
                None => insert(&mut sent, to, Value::list([text]))?,
            }
        }
        Ok(Value::record([("messages", sent)]))
    }

    fn add_contact(&mut self, name: &Value) -> Outcome<Value> {
        if contains(&self.user_map, name)? {
            return Ok(error(format!("User name '{}' already exists.", to_str(name)?)));
        }
        self.user_count = augmented(BinaryOperator::Add, &self.user_count, &Value::from(1_i64))?;
        let id = Value::from(format!("USR{}", zero_fill(&to_str(&self.user_count)?, 3)));
        if contains(&self.user_ids()?, &id)? {
            return Ok(error(format!("User ID '{}' already exists.", to_str(&id)?)));
        }
        insert(&mut self.user_map, name.clone(), id.clone())?;
        Ok(Value::record([
            ("added_status", Value::Bool(true)),
            ("user_id", id),
            ("message", Value::from(format!("Contact '{}' added successfully.", to_str(name)?))),
        ]))
    }

    fn search(&self, keyword: &Value) -> Outcome<Value> {
        if !self.current_user.is_true() {
            return Ok(not_logged_in());
        }
        let keyword = lower(text_of(keyword, "lower")?);
        let mut results = Vec::new();
        for message in iterate(&self.inbox)? {
            let (to, text) = first_entry(&message)?;
            if lower(text_of(&text, "lower")?).contains(&keyword) {
                results.push(Value::record([("receiver_id", to), ("message", text)]));
            }
        }
        Ok(Value::record([("results", Value::list(results))]))
    }

    fn stats(&self) -> Outcome<Value> {
        if !self.current_user.is_true() {
            return Ok(not_logged_in());
        }
        let mut contacts = Set::default();
        for message in iterate(&self.inbox)? {
            contacts.insert(first_entry(&message)?.0)?;
        }
        let stats = Value::record([
            ("received_count", Value::from(length(&self.inbox)?)),
            ("total_contacts", Value::from(contacts.len())),
        ]);
        Ok(Value::record([("stats", stats)]))
    }
}

fn not_logged_in() -> Value {
    error("No user is currently logged in.")
}

/// `list(message.items())[0]`
fn first_entry(message: &Value) -> Outcome<(Value, Value)> {
    let entries = as_dict(message, "items")?;
    match entries.iter().next() {
        Some((key, value)) => Ok((key.clone(), value.clone())),
        None => Err(subscript(&to_list(&Value::list([]))?, &Value::from(0_i64))
            .expect_err("nothing is in an empty list")),
    }
}

/// The dictionary on which a method is called.
pub(crate) fn as_dict<'v>(value: &'v Value, method: &str) -> Outcome<&'v Dict> {
    value.as_dict().ok_or_else(|| Exception::no_attribute(value.type_name(), method))
}
