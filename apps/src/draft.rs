//! A world that is being made: people, and what there is in their applications that no task is about.

use std::collections::BTreeSet;

use rand::RngExt;
use rand::seq::{IndexedRandom, SliceRandom};
use rand_chacha::ChaCha8Rng;
use spar_core::Seed;

use crate::World;
use crate::calendar::Event;
use crate::contacts::Contact;
use crate::files::{File, Folder};
use crate::mail::{Attachment, Message};
use crate::moment::{Date, Moment};
use crate::payments::{Payment, Request, Scheduled};
use crate::words::{
    CITIES, FILE_NAMES, FIRST_NAMES, FOLDERS, GROUPS, LAST_NAMES, NOTES, PLACES, SUBJECTS, TITLES,
};

const PEOPLE: usize = 12;
const EVENTS: usize = 12;
const MAILS: usize = 16;
const FILES: usize = 12;
const PAYMENTS: usize = 12;

/// A world that is being made.
///
/// No two people have one name, no two events one title, no two mails one sender and subject; first names are shared, so that
/// those who guess err.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) world: World,
    pub(crate) rng: ChaCha8Rng,
    /// The contacts, in an order of chance.
    pub(crate) people: Vec<Person>,
    /// Titles, subjects and names that nothing has yet.
    titles: Vec<&'static str>,
    subjects: Vec<&'static str>,
    file_names: Vec<&'static str>,
}

/// A contact.
#[derive(Debug, Clone)]
pub(crate) struct Person {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) email: String,
    pub(crate) phone: String,
}

impl Draft {
    pub(crate) fn new(seed: Seed) -> Self {
        let mut rng = seed.rng();
        let today = Date::new(2031, rng.random_range(1..=12), rng.random_range(1..=28));
        let today = today.expect("every month has 28 days");
        let now = today.at(8 * 60 + rng.random_range(0..50));
        let shuffled = |list: &[&'static str], rng: &mut ChaCha8Rng| {
            let mut list = list.to_vec();
            list.shuffle(rng);
            list
        };
        let titles = shuffled(TITLES, &mut rng);
        let subjects = shuffled(SUBJECTS, &mut rng);
        let file_names = shuffled(FILE_NAMES, &mut rng);
        let mut names = BTreeSet::new();
        let first_names = shuffled(FIRST_NAMES, &mut rng);
        // Fewer first names than people, so that some are shared.
        let pool = &first_names[..8];
        let mut order = Vec::new();
        while order.len() <= PEOPLE {
            let name = (
                *pool.choose(&mut rng).expect("not empty"),
                *LAST_NAMES.choose(&mut rng).expect("not empty"),
            );
            if names.insert(name) {
                order.push(name);
            }
        }
        let (first, last) = order.pop().expect("one more than people");
        let (owner, address) = (format!("{first} {last}"), address(first, last));
        let world = World::empty(now, &owner, &address);
        let mut draft = Self { world, rng, people: Vec::new(), titles, subjects, file_names };
        for (first, last) in order {
            draft.add_person(first, last);
        }
        draft.add_groups();
        draft.fill();
        draft.people.shuffle(&mut draft.rng);
        draft
    }

    pub(crate) fn finish(self) -> (World, ChaCha8Rng) {
        (self.world, self.rng)
    }

    pub(crate) fn pick<T: Clone>(&mut self, list: &[T]) -> T {
        list.choose(&mut self.rng).expect("a list to pick from is not empty").clone()
    }

    /// A whole number from a range.
    pub(crate) fn number(&mut self, from: i64, to: i64) -> i64 {
        self.rng.random_range(from..=to)
    }

    /// Cents of an amount in steps of half a unit.
    pub(crate) fn cents(&mut self, from: i64, to: i64) -> i64 {
        self.number(from * 2, to * 2) * 50
    }

    pub(crate) fn today(&self) -> Date {
        self.world.now.date()
    }

    /// A day of the next weeks.
    pub(crate) fn day(&mut self) -> Date {
        let days = self.number(1, 20);
        self.today().plus_days(days)
    }

    /// A quarter of an hour of a working day.
    pub(crate) fn quarter(&mut self) -> i64 {
        self.number(9 * 4, 17 * 4) * 15
    }

