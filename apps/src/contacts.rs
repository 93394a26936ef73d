//! People, their addresses, telephones and groups.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arguments::{address, has_words, lines, optional_text, text};
use crate::diff::Change;
use crate::table::{self, Table};
use crate::tool::{AppTool, NoArguments, tool};

/// People shown at a time.
const MOST_LISTED: usize = 20;
/// Groups of one person.
const MOST_GROUPS: usize = 20;

/// Somebody who is known.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct Contact {
    pub(crate) name: String,
    pub(crate) email: String,
    pub(crate) phone: String,
    pub(crate) city: String,
    pub(crate) groups: BTreeSet<String>,
}

/// Everybody who is known.
#[derive(Debug, Clone, Default)]
pub(crate) struct Contacts {
    pub(crate) people: Table<u32, Contact>,
}

impl Contact {
    fn line(&self, key: u32) -> String {
        let mut line = format!("{} | {} | {}", table::id('c', key), self.name, self.email);
        for part in [&self.phone, &self.city] {
            if !part.is_empty() {
                line += &format!(" | {part}");
            }
        }
        if !self.groups.is_empty() {
            let groups: Vec<&str> = self.groups.iter().map(String::as_str).collect();
            line += &format!(" | groups: {}", groups.join(", "));
        }
        line
    }
}

impl Contacts {
    pub(crate) fn diff(&self, after: &Self, changes: &mut Vec<Change>) {
        self.people.diff(&after.people, "contact", |key| table::id('c', *key), changes);
    }

    /// The name of whoever has an address, or the address.
    pub(crate) fn name_of<'a>(&'a self, email: &'a str) -> &'a str {
        let found = self.people.iter().find(|(_, contact)| contact.email == email);
        found.map_or(email, |(_, contact)| contact.name.as_str())
    }

    fn find(&mut self, id: &str) -> Result<(u32, &mut Contact), String> {
        let key = table::key('c', "a contact", id)?;
        let contact = self.people.get_mut(&key).ok_or_else(|| {
            format!("There is no contact `c{key}`; `contacts_search` finds their ids.")
        })?;
        Ok((key, contact))
    }

