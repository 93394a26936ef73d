//! The applications.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum App {
    /// People, their addresses, telephones and groups.
    Contacts,
    /// Mails in folders.
    Mail,
    /// Events with attendees.
    Calendar,
    /// Files in folders, shared or not.
    Files,
    /// Money that is sent, requested and scheduled.
    Payments,
    /// What every task has: the time, and the end.
    Phone,
}

impl App {
    /// All applications.
    pub const ALL: [Self; 6] =
        [Self::Contacts, Self::Mail, Self::Calendar, Self::Files, Self::Payments, Self::Phone];

    /// What its tools' names begin with.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Self::Contacts => "contacts_",
            Self::Mail => "mail_",
            Self::Calendar => "calendar_",
            Self::Files => "files_",
            Self::Payments => "payments_",
            Self::Phone => "",
        }
    }
}

impl fmt::Display for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.prefix().trim_end_matches('_');
        f.write_str(if name.is_empty() { "phone" } else { name })
    }
}
