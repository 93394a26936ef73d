//! The state of all applications.

use crate::calendar::Calendar;
use crate::contacts::Contacts;
use crate::files::Files;
use crate::mail::Mail;
use crate::moment::Moment;
use crate::payments::Payments;

/// The state of all applications, as one person has them. A clone shares all records.
#[derive(Debug, Clone)]
pub struct World {
    /// What time it is; it stands while an episode lasts.
    pub(crate) now: Moment,
    /// The name of whose applications they are.
    pub(crate) owner: String,
    /// The address of that person.
    pub(crate) address: String,
    pub(crate) contacts: Contacts,
    pub(crate) mail: Mail,
    pub(crate) calendar: Calendar,
    pub(crate) files: Files,
    pub(crate) payments: Payments,
}

impl World {
    /// A world without any records.
    pub(crate) fn empty(now: Moment, owner: &str, address: &str) -> Self {
        Self {
            now,
            owner: owner.to_owned(),
            address: address.to_owned(),
            contacts: Contacts::default(),
            mail: Mail::default(),
            calendar: Calendar::default(),
            files: Files::default(),
            payments: Payments::default(),
        }
    }

    /// Records of all tables.
    pub fn num_records(&self) -> usize {
        self.contacts.people.len()
            + self.mail.mails.len()
            + self.calendar.events.len()
            + self.files.num_records()
            + self.payments.num_records()
    }
}
