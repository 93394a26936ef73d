//! The domains: their data and policies, as a release's folder has them.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use spar_core::ToolSpec;
use spar_python::{Value, from_json};
use toml::de::{DeTable, DeValue};

use crate::database::Database;
use crate::error::Tau2Error;
use crate::schema::Model;
use crate::signature::{Signature, ToolKind};
use crate::{airline, mock, retail, telecom};

/// Files of a domain beyond this many bytes are not read.
const MOST_BYTES: u64 = 256 << 20;

/// The domains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DomainName {
    /// Users, their tasks, an inbox: small, for tests.
    Mock,
    /// Flights and reservations.
    Airline,
    /// A shop and its orders.
    Retail,
    /// Lines, bills, and the phone of the user.
    Telecom,
}

/// Who calls a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Requestor {
    /// The agent.
    Assistant,
    /// The user.
    User,
}

/// Which manual of telecom's the agent follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyKind {
    /// A manual in prose. The default.
    #[default]
    Manual,
    /// Workflows, step by step.
    Workflow,
}

/// A domain: what all its episodes share and none changes.
#[derive(Debug)]
pub struct Domain {
    /// Which one it is.
    pub name: DomainName,
    /// The database of the agent, as it is at first.
    pub database: Database,
    /// The database of the user, where the user has tools.
    pub user_database: Option<Database>,
    /// How the agent's tools are offered.
    pub tools: Arc<[ToolSpec]>,
    /// How the user's tools are offered.
    pub user_tools: Arc<[ToolSpec]>,
    /// The databases of agent and user, brought in step with each other: what every world begins with.
    pub(crate) in_step: [Option<Database>; 2],
    policies: Policies,
}

/// The texts of a domain's policy files; absent where a folder lacks one.
#[derive(Debug, Default)]
struct Policies {
    main: String,
    solo: Option<String>,
    manual: Option<String>,
    workflow: Option<String>,
    workflow_solo: Option<String>,
}

impl DomainName {
    /// All domains.
    pub const ALL: [Self; 4] = [Self::Mock, Self::Airline, Self::Retail, Self::Telecom];

    /// The name, as folders and files have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mock => "mock",
            Self::Airline => "airline",
            Self::Retail => "retail",
            Self::Telecom => "telecom",
        }
    }

    /// The agent's tools and hidden functions.
    pub(crate) fn signatures(self) -> &'static [Signature] {
        match self {
            Self::Mock => mock::tools::SIGNATURES,
            Self::Airline => airline::tools::SIGNATURES,
            Self::Retail => retail::tools::SIGNATURES,
            Self::Telecom => telecom::tools::SIGNATURES,
        }
    }

    /// The user's tools and hidden functions; absent where the user has none.
    pub(crate) fn user_signatures(self) -> Option<&'static [Signature]> {
        match self {
            Self::Mock => Some(mock::user_tools::SIGNATURES),
            Self::Telecom => Some(telecom::user_tools::SIGNATURES),
            Self::Airline | Self::Retail => None,
        }
    }

    /// The classes that error texts name.
    pub(crate) fn class(self, requestor: Requestor) -> &'static str {
        match (self, requestor) {
            (Self::Mock, Requestor::Assistant) => "MockTools",
            (Self::Mock, Requestor::User) => "MockUserTools",
            (Self::Airline, _) => "AirlineTools",
            (Self::Retail, _) => "RetailTools",
            (Self::Telecom, Requestor::Assistant) => "TelecomTools",
            (Self::Telecom, Requestor::User) => "TelecomUserTools",
        }
    }

    /// Whether an agent can work on it alone, with the tools of both.
    pub fn has_solo_mode(self) -> bool {
        self.user_signatures().is_some()
    }

    fn models(self) -> (&'static Model, Option<&'static Model>) {
        match self {
            Self::Mock => (&mock::data::DATABASE, Some(&mock::data::USER_DATABASE)),
            Self::Airline => (&airline::data::DATABASE, None),
            Self::Retail => (&retail::data::DATABASE, None),
            Self::Telecom => (&telecom::data::DATABASE, Some(&telecom::device_data::USER_DATABASE)),
        }
    }

    /// The names of the files that its databases are in.
    pub fn database_files(self) -> impl Iterator<Item = &'static str> {
        let (database, user_database) = self.files();
        [Some(database), user_database].into_iter().flatten()
    }

    /// The names of the files of the agent's and the user's database.
    pub(crate) fn files(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Mock => ("db.json", Some("user_db.json")),
            Self::Airline | Self::Retail => ("db.json", None),
            Self::Telecom => ("db.toml", Some("user_db.toml")),
        }
    }

    /// Finds a tool of the agent's or the user's; hidden functions are none.
    pub(crate) fn tool(self, requestor: Requestor, name: &str) -> Option<&'static Signature> {
        let signatures = match requestor {
            Requestor::Assistant => Some(self.signatures()),
            Requestor::User => self.user_signatures(),
        };
        signatures?.iter().find(|it| it.is_named(name) && it.kind != ToolKind::Hidden)
    }
}