    pub(crate) fn title(&mut self) -> String {
        self.titles.pop().expect("more titles than events").to_owned()
    }

    pub(crate) fn subject(&mut self) -> String {
        self.subjects.pop().expect("more subjects than mails").to_owned()
    }

    pub(crate) fn file_name(&mut self) -> String {
        self.file_names.pop().expect("more names than files").to_owned()
    }

    pub(crate) fn note(&mut self) -> String {
        self.pick(NOTES).to_owned()
    }

    pub(crate) fn place(&mut self) -> String {
        self.pick(PLACES).to_owned()
    }

    pub(crate) fn city(&mut self) -> String {
        self.pick(CITIES).to_owned()
    }

    pub(crate) fn phone(&mut self) -> String {
        format!("555-{:04}", self.number(1_000, 9_999))
    }

    /// A person who is no contact.
    pub(crate) fn stranger(&mut self) -> (String, String) {
        self.until(|draft| {
            let (first, last) = (draft.pick(FIRST_NAMES), draft.pick(LAST_NAMES));
            let name = format!("{first} {last}");
            let is_new = draft.people.iter().all(|person| person.name != name);
            (name != draft.world.owner && is_new).then(|| (name, address(first, last)))
        })
    }

    /// Draws until something fits.
    ///
    /// # Panics
    ///
    /// When nothing of ten thousand draws does: the lists that are drawn from leave room for what is asked of them.
    pub(crate) fn until<T>(&mut self, mut draw: impl FnMut(&mut Self) -> Option<T>) -> T {
        let found = (0..10_000).find_map(|_| draw(self));
        found.expect("the lists leave room for what is asked of them")
    }

    /// Whoever shares the first name of a person, else somebody else.
    pub(crate) fn lookalike(&self, person: &Person) -> Person {
        let first = |name: &str| name.split(' ').next().unwrap_or_default().to_owned();
        let others = || self.people.iter().filter(|other| other.id != person.id);
        let alike = others().find(|other| first(&other.name) == first(&person.name));
        alike.or_else(|| others().next()).expect("there are several people").clone()
    }

    fn add_person(&mut self, first: &str, last: &str) {
        let contact = Contact {
            name: format!("{first} {last}"),
            email: address(first, last),
            phone: self.phone(),
            city: self.city(),
            groups: BTreeSet::new(),
        };
        let (name, email, phone) =
            (contact.name.clone(), contact.email.clone(), contact.phone.clone());
        let key = self.world.contacts.people.add(contact).expect("there is room");
        self.people.push(Person { id: crate::table::id('c', key), name, email, phone });
    }

    fn add_groups(&mut self) {
        let keys: Vec<u32> = self.world.contacts.people.iter().map(|(key, _)| *key).collect();
        for group in GROUPS {
            let count = self.number(2, 3) as usize;
            let members: Vec<u32> = keys.sample(&mut self.rng, count).copied().collect();
            for key in members {
                let contact =
                    self.world.contacts.people.get_mut(&key).expect("a key that is there");
                contact.groups.insert((*group).to_owned());
            }
        }
    }

    /// Puts in what tasks are not about, some of which they choose from.
    fn fill(&mut self) {
        for folder in FOLDERS {
            let folder = format!("/{folder}");
            self.world.files.folders.insert(folder, Folder {}).expect("there is room");
        }
        for _ in 0..FILES {
            let (folder, name) = (self.pick(FOLDERS), self.file_name());
            let text = format!("{} in {}", self.note(), self.city());
            self.add_file(&format!("/{folder}/{name}"), &text);
        }
        for _ in 0..EVENTS {
            let (title, count) = (self.title(), self.number(1, 3) as usize);
            let people = self.some_people(count);
            self.add_event(&title, &people);
        }
        for number in 0..MAILS {
            let (from, subject) = (self.pick(&self.people.clone()), self.subject());
            let body = format!("Hello, this is about {}. See you in {}.", self.note(), self.city());
            let key = self.add_mail(&from.email, &subject, &body, &[]);
            let number_of_mail = crate::table::key('m', "a mail", &key).expect("its own id");
            let mail = self.world.mail.mails.get_mut(&number_of_mail).expect("just added");
            mail.read = number % 4 != 0;
        }
        self.world.payments.opening_cents = self.number(4_000, 9_000) * 100;
        for _ in 0..PAYMENTS {
            let with = self.pick(&self.people.clone());
            let (cents, note) = (self.cents(5, 90), self.note());
            let direction = if self.number(0, 1) == 0 { "sent" } else { "received" };
            self.add_payment(direction, &with, cents, &note);
        }
        for direction in ["incoming", "outgoing"] {
            let with = self.pick(&self.people.clone());
            let (cents, note) = (self.cents(5, 60), self.note());
            self.add_request(direction, &with, cents, &note);
        }
        let (with, cents, note, on) =
            (self.pick(&self.people.clone()), self.cents(5, 60), self.note(), self.day());
        let scheduled = Scheduled { with: with.email, cents, note, on };
        self.world.payments.scheduled.add(scheduled).expect("there is room");
    }

