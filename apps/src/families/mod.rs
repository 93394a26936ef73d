//! Families of tasks, from one call to several applications.

mod across;
mod direct;
mod many;
mod single;
mod unseen;

use serde_json::Value;

use crate::Draft;
use crate::calendar::Event;
use crate::draft::Person;
use crate::facts::{Answer, Fact};
use crate::files::{self, File};
use crate::goal::Required;
use crate::mail::Message;
use crate::problem::Problem;
use crate::table;

/// A family of tasks.
#[derive(Debug)]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// How hard it is: 1, everything that is needed is in the instruction; 2, something has to be looked up in the same
    /// application; 3, two applications; 4, several steps over two or more.
    pub level: u8,
    /// Whether it is kept for tests.
    pub is_unseen: bool,
    /// Makes a task in a world.
    pub(crate) make: fn(&mut Draft) -> Problem,
}

impl Family {
    pub(crate) const fn new(
        name: &'static str,
        level: u8,
        make: fn(&mut Draft) -> Problem,
    ) -> Self {
        Self { name, level, is_unseen: false, make }
    }

    pub(crate) const fn unseen(
        name: &'static str,
        level: u8,
        make: fn(&mut Draft) -> Problem,
    ) -> Self {
        Self { name, level, is_unseen: true, make }
    }
}

/// All families.
pub static FAMILIES: &[Family] = &[
    Family::new("send-money", 1, direct::send_money),
    Family::new("request-money", 1, direct::request_money),
    Family::new("ask-balance", 1, direct::ask_balance),
    Family::new("star-mail", 1, direct::star_mail),
    Family::new("file-mail", 1, direct::file_mail),
    Family::new("send-mail", 1, direct::send_mail),
    Family::new("make-event", 1, direct::make_event),
    Family::new("move-event", 1, direct::move_event),
    Family::new("write-file", 1, direct::write_file),
    Family::new("delete-file", 1, direct::delete_file),
    Family::new("add-contact", 1, direct::add_contact),
    Family::new("change-phone", 1, direct::change_phone),
    Family::new("pay-request", 2, single::pay_request),
    Family::new("decline-requests", 2, single::decline_requests),
    Family::new("total-sent", 2, single::total_sent),
    Family::new("move-titled-event", 2, single::move_titled_event),
    Family::new("who-comes", 2, single::who_comes),
    Family::new("earliest-free", 2, single::earliest_free),
    Family::new("clear-day", 2, single::clear_day),
    Family::new("star-sender", 2, single::star_sender),
    Family::new("count-mails", 2, single::count_mails),
    Family::new("file-subject", 2, single::file_subject),
    Family::new("forward-subject", 2, single::forward_subject),
    Family::new("join-group", 2, single::join_group),
    Family::new("ask-phone", 2, single::ask_phone),
    Family::new("append-line", 2, single::append_line),
    Family::new("file-away", 2, single::file_away),
    Family::new("reply-date", 3, across::reply_date),
    Family::new("reply-phone", 3, across::reply_phone),
    Family::new("pay-by-name", 3, across::pay_by_name),
    Family::new("pay-invoice", 3, across::pay_invoice),
    Family::new("event-from-mail", 3, across::event_from_mail),
    Family::new("save-attachment", 3, across::save_attachment),
    Family::new("share-by-name", 3, across::share_by_name),
    Family::new("mail-file", 3, across::mail_file),
    Family::new("attendee-file", 3, across::attendee_file),
    Family::new("invite-group", 4, many::invite_group),
    Family::new("files-named-in-mail", 4, many::files_named_in_mail),
    Family::new("split-bill", 4, many::split_bill),
    Family::new("reschedule", 4, many::reschedule),
    Family::unseen("remind-day", 2, unseen::remind_day),
    Family::unseen("cancel-requests", 2, unseen::cancel_requests),
    Family::unseen("forward-to-group", 3, unseen::forward_to_group),
    Family::unseen("pay-attendees", 3, unseen::pay_attendees),
    Family::unseen("total-to-file", 3, unseen::total_to_file),
    Family::unseen("contact-from-mail", 3, unseen::contact_from_mail),
    Family::unseen("move-by-mail", 3, unseen::move_by_mail),
    Family::unseen("share-with-attendees", 4, unseen::share_with_attendees),
    Family::unseen("split-file-bill", 4, unseen::split_file_bill),
    Family::unseen("schedule-by-mail", 4, unseen::schedule_by_mail),
];

/// `2031-03-14 09:30` of a day and minutes.
fn moment(date: crate::moment::Date, minutes: i64) -> String {
    date.at(minutes).to_string()
}

/// A number of an amount, as it stands in arguments.
fn amount(cents: i64) -> f64 {
    cents as f64 / 100.0
}