impl fmt::Display for DomainName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for DomainName {
    type Err = Tau2Error;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|domain| domain.as_str() == name);
        found.ok_or_else(|| Tau2Error::UnknownDomain {
            name: name.to_owned(),
            known: Self::ALL.map(|domain| format!("`{domain}`")).join(", "),
        })
    }
}

impl Domain {
    /// Reads a domain from its folder in a release: its databases and policies.
    ///
    /// # Errors
    ///
    /// [`Tau2Error`] with the file that cannot be read, or what is wrong in it.
    pub fn open(name: DomainName, folder: &Path) -> Result<Self, Tau2Error> {
        let (database, user_database) = name.files();
        let database = read_data(&folder.join(database))?;
        let user_database = user_database.map(|file| read_data(&folder.join(file))).transpose()?;
        let optional = |file: &str| match folder.join(file) {
            path if path.is_file() => read_text(&path).map(Some),
            _ => Ok(None),
        };
        let policies = match name {
            DomainName::Telecom => Policies {
                main: read_text(&folder.join("main_policy.md"))?,
                solo: optional("main_policy_solo.md")?,
                manual: optional("tech_support_manual.md")?,
                workflow: optional("tech_support_workflow.md")?,
                workflow_solo: optional("tech_support_workflow_solo.md")?,
            },
            _ => Policies {
                main: read_text(&folder.join("policy.md"))?,
                solo: optional("policy_solo.md")?,
                ..Policies::default()
            },
        };
        Self::build(name, &database, user_database.as_ref(), policies)
            .map_err(|detail| Tau2Error::Data { path: folder.to_owned(), detail })
    }

    /// Makes the domain mock of data and a policy of one's own.
    ///
    /// # Errors
    ///
    /// [`Tau2Error::Data`] with what is wrong in the data.
    pub fn mock(
        database: &serde_json::Value,
        user_database: &serde_json::Value,
        policy: &str,
        solo_policy: &str,
    ) -> Result<Self, Tau2Error> {
        let policies = Policies {
            main: policy.to_owned(),
            solo: Some(solo_policy.to_owned()),
            ..Policies::default()
        };
        let (database, user_database) = (from_json(database), from_json(user_database));
        Self::build(DomainName::Mock, &database, Some(&user_database), policies)
            .map_err(|detail| Tau2Error::Data { path: PathBuf::from("mock"), detail })
    }

    fn build(
        name: DomainName,
        database: &Value,
        user_database: Option<&Value>,
        policies: Policies,
    ) -> Result<Self, String> {
        let (model, user_model) = name.models();
        let database = Database::read(model, database).map_err(|error| error.text)?;
        let user_database = match (user_model, user_database) {
            (Some(model), Some(value)) => {
                Some(Database::read(model, value).map_err(|error| error.text)?)
            }
            _ => None,
        };
        let mut in_step = [Some(database.clone()), user_database.clone()];
        if let (DomainName::Telecom, [Some(company), Some(user)]) = (name, &mut in_step) {
            // Data that do not go together say so at the first call.
            let _ = telecom::sync::bring_in_step(company, user);
        }
        let offered = |signatures: &[Signature]| {
            let tools = signatures.iter().filter(|signature| signature.kind != ToolKind::Hidden);
            tools.map(Signature::spec).collect::<Arc<[ToolSpec]>>()
        };
        Ok(Self {
            name,
            database,
            user_database,
            tools: offered(name.signatures()),
            user_tools: offered(name.user_signatures().unwrap_or_default()),
            in_step,
            policies,
        })
    }

