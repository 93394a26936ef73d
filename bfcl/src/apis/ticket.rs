//! `TicketAPI`: support tickets.

use spar_python::signature::Default;
use spar_python::text::lower;
use spar_python::{
    BinaryOperator, Comparison, Dict, Outcome, Value, compare, equal, iterate, subscript, to_str,
};

use super::file_system::text_of;
use super::message::as_dict;
use super::method::{Method, error, methods};
use super::mutation::{append, augmented, insert};

/// The queue of tickets.
#[derive(Debug, Clone)]
pub(crate) struct Ticket {
    pub(crate) ticket_queue: Value,
    pub(crate) ticket_counter: Value,
    pub(crate) current_user: Value,
}

pub(crate) const METHODS: &[Method<Ticket>] = methods!(Ticket, "TicketAPI", {
    create_ticket(title, description = Default::Str(""), priority = Default::Int(1)) => |api, _, given| {
        api.create(&given[0], &given[1], &given[2])
    };
    get_ticket(ticket_id) => |api, _, given| match api.find(&given[0])? {
        Some(at) => Ok(api.tickets()?[at].clone()),
        None => no_ticket(&given[0]),
    };
    close_ticket(ticket_id) => |api, _, given| api.finish(&given[0], "Closed", None);
    resolve_ticket(ticket_id, resolution) => |api, _, given| {
        api.finish(&given[0], "Resolved", Some(&given[1]))
    };
    edit_ticket(ticket_id, updates) => |api, _, given| api.edit(&given[0], &given[1]);
    ticket_login(username, password) => |api, _, given| {
        let success = given[0].is_true() && given[1].is_true();
        if success {
            api.current_user = given[0].clone();
        }
        Ok(Value::record([("success", Value::Bool(success))]))
    };
    ticket_get_login_status() => |api, _, _| {
        Ok(Value::record([("login_status", Value::Bool(api.current_user.is_true()))]))
    };
    logout() => |api, _, _| {
        let success = api.current_user.is_true();
        if success {
            api.current_user = Value::None;
        }
        Ok(Value::record([("success", Value::Bool(success))]))
    };
    get_user_tickets(status = Default::None) => |api, _, given| api.of_user(&given[0]);
});

impl Ticket {
    pub(crate) fn load(scenario: &Dict) -> Self {
        let given = |name: &str, default: Value| scenario.get_str(name).cloned().unwrap_or(default);
        Self {
            ticket_queue: given("ticket_queue", Value::list([])),
            ticket_counter: given("ticket_counter", Value::from(1_i64)),
            current_user: given("current_user", Value::None),
        }
    }

    fn tickets(&self) -> Outcome<Vec<Value>> {
        iterate(&self.ticket_queue)
    }

    /// The place of a ticket. An empty one counts as none.
    fn find(&self, ticket_id: &Value) -> Outcome<Option<usize>> {
        for (at, ticket) in self.tickets()?.iter().enumerate() {
            if equal(&subscript(ticket, &Value::from("id"))?, ticket_id) {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    fn set(&mut self, at: usize, key: Value, value: Value) -> Outcome<()> {
        match self.ticket_queue.as_list_mut() {
            Some(queue) => insert(&mut queue[at], key, value),
            None => Ok(()),
        }
    }

    fn create(&mut self, title: &Value, description: &Value, priority: &Value) -> Outcome<Value> {
        if !self.current_user.is_true() {
            return Ok(error("User not authenticated. Please log in to create a ticket."));
        }
        if compare(Comparison::Less, priority, &Value::from(1_i64))?
            || compare(Comparison::Greater, priority, &Value::from(5_i64))?
        {
            return Ok(error("Invalid priority. Priority must be between 1 and 5."));
        }
        let ticket = Value::record([
            ("id", self.ticket_counter.clone()),
            ("title", title.clone()),
            ("description", description.clone()),
            ("status", Value::from("Open")),
            ("priority", priority.clone()),
            ("created_by", self.current_user.clone()),
        ]);
        append(&mut self.ticket_queue, ticket.clone())?;
        self.ticket_counter =
            augmented(BinaryOperator::Add, &self.ticket_counter, &Value::from(1_i64))?;
        Ok(ticket)
    }

    fn finish(
        &mut self,
        ticket_id: &Value,
        status: &str,
        resolution: Option<&Value>,
    ) -> Outcome<Value> {
        let Some(at) = self.find(ticket_id)? else { return no_ticket(ticket_id) };
        let word = lower(status);
        let before = subscript(&self.tickets()?[at], &Value::from("status"))?;
        if equal(&before, &Value::from(status)) {
            let id = to_str(ticket_id)?;
            return Ok(error(format!("Ticket with ID {id} is already {word}.")));
        }
        self.set(at, Value::from("status"), Value::from(status))?;
        if let Some(resolution) = resolution {
            self.set(at, Value::from("resolution"), resolution.clone())?;
        }
        let told = format!("Ticket {} has been {word} successfully.", to_str(ticket_id)?);
        Ok(Value::record([("status", Value::from(told))]))
    }

    fn edit(&mut self, ticket_id: &Value, updates: &Value) -> Outcome<Value> {
        let Some(at) = self.find(ticket_id)? else { return no_ticket(ticket_id) };
        let entries = as_dict(updates, "keys")?;
        let known = ["title", "description", "status", "priority"];
        let mut unknown = Vec::new();
        for key in entries.keys() {
            if !key.as_str().is_some_and(|key| known.contains(&key)) {
                unknown.push(key.clone());
            }
        }
        if !unknown.is_empty() {
            let fields = spar_python::join(", ", &Value::list(unknown))?;
            return Ok(error(format!("Invalid fields for update: {fields}")));
        }
        for (key, value) in entries.iter() {
            if !matches!(value, Value::None) {
                self.set(at, key.clone(), value.clone())?;
            }
        }
        let told = format!("Ticket {} has been updated successfully.", to_str(ticket_id)?);
        Ok(Value::record([("status", Value::from(told))]))
    }

    fn of_user(&self, status: &Value) -> Outcome<Value> {
        if !self.current_user.is_true() {
            return Ok(Value::list([error(
                "User not authenticated. Please log in to view tickets.",
            )]));
        }
        let mut own = Vec::new();
        for ticket in self.tickets()? {
            if equal(&subscript(&ticket, &Value::from("created_by"))?, &self.current_user) {
                own.push(ticket);
            }
        }
        if status.is_true() {
            let mut kept = Vec::new();
            for ticket in own {
                let own_status = subscript(&ticket, &Value::from("status"))?;
                let own_status = lower(text_of(&own_status, "lower")?);
                if own_status == lower(text_of(status, "lower")?) {
                    kept.push(ticket);
                }
            }
            own = kept;
        }
        Ok(Value::list(own))
    }
}

fn no_ticket(ticket_id: &Value) -> Outcome<Value> {
    Ok(error(format!("Ticket with ID {} not found.", to_str(ticket_id)?)))
}