    /// Several people, each once.
    pub(crate) fn some_people(&mut self, count: usize) -> Vec<Person> {
        self.people.sample(&mut self.rng, count).cloned().collect()
    }

    /// Puts in an event at a time at which nothing else is; the attendees are not told the owner.
    pub(crate) fn add_event(&mut self, title: &str, attendees: &[Person]) {
        let (start, end) = self.until(|draft| {
            let lasts = draft.pick(&[30, 60, 90]);
            let start = draft.day().at(draft.quarter());
            let end = start.plus_minutes(lasts);
            draft.world.calendar.between(start, end).is_empty().then_some((start, end))
        });
        self.add_event_at(title, attendees, start, end)
    }

    pub(crate) fn add_event_at(
        &mut self,
        title: &str,
        attendees: &[Person],
        start: Moment,
        end: Moment,
    ) {
        let location = self.place();
        let event = Event {
            title: title.to_owned(),
            start,
            end,
            location,
            attendees: attendees.iter().map(|person| person.email.clone()).collect(),
            reminder: 0,
            response: "none".to_owned(),
        };
        self.world.calendar.events.add(event).expect("there is room");
    }

    /// Puts a mail into the inbox; its id.
    pub(crate) fn add_mail(
        &mut self,
        from: &str,
        subject: &str,
        body: &str,
        attachments: &[(&str, &str)],
    ) -> String {
        let before = self.number(10, 14 * 24 * 60);
        let attachments = attachments
            .iter()
            .map(|(name, text)| Attachment { name: (*name).to_owned(), text: (*text).to_owned() });
        let mail = Message {
            folder: "inbox".to_owned(),
            from: from.to_owned(),
            to: BTreeSet::from([self.world.address.clone()]),
            subject: subject.to_owned(),
            body: body.to_owned(),
            at: self.world.now.plus_minutes(-before),
            read: true,
            starred: false,
            about: String::new(),
            attachments: attachments.collect(),
        };
        crate::table::id('m', self.world.mail.mails.add(mail).expect("there is room"))
    }

    pub(crate) fn add_file(&mut self, path: &str, text: &str) {
        let file = File { text: text.to_owned(), shared_with: BTreeSet::new() };
        self.world.files.create(path, file).expect("names are given once");
    }

    pub(crate) fn add_payment(
        &mut self,
        direction: &str,
        with: &Person,
        cents: i64,
        note: &str,
    ) -> String {
        let before = self.number(10, 60 * 24 * 60);
        let payment = Payment {
            direction: direction.to_owned(),
            with: with.email.clone(),
            cents,
            note: note.to_owned(),
            at: self.world.now.plus_minutes(-before),
        };
        crate::table::id('p', self.world.payments.payments.add(payment).expect("there is room"))
    }

    pub(crate) fn add_request(
        &mut self,
        direction: &str,
        with: &Person,
        cents: i64,
        note: &str,
    ) -> String {
        let before = self.number(10, 20 * 24 * 60);
        let request = Request {
            direction: direction.to_owned(),
            with: with.email.clone(),
            cents,
            note: note.to_owned(),
            at: self.world.now.plus_minutes(-before),
            status: "open".to_owned(),
        };
        crate::table::id('r', self.world.payments.requests.add(request).expect("there is room"))
    }
}

fn address(first: &str, last: &str) -> String {
    format!("{}.{}@post.example", first.to_lowercase(), last.to_lowercase())
}