fn money(cents: i64) -> String {
    crate::arguments::money(cents)
}

fn words(text: &str) -> Fact {
    Fact::Words(text.to_owned())
}

/// A payment that went to somebody.
fn sent(to: &Person, cents: i64, note: &str) -> Required {
    Required::made("payment")
        .is("direction", "sent")
        .is("with", to.email.as_str())
        .is("cents", cents)
        .reads("note", note)
}

/// A request of somebody.
fn asked(from: &Person, cents: i64, note: &str) -> Required {
    Required::made("request")
        .is("direction", "outgoing")
        .is("with", from.email.as_str())
        .is("cents", cents)
        .is("status", "open")
        .reads("note", note)
}

/// A mail that went to these addresses, in whatever words until they are told.
fn mailed(draft: &Draft, to: &[&str]) -> Required {
    let mut to: Vec<&str> = to.to_vec();
    to.sort_unstable();
    Required::made("mail")
        .is("folder", "sent")
        .is("from", draft.world.address.as_str())
        .is("to", to)
}

/// An answer to a mail, to its sender alone.
fn replied(draft: &Draft, mail: &Found<Message>, facts: Vec<Fact>) -> Required {
    mailed(draft, &[&mail.record.from])
        .is("about", mail.id.as_str())
        .any("subject")
        .says("body", facts)
}

/// An event whose attendees are these.
fn attended_by(id: &str, attendees: impl IntoIterator<Item = String>) -> Required {
    let attendees: std::collections::BTreeSet<String> = attendees.into_iter().collect();
    Required::changed("event", id).is("attendees", attendees.into_iter().collect::<Vec<_>>())
}

/// A file that is in another place, as it was.
fn moved(from: &str, to: &str, file: &File) -> [Required; 2] {
    let shared: Vec<Value> =
        file.shared_with.iter().map(|email| Value::from(email.as_str())).collect();
    let there =
        Required::made("file").key(to).is("text", file.text.as_str()).is("shared_with", shared);
    [Required::removed("file", from), there]
}

fn names(people: &[Person]) -> Answer {
    Answer::Names(people.iter().map(|person| person.name.clone()).collect())
}

/// A record that is there already, with its id or path.
#[derive(Debug, Clone)]
struct Found<T> {
    id: String,
    record: T,
}

/// One of the mails in the inbox, with its sender.
fn some_mail(draft: &mut Draft) -> (Found<Message>, Person) {
    let mails: Vec<Found<Message>> = draft
        .world
        .mail
        .mails
        .iter()
        .map(|(key, mail)| Found { id: table::id('m', *key), record: mail.clone() })
        .collect();
    let mail = draft.pick(&mails);
    let from = person_of(draft, &mail.record.from);
    (mail, from)
}

/// One of the events.
fn some_event(draft: &mut Draft) -> Found<Event> {
    let events: Vec<Found<Event>> = draft
        .world
        .calendar
        .events
        .iter()
        .map(|(key, event)| Found { id: table::id('e', *key), record: event.clone() })
        .collect();
    draft.pick(&events)
}

/// One of the files.
fn some_file(draft: &mut Draft) -> Found<File> {
    let files: Vec<Found<File>> = draft
        .world
        .files
        .files
        .iter()
        .map(|(path, file)| Found { id: path.clone(), record: file.clone() })
        .collect();
    draft.pick(&files)
}

impl Found<File> {
    fn name(&self) -> &str {
        files::name_of(&self.id)
    }
}

fn some_person(draft: &mut Draft) -> Person {
    let people = draft.people.clone();
    draft.pick(&people)
}

fn person_of(draft: &Draft, email: &str) -> Person {
    let found = draft.people.iter().find(|person| person.email == email);
    found.expect("mails and events are of contacts").clone()
}

/// Everybody who comes to an event.
fn attendees(draft: &Draft, event: &Event) -> Vec<Person> {
    event.attendees.iter().map(|email| person_of(draft, email)).collect()
}

/// One of the groups with all who are in it.
fn some_group(draft: &mut Draft) -> (String, Vec<Person>) {
    let group = draft.pick(crate::words::GROUPS).to_owned();
    let people = draft.world.contacts.people.iter();
    let emails: Vec<String> = people
        .filter(|(_, it)| it.groups.contains(&group))
        .map(|(_, it)| it.email.clone())
        .collect();
    let members = emails.iter().map(|email| person_of(draft, email)).collect();
    (group, members)
}

/// A folder of files that is not the one a file is in.
fn other_folder(draft: &mut Draft, path: &str) -> String {
    draft.until(|draft| {
        let folder = format!("/{}", draft.pick(crate::words::FOLDERS));
        (!path.starts_with(&format!("{folder}/"))).then_some(folder)
    })
}

#[cfg(test)]
mod tests;