    fn check_free(&self, email: &str) -> Result<(), String> {
        match self.people.iter().find(|(_, contact)| contact.email == email) {
            Some((key, contact)) => {
                Err(format!("{} ({}) has {email} already.", contact.name, table::id('c', *key)))
            }
            None => Ok(()),
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Search {
    /// Words of the name, the address or the city.
    query: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct One {
    /// The id of the contact, such as c3.
    contact: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Add {
    /// First and last name.
    name: String,
    /// Mail address.
    email: String,
    /// Telephone number.
    phone: Option<String>,
    /// City.
    city: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Update {
    /// The id of the contact, such as c3.
    contact: String,
    /// The new name; left out, it stays.
    name: Option<String>,
    /// The new mail address; left out, it stays.
    email: Option<String>,
    /// The new telephone number; left out, it stays.
    phone: Option<String>,
    /// The new city; left out, it stays.
    city: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Group {
    /// The name of the group.
    group: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Member {
    /// The name of the group.
    group: String,
    /// The id of the contact, such as c3.
    contact: String,
}

pub(crate) const TOOLS: &[AppTool] = &[
    tool!("contacts_list", Contacts, "Lists all contacts by name.", NoArguments, |world, _| {
        let people = &world.contacts.people;
        let mut named: Vec<_> = people.iter().collect();
        named.sort_by(|a, b| a.1.name.cmp(&b.1.name));
        let all = named.into_iter().map(|(key, contact)| contact.line(*key)).collect();
        Ok(lines("contact", all, MOST_LISTED))
    }),
    tool!(
        "contacts_search",
        Contacts,
        "Finds contacts by words of name, address or city.",
        Search,
        |world, it| {
            let fits = |contact: &Contact| {
                has_words(
                    &format!("{} {} {}", contact.name, contact.email, contact.city),
                    &it.query,
                )
            };
            let people = world.contacts.people.iter().filter(|(_, contact)| fits(contact));
            let all = people.map(|(key, contact)| contact.line(*key)).collect();
            Ok(lines("contact", all, MOST_LISTED))
        }
    ),
    tool!("contacts_get", Contacts, "Shows a contact.", One, |world, it| {
        let (key, contact) = world.contacts.find(&it.contact)?;
        Ok(contact.line(key))
    }),
    tool!("contacts_add", Contacts, "Adds a contact.", Add, |world, it| {
        let email = address(&it.email)?;
        world.contacts.check_free(&email)?;
        let contact = Contact {
            name: text("name", &it.name, 80)?,
            email,
            phone: optional_text("telephone number", &it.phone.unwrap_or_default(), 30)?,
            city: optional_text("city", &it.city.unwrap_or_default(), 60)?,
            groups: BTreeSet::new(),
        };
        let line = contact.clone();
        let key = world.contacts.people.add(contact)?;
        Ok(format!("Added {}.", line.line(key)))
    }),
    tool!("contacts_update", Contacts, "Changes a contact.", Update, |world, it| {
        let email = it.email.as_deref().map(address).transpose()?;
        if let Some(email) = &email {
            let key = table::key('c', "a contact", &it.contact)?;
            let has_it = world.contacts.people.get(&key).is_some_and(|own| own.email == *email);
            if !has_it {
                world.contacts.check_free(email)?;
            }
        }
        if it.name.is_none() && email.is_none() && it.phone.is_none() && it.city.is_none() {
            return Err("Nothing is to be changed: give a name, email, phone or city.".to_owned());
        }
        let (key, contact) = world.contacts.find(&it.contact)?;
        if let Some(name) = it.name {
            contact.name = text("name", &name, 80)?;
        }
        if let Some(phone) = it.phone {
            contact.phone = optional_text("telephone number", &phone, 30)?;
        }
        if let Some(city) = it.city {
            contact.city = optional_text("city", &city, 60)?;
        }
        if let Some(email) = email {
            contact.email = email;
        }
        Ok(format!("Changed {}.", contact.line(key)))
    }),
    tool!("contacts_delete", Contacts, "Removes a contact.", One, |world, it| {
        let (key, contact) = world.contacts.find(&it.contact)?;
        let name = contact.name.clone();
        world.contacts.people.remove(&key);
        Ok(format!("Removed {name}."))
    }),
    tool!(
        "contacts_groups",
        Contacts,
        "Lists the groups with how many are in each.",
        NoArguments,
        |world, _| {
            let mut groups: BTreeMap<&str, usize> = BTreeMap::new();
            for (_, contact) in world.contacts.people.iter() {
                contact.groups.iter().for_each(|group| *groups.entry(group).or_default() += 1);
            }
            let all =
                groups.into_iter().map(|(group, count)| format!("{group} | {count}")).collect();
            Ok(lines("group", all, MOST_LISTED))
        }
    ),
    tool!("contacts_group", Contacts, "Lists who is in a group.", Group, |world, it| {
        let group = it.group.trim().to_lowercase();
        let people = world.contacts.people.iter();
        let members = people.filter(|(_, contact)| contact.groups.contains(&group));
        let all = members.map(|(key, contact)| contact.line(*key)).collect();
        Ok(lines("contact of this group", all, MOST_LISTED))
    }),
    tool!("contacts_group_add", Contacts, "Puts a contact into a group.", Member, |world, it| {
        let group = text("group", &it.group.to_lowercase(), 40)?;
        let (_, contact) = world.contacts.find(&it.contact)?;
        if contact.groups.len() >= MOST_GROUPS {
            return Err(format!("{} is in {MOST_GROUPS} groups already.", contact.name));
        }
        match contact.groups.insert(group.clone()) {
            true => Ok(format!("{} is in {group} now.", contact.name)),
            false => Err(format!("{} is in {group} already.", contact.name)),
        }
    }),
    tool!(
        "contacts_group_remove",
        Contacts,
        "Takes a contact out of a group.",
        Member,
        |world, it| {
            let group = it.group.trim().to_lowercase();
            let (_, contact) = world.contacts.find(&it.contact)?;
            match contact.groups.remove(&group) {
                true => Ok(format!("{} is no longer in {group}.", contact.name)),
                false => Err(format!("{} is not in that group.", contact.name)),
            }
        }
    ),
];
