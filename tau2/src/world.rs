//! The world of one episode: its databases, and what calls make of them.

use std::sync::Arc;

use serde_json::Map;
use spar_python::{Exception, ExceptionKind, Outcome, Value, from_json};

use crate::database::Database;
use crate::domain::{Domain, DomainName, Requestor};
use crate::reply::Reply;
use crate::signature::{Signature, ToolKind};
use crate::task::{Answered, Assertion, Called, FunctionCall, InitialState, Message};
use crate::telecom::sync::bring_in_step;
use crate::telecom::{BillIds, Vpn};
use crate::{airline, mock, retail, telecom};

/// The beginning of a task's episodes, set up once: each of their worlds is a copy of it.
#[derive(Debug, Clone)]
pub struct Beginning {
    world: World,
    /// What it was made of; absent where nothing in it follows from the stream of an episode.
    state: Option<InitialState>,
}

impl Beginning {
    /// Sets up the world that a task begins with.
    ///
    /// # Errors
    ///
    /// What [`World::initialise`] raises.
    pub fn new(domain: Arc<Domain>, state: Option<&InitialState>, is_solo: bool) -> Outcome<Self> {
        let mut world = World::new(domain, is_solo, 0);
        world.initialise(state)?;
        let state = state.filter(|_| world.bill_ids.has_drawn()).cloned();
        Ok(Self { world, state })
    }

    /// The world that an episode begins with, whose random ids follow from `stream`. Costs a few counts, or setting it up
    /// once more in the rare task at whose beginning such an id is drawn already.
    ///
    /// # Errors
    ///
    /// What [`World::initialise`] raises where it is set up once more.
    pub fn world(&self, stream: u64) -> Outcome<World> {
        let mut world = self.world.clone();
        world.bill_ids = BillIds::new(stream);
        if self.state.is_some() {
            world = World::new(world.domain, world.is_solo, stream);
            world.initialise(self.state.as_ref())?;
        }
        Ok(world)
    }
}

/// The world of one episode. A clone is a fork: it shares everything until one of the two changes it.
#[derive(Debug, Clone)]
pub struct World {
    domain: Arc<Domain>,
    is_solo: bool,
    /// The databases of agent and user; one database for both once data were merged into it.
    databases: [Option<Database>; 2],
    shared: Option<Requestor>,
    vpn: Vpn,
    bill_ids: BillIds,
}

impl World {
    /// The world as the domain has it at first.
    ///
    /// Ids that the reference draws at random follow from `stream`: worlds of other streams have others.
    pub fn new(domain: Arc<Domain>, is_solo: bool, stream: u64) -> Self {
        let databases = domain.in_step.clone();
        let (shared, vpn, bill_ids) = (None, Vpn::default(), BillIds::new(stream));
        Self { domain, is_solo, databases, shared, vpn, bill_ids }
    }

    /// The domain it is of.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// Whether an agent works alone in it.
    pub fn is_solo(&self) -> bool {
        self.is_solo
    }

    fn name(&self) -> DomainName {
        self.domain.name
    }

    /// Where the database of someone is.
    fn place(&self, requestor: Requestor) -> usize {
        match self.shared.unwrap_or(requestor) {
            Requestor::Assistant => 0,
            Requestor::User => 1,
        }
    }

    /// The database of someone; absent where the domain's user has no tools.
    pub fn database(&self, requestor: Requestor) -> Option<&Database> {
        self.databases[self.place(requestor)].as_ref()
    }

    /// The hash of someone's database, as the reference computes it.
    pub fn hash(&self, requestor: Requestor) -> Option<String> {
        self.database(requestor).map(Database::hash)
    }

    /// Whether agent and user have the same data in both worlds.
    pub fn has_same_data(&self, other: &Self) -> bool {
        [Requestor::Assistant, Requestor::User].into_iter().all(|requestor| {
            match (self.database(requestor), other.database(requestor)) {
                (Some(one), Some(other)) => one.is_same(other),
                (one, other) => one.is_none() == other.is_none(),
            }
        })
    }

    /// Carries out a call as the running program does: the answer, and everything in step with it.
    pub fn respond(&mut self, call: &Called) -> Answered {
        let outcome = self.call(call.requestor, &call.name, &call.arguments);
        let outcome = outcome.and_then(|reply| {
            self.sync()?;
            reply.into_text()
        });
        let (content, error) = match outcome {
            Ok(text) => (text, false),
            Err(error) => (format!("Error: {error}"), true),
        };
        Answered { id: call.id.clone(), content: Some(content), requestor: call.requestor, error }
    }