    /// The policy that the agent is given.
    ///
    /// # Errors
    ///
    /// [`Tau2Error::NoSolo`] where the domain has no solo mode, [`Tau2Error::NoPolicy`] where its folder lacks a file.
    pub fn policy(&self, kind: PolicyKind, is_solo: bool) -> Result<String, Tau2Error> {
        if is_solo && !self.name.has_solo_mode() {
            return Err(Tau2Error::NoSolo { domain: self.name });
        }
        let Policies { main, solo, manual, workflow, workflow_solo } = &self.policies;
        let lacking = |file| Tau2Error::NoPolicy { domain: self.name, file };
        if self.name != DomainName::Telecom {
            return match is_solo {
                true => solo.clone().ok_or_else(|| lacking("policy_solo.md")),
                false => Ok(main.clone()),
            };
        }
        let main = match is_solo {
            true => solo.as_ref().ok_or_else(|| lacking("main_policy_solo.md"))?,
            false => main,
        };
        // With the manual, solo mode has the same one.
        let support = match (kind, is_solo) {
            (PolicyKind::Manual, _) => {
                manual.as_ref().ok_or_else(|| lacking("tech_support_manual.md"))?
            }
            (PolicyKind::Workflow, false) => {
                workflow.as_ref().ok_or_else(|| lacking("tech_support_workflow.md"))?
            }
            (PolicyKind::Workflow, true) => {
                workflow_solo.as_ref().ok_or_else(|| lacking("tech_support_workflow_solo.md"))?
            }
        };
        Ok(format!(
            "<main_policy>\n{main}\n</main_policy>\n<tech_support_policy>\n{support}\n</tech_support_policy>"
        ))
    }
}

pub(crate) fn read_text(path: &Path) -> Result<String, Tau2Error> {
    let failed = |source| Tau2Error::Read { path: path.to_owned(), source };
    let bytes = fs::metadata(path).map_err(failed)?.len();
    if bytes > MOST_BYTES {
        return Err(Tau2Error::TooLarge { path: path.to_owned(), bytes, most: MOST_BYTES });
    }
    fs::read_to_string(path).map_err(failed)
}

fn read_data(path: &Path) -> Result<Value, Tau2Error> {
    let text = read_text(path)?;
    let wrong = |detail: String| Tau2Error::Data { path: path.to_owned(), detail };
    if path.extension().is_some_and(|extension| extension == "toml") {
        return from_toml(&text).map_err(|error| wrong(error.to_string()));
    }
    let value: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    Ok(from_json(&value))
}

/// A TOML document, its tables in the order in which they are written.
fn from_toml(text: &str) -> Result<Value, toml::de::Error> {
    let values: toml::Table = toml::from_str(text)?;
    let places = DeTable::parse(text)?;
    Ok(ordered_table(&values, places.get_ref()))
}

fn ordered_table(values: &toml::Table, places: &DeTable<'_>) -> Value {
    let mut keys: Vec<_> = places.iter().collect();
    keys.sort_by_key(|(key, _)| key.span().start);
    Value::dict(keys.into_iter().filter_map(|(key, place)| {
        let key: &str = key.get_ref();
        Some((key, ordered(values.get(key)?, place.get_ref())))
    }))
}

fn ordered(value: &toml::Value, place: &DeValue<'_>) -> Value {
    match (value, place) {
        (toml::Value::Table(table), DeValue::Table(places)) => ordered_table(table, places),
        (toml::Value::Array(items), DeValue::Array(places)) => {
            let items = items.iter().zip(places.iter());
            Value::list(items.map(|(item, place)| ordered(item, place.get_ref())))
        }
        (toml::Value::String(text), _) => Value::from(text.as_str()),
        (toml::Value::Integer(number), _) => Value::from(*number),
        (toml::Value::Float(number), _) => Value::Float(*number),
        (toml::Value::Boolean(truth), _) => Value::Bool(*truth),
        (other, _) => Value::from(other.to_string()),
    }
}