    /// Carries out a call of a solution: whatever it raises is left at that, and nothing is brought in step.
    pub(crate) fn call_gold(
        &mut self,
        requestor: Requestor,
        name: &str,
        arguments: &Map<String, serde_json::Value>,
    ) {
        let _ = self.call(requestor, name, arguments);
    }

    fn call(
        &mut self,
        requestor: Requestor,
        name: &str,
        arguments: &Map<String, serde_json::Value>,
    ) -> Outcome<Reply> {
        refuse_taken(arguments)?;
        let requestor = match (requestor, self.is_solo) {
            (Requestor::User, true) => {
                let words = "User tool calls are not allowed in solo mode";
                return Err(Exception::value_error(words));
            }
            (Requestor::Assistant, true) if self.name().tool(Requestor::User, name).is_some() => {
                Requestor::User
            }
            (requestor, _) => requestor,
        };
        if requestor == Requestor::User && self.name().user_signatures().is_none() {
            return Err(Exception::value_error("User tools not available"));
        }
        match self.name().tool(requestor, name) {
            Some(tool) => self.carry_out(requestor, tool, arguments),
            None => Err(Exception::value_error(format_args!("Tool '{name}' not found."))),
        }
    }

    /// Calls a function of someone's, tool or not.
    fn function(
        &mut self,
        requestor: Requestor,
        name: &str,
        arguments: &Map<String, serde_json::Value>,
    ) -> Outcome<Reply> {
        let domain = self.name();
        let signatures = match requestor {
            Requestor::Assistant => Some(domain.signatures()),
            Requestor::User => domain.user_signatures(),
        };
        let Some(signatures) = signatures else {
            return Err(Exception::no_attribute("NoneType", name));
        };
        match signatures.iter().find(|signature| signature.name == name) {
            Some(signature) => self.carry_out(requestor, signature, arguments),
            None => Err(Exception::no_attribute(domain.class(requestor), name)),
        }
    }

    fn carry_out(
        &mut self,
        requestor: Requestor,
        signature: &'static Signature,
        arguments: &Map<String, serde_json::Value>,
    ) -> Outcome<Reply> {
        let (domain, name) = (self.name(), signature.name);
        let bound = signature.bind(domain.class(requestor), arguments)?;
        let place = self.place(requestor);
        let Some(db) = &mut self.databases[place] else {
            return Err(Exception::no_attribute("NoneType", name));
        };
        match (domain, requestor) {
            (DomainName::Mock, Requestor::Assistant) => mock::tools::call(db, name, &bound),
            (DomainName::Mock, Requestor::User) => mock::user_tools::call(db, name, &bound),
            (DomainName::Airline, _) => airline::tools::call(db, name, &bound),
            (DomainName::Retail, _) => retail::tools::call(db, name, &bound),
            (DomainName::Telecom, Requestor::Assistant) => {
                telecom::tools::call(db, &mut self.bill_ids, name, &bound)
            }
            (DomainName::Telecom, Requestor::User) => {
                telecom::user_tools::call(db, &mut self.vpn, signature, &bound)
            }
        }
    }

    /// Brings what agent and user have in step.
    fn sync(&mut self) -> Outcome<()> {
        if self.name() != DomainName::Telecom {
            return Ok(());
        }
        match (self.shared, &mut self.databases) {
            (None, [Some(company), Some(user)]) => bring_in_step(company, user),
            // One database for both lacks what the other had.
            (Some(_), _) => self.database(Requestor::User).map_or(Ok(()), |database| {
                let around = database.field("surroundings")?;
                match crate::object::attribute(around, "phone_number")? {
                    Value::None => Ok(()),
                    _ => database.field("lines").map(|_| ()),
                }
            }),
            _ => Ok(()),
        }
    }

    /// Sets the world up as a task has it at first, and plays what was said and called before.
    ///
    /// # Errors
    ///
    /// What a function raises, or a call that was answered otherwise before.
    pub fn initialise(&mut self, state: Option<&InitialState>) -> Outcome<()> {
        let Some(state) = state else { return self.sync() };
        self.prepare(state)?;
        self.replay(state.message_history.as_deref().unwrap_or_default())
    }

    /// Merges the data and calls the functions of an initial state.
    ///
    /// # Errors
    ///
    /// What a function raises, or data that are none.
    pub fn prepare(&mut self, state: &InitialState) -> Outcome<()> {
        if let Some(data) = &state.initialization_data {
            let parts =
                [(Requestor::Assistant, &data.agent_data), (Requestor::User, &data.user_data)];
            for (requestor, update) in parts {
                let Some(update) = update.as_ref().filter(|update| !update.is_null()) else {
                    continue;
                };
                let place = self.place(requestor);
                let Some(database) = &self.databases[place] else {
                    return Err(Exception::no_attribute("NoneType", "update_db"));
                };
                self.databases[place] = Some(database.merged(&from_json(update))?);
                self.vpn.detach();
                // From here on both look at the one database.
                if self.databases[1].is_some() {
                    self.shared =
                        Some(if place == 0 { Requestor::Assistant } else { Requestor::User });
                }
            }
        }
        for call in state.initialization_actions.iter().flatten() {
            self.run(call)?;
        }
        Ok(())
    }

    fn run(&mut self, call: &FunctionCall) -> Outcome<Reply> {
        let reply = self.function(call.env_type, &call.func_name, &call.arguments)?;
        self.sync()?;
        Ok(reply)
    }

    /// Whether an assertion holds.
    ///
    /// # Errors
    ///
    /// What its function raises, and a `ValueError` where that finds neither true nor false.
    pub fn holds(&mut self, assertion: &Assertion) -> Outcome<bool> {
        match self.run(&assertion.call)? {
            Reply::Truth(truth) => Ok(truth == assertion.assert_value),
            other => Err(Exception::value_error(format_args!(
                "Function {} returned <class '{}'> instead of bool",
                assertion.call.func_name,
                other.type_name()
            ))),
        }
    }

    /// Plays the calls of a conversation again that change something, and makes sure that they are answered as before.
    ///
    /// # Errors
    ///
    /// A `ValueError` where an answer is missing, or differs.
    pub fn replay(&mut self, messages: &[Message]) -> Outcome<()> {
        let wrong = |words: &str| Err(Exception::value_error(words));
        let mut messages = messages.iter();
        while let Some(message) = messages.next() {
            let said = match message {
                Message::Tool(_) => {
                    return wrong(
                        "Tool message not expected. Tool messages should always follow a tool call.",
                    );
                }
                Message::System(_) => continue,
                Message::Assistant(said) | Message::User(said) => said,
            };
            for call in said.calls() {
                match messages.next() {
                    Some(Message::Tool(answered)) if answered.id == call.id => {
                        self.replay_call(call, answered)?;
                    }
                    Some(Message::Tool(answered)) => {
                        let (one, other) = (&call.id, &answered.id);
                        return wrong(&format!("Tool call id mismatch. Got {one} and {other}"));
                    }
                    Some(_) => return wrong("Tool message expected."),
                    None => return wrong("Tool message expected. Got None."),
                }
            }
        }
        self.sync()
    }

    fn replay_call(&mut self, call: &Called, answered: &Answered) -> Outcome<()> {
        let tools = [Requestor::Assistant, Requestor::User]
            .map(|requestor| self.name().tool(requestor, &call.name));
        // What no one has changed nothing, and neither did what only looks.
        let Some(tool) = tools.into_iter().flatten().next() else { return Ok(()) };
        if tool.kind != ToolKind::Write {
            return Ok(());
        }
        let response = self.respond(call);
        if is_same_content(response.content.as_deref(), answered.content.as_deref()) {
            return Ok(());
        }
        Err(Exception::new(
            ExceptionKind::Value,
            format_args!(
                "Tool call `{}` returned {:?} where {:?} was recorded",
                call.name,
                response.content.unwrap_or_default(),
                answered.content.as_deref().unwrap_or_default()
            ),
        ))
    }
}

/// Refuses names of arguments that the reference's own functions take on the way.
fn refuse_taken(arguments: &Map<String, serde_json::Value>) -> Outcome<()> {
    let mut taken = None;
    for name in arguments.keys() {
        match name.as_str() {
            "requestor" => {
                return Err(Exception::type_error(
                    "tau2.environment.environment.Environment.make_tool_call() got multiple values for keyword argument 'requestor'",
                ));
            }
            "self" | "tool_name" => taken = taken.or(Some(name)),
            _ => {}
        }
    }
    match taken {
        None => Ok(()),
        Some(taken) => Err(Exception::type_error(format_args!(
            "Environment.make_tool_call() got multiple values for argument '{taken}'"
        ))),
    }
}

/// Whether two answers are the same JSON, or the same text where they are none.
fn is_same_content(one: Option<&str>, other: Option<&str>) -> bool {
    if one == other {
        return true;
    }
    let read = |text: Option<&str>| {
        let text = text.unwrap_or_default();
        match serde_json::from_str::<serde_json::Value>(text) {
            Ok(value) => from_json(&value),
            Err(_) => Value::from(text),
        }
    };
    spar_python::equal(&read(one), &read(other))
}
