//! Mails in folders.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::World;
use crate::arguments::{Outcome, address, has_words, lines, optional_text, text};
use crate::diff::Change;
use crate::files::{self, File};
use crate::moment::Moment;
use crate::table::{self, Table};
use crate::tool::{AppTool, NoArguments, tool};

/// The folders of mails.
pub(crate) const FOLDERS: [&str; 6] = ["inbox", "sent", "drafts", "archive", "receipts", "travel"];

const MOST_LISTED: usize = 15;
const MOST_RECIPIENTS: usize = 20;
const MOST_ATTACHED: usize = 5;
const MOST_SUBJECT: usize = 120;
const MOST_BODY: usize = 2_000;

/// A mail.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Message {
    pub(crate) folder: String,
    pub(crate) from: String,
    pub(crate) to: BTreeSet<String>,
    pub(crate) subject: String,
    pub(crate) body: String,
    pub(crate) at: Moment,
    pub(crate) read: bool,
    pub(crate) starred: bool,
    /// The id of the mail that it answers or forwards, or empty.
    pub(crate) about: String,
    pub(crate) attachments: Vec<Attachment>,
}

/// A file that comes with a mail.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Attachment {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// All mails.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mail {
    pub(crate) mails: Table<u32, Message>,
}

impl Mail {
    pub(crate) fn diff(&self, after: &Self, changes: &mut Vec<Change>) {
        self.mails.diff(&after.mails, "mail", |key| table::id('m', *key), changes);
    }

    fn get(&self, id: &str) -> Result<(u32, &Message), String> {
        let key = table::key('m', "a mail", id)?;
        let mail = self.mails.get(&key).ok_or_else(|| missing(key))?;
        Ok((key, mail))
    }

    fn get_mut(&mut self, id: &str) -> Result<(u32, &mut Message), String> {
        let key = table::key('m', "a mail", id)?;
        let mail = self.mails.get_mut(&key).ok_or_else(|| missing(key))?;
        Ok((key, mail))
    }
}

fn missing(key: u32) -> String {
    format!("There is no mail `m{key}`; `mail_search` and `mail_list` tell the ids.")
}

/// One line of a list.
fn line(world: &World, key: u32, mail: &Message) -> String {
    let mut line = format!(
        "{} | {} | from {} | {} | {}",
        table::id('m', key),
        mail.folder,
        world.contacts.name_of(&mail.from),
        mail.subject,
        mail.at
    );
    for (mark, is_set) in
        [("unread", !mail.read), ("starred", mail.starred), ("files", !mail.attachments.is_empty())]
    {
        if is_set {
            line += " | ";
            line += mark;
        }
    }
    line
}

/// Lists mails, the latest first.
fn list(world: &World, most: usize, fits: impl Fn(&Message) -> bool) -> String {
    let mut found: Vec<_> = world.mail.mails.iter().filter(|(_, mail)| fits(mail)).collect();
    found.sort_by_key(|(key, mail)| std::cmp::Reverse((mail.at, **key)));
    lines("mail", found.into_iter().map(|(key, mail)| line(world, *key, mail)).collect(), most)
}

/// A mail as it is read.
fn whole(world: &World, key: u32, mail: &Message) -> String {
    let to: Vec<&str> = mail.to.iter().map(String::as_str).collect();
    let mut text = format!(
        "{}\nfrom: {} <{}>\nto: {}\nsubject: {}\ndate: {}\nfolder: {}\n",
        table::id('m', key),
        world.contacts.name_of(&mail.from),
        mail.from,
        to.join(", "),
        mail.subject,
        mail.at,
        mail.folder
    );
    if !mail.attachments.is_empty() {
        let names: Vec<&str> = mail.attachments.iter().map(|file| file.name.as_str()).collect();
        text += &format!("attachments: {}\n", names.join(", "));
    }
    text + "\n" + &mail.body
}

/// Addresses of recipients, each once.
fn recipients(given: &[String]) -> Result<BTreeSet<String>, String> {
    if given.is_empty() || given.len() > MOST_RECIPIENTS {
        return Err(format!("A mail goes to 1 to {MOST_RECIPIENTS} addresses."));
    }
    given.iter().map(|given| address(given)).collect()
}

/// Puts a mail of the owner's into a folder.
fn put(
    world: &mut World,
    folder: &str,
    to: BTreeSet<String>,
    (subject, body): (&str, &str),
    about: String,
    attachments: Vec<Attachment>,
) -> Result<u32, String> {
    let mail = Message {
        folder: folder.to_owned(),
        from: world.address.clone(),
        to,
        subject: optional_text("subject", subject, MOST_SUBJECT)?,
        body: text("body", body, MOST_BODY)?,
        at: world.now,
        read: true,
        starred: false,
        about,
        attachments,
    };
    world.mail.mails.add(mail)
}

fn send(
    world: &mut World,
    to: BTreeSet<String>,
    words: (&str, &str),
    about: String,
    attachments: Vec<Attachment>,
) -> Outcome {
    let told: Vec<&str> = to.iter().map(String::as_str).collect();
    let told = told.join(", ");
    let key = put(world, "sent", to, words, about, attachments)?;
    Ok(format!("Sent {} to {told}.", table::id('m', key)))
}

/// A subject with `Re:` or `Fwd:` in front, once.
fn marked(mark: &str, subject: &str) -> String {
    let bare = subject.strip_prefix(mark).unwrap_or(subject).trim_start();
    crate::arguments::clipped(&format!("{mark} {bare}"), MOST_SUBJECT - 3)
}

fn reply(world: &mut World, it: &Reply, to_all: bool) -> Outcome {
    let (key, mail) = world.mail.get(&it.mail)?;
    let own = &world.address;
    let mut to = BTreeSet::from([mail.from.clone()]);
    if to_all || mail.from == *own {
        to.extend(mail.to.iter().cloned());
        to.remove(own);
    }
    if to.is_empty() {
        return Err("Nobody but you has this mail.".to_owned());
    }
    let subject = marked("Re:", &mail.subject);
    send(world, to, (&subject, &it.body), table::id('m', key), Vec::new())
}

/// The files at paths, to be attached.
fn attached(world: &World, paths: &[String]) -> Result<Vec<Attachment>, String> {
    if paths.len() > MOST_ATTACHED {
        return Err(format!("{MOST_ATTACHED} attachments are the most."));
    }
    let one = |path: &String| {
        let (path, file) = world.files.get(path)?;
        Ok(Attachment { name: files::name_of(&path).to_owned(), text: file.text.clone() })
    };
    paths.iter().map(one).collect()
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// The folder; left out, the inbox.
    folder: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Search {
    /// Words of the sender, the subject or the body.
    query: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct One {
    /// The id of the mail, such as m7.
    mail: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct From {
    /// The mail address of the sender.
    email: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Send {
    /// Mail addresses of those who get it.
    to: Vec<String>,
    /// The subject.
    subject: String,
    /// The text.
    body: String,
    /// Paths of files that go with it.
    attachments: Option<Vec<String>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Reply {
    /// The id of the mail that is answered, such as m7.
    mail: String,
    /// The text.
    body: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Forward {
    /// The id of the mail, such as m7.
    mail: String,
    /// Mail addresses of those who get it.
    to: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Draft {
    /// Mail addresses of those who are to get it.
    to: Vec<String>,
    /// The subject.
    subject: String,
    /// The text.
    body: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Move {
    /// The id of the mail, such as m7.
    mail: String,
    /// The folder it goes to.
    folder: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MarkRead {
    /// The id of the mail, such as m7.
    mail: String,
    /// Whether it counts as read.
    read: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Star {
    /// The id of the mail, such as m7.
    mail: String,
    /// Whether it has a star.
    starred: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Save {
    /// The id of the mail, such as m7.
    mail: String,
    /// The name of the attachment.
    attachment: String,
    /// The folder of files that it goes to, such as /invoices.
    folder: String,
}

pub(crate) const TOOLS: &[AppTool] = &[
    tool!(
        "mail_folders",
        Mail,
        "Lists the folders of mails with how many are in each.",
        NoArguments,
        |world, _| {
            let count =
                |folder: &str| world.mail.mails.iter().filter(|it| it.1.folder == folder).count();
            let all =
                FOLDERS.iter().map(|folder| format!("{folder} | {}", count(folder))).collect();
            Ok(lines("folder", all, FOLDERS.len()))
        }
    ),
    tool!(
        "mail_list",
        Mail,
        "Lists the mails of a folder, the latest first.",
        List,
        |world, it| {
            let folder = folder(it.folder.as_deref().unwrap_or("inbox"))?;
            Ok(list(world, MOST_LISTED, |mail| mail.folder == folder))
        }
    ),
    tool!(
        "mail_unread",
        Mail,
        "Lists the mails that were not read yet.",
        NoArguments,
        |world, _| { Ok(list(world, MOST_LISTED, |mail| !mail.read)) }
    ),
    tool!(
        "mail_search",
        Mail,
        "Finds mails by words of sender, subject or body.",
        Search,
        |world, it| {
            Ok(list(world, MOST_LISTED, |mail| {
                let name = world.contacts.name_of(&mail.from);
                has_words(
                    &format!("{name} {} {} {}", mail.from, mail.subject, mail.body),
                    &it.query,
                )
            }))
        }
    ),
    tool!("mail_from", Mail, "Lists all mails of a sender.", From, |world, it| {
        let email = address(&it.email)?;
        Ok(list(world, MOST_LISTED, |mail| mail.from == email))
    }),
    tool!(
        "mail_read",
        Mail,
        "Shows a mail with its text. It does not mark it as read.",
        One,
        |world, it| {
            let (key, mail) = world.mail.get(&it.mail)?;
            Ok(whole(world, key, mail))
        }
    ),
    tool!("mail_send", Mail, "Sends a mail.", Send, |world, it| {
        let attachments = attached(world, &it.attachments.unwrap_or_default())?;
        send(world, recipients(&it.to)?, (&it.subject, &it.body), String::new(), attachments)
    }),
    tool!("mail_reply", Mail, "Answers a mail to its sender alone.", Reply, |world, it| {
        reply(world, &it, false)
    }),
    tool!(
        "mail_reply_all",
        Mail,
        "Answers a mail to its sender and all who got it.",
        Reply,
        |world, it| { reply(world, &it, true) }
    ),
    tool!(
        "mail_forward",
        Mail,
        "Sends a mail on to others, with its attachments.",
        Forward,
        |world, it| {
            let (key, mail) = world.mail.get(&it.mail)?;
            let (subject, body) = (marked("Fwd:", &mail.subject), mail.body.clone());
            let attachments = mail.attachments.clone();
            send(world, recipients(&it.to)?, (&subject, &body), table::id('m', key), attachments)
        }
    ),
    tool!("mail_draft", Mail, "Keeps a mail as a draft.", Draft, |world, it| {
        let to = recipients(&it.to)?;
        let key = put(world, "drafts", to, (&it.subject, &it.body), String::new(), Vec::new())?;
        Ok(format!("Kept {} as a draft.", table::id('m', key)))
    }),
    tool!("mail_send_draft", Mail, "Sends a draft.", One, |world, it| {
        let now = world.now;
        let (key, mail) = world.mail.get_mut(&it.mail)?;
        if mail.folder != "drafts" {
            return Err(format!("`m{key}` is no draft."));
        }
        (mail.folder, mail.at) = ("sent".to_owned(), now);
        Ok(format!("Sent {}.", table::id('m', key)))
    }),
    tool!("mail_move", Mail, "Moves a mail to another folder.", Move, |world, it| {
        let folder = folder(&it.folder)?;
        if folder == "sent" || folder == "drafts" {
            return Err(format!("Mails cannot be moved to {folder}."));
        }
        let (key, mail) = world.mail.get_mut(&it.mail)?;
        mail.folder = folder.to_owned();
        Ok(format!("Moved {} to {folder}.", table::id('m', key)))
    }),
    tool!("mail_mark_read", Mail, "Marks a mail as read or as unread.", MarkRead, |world, it| {
        let (key, mail) = world.mail.get_mut(&it.mail)?;
        mail.read = it.read;
        Ok(format!("{} is {} now.", table::id('m', key), if it.read { "read" } else { "unread" }))
    }),
    tool!("mail_star", Mail, "Gives a mail a star, or takes it away.", Star, |world, it| {
        let (key, mail) = world.mail.get_mut(&it.mail)?;
        mail.starred = it.starred;
        let has = if it.starred { "has a star" } else { "has no star" };
        Ok(format!("{} {has} now.", table::id('m', key)))
    }),
    tool!("mail_delete", Mail, "Removes a mail for good.", One, |world, it| {
        let (key, _) = world.mail.get(&it.mail)?;
        world.mail.mails.remove(&key);
        Ok(format!("Removed {}.", table::id('m', key)))
    }),
    tool!(
        "mail_save_attachment",
        Mail,
        "Saves an attachment of a mail as a file.",
        Save,
        |world, it| {
            let (_, mail) = world.mail.get(&it.mail)?;
            let found = mail.attachments.iter().find(|file| file.name == it.attachment.trim());
            let Attachment { name, text } = found.cloned().ok_or_else(|| {
                let known: Vec<&str> =
                    mail.attachments.iter().map(|file| file.name.as_str()).collect();
                format!("The mail has no such attachment; it has: {}.", known.join(", "))
            })?;
            let path = world.files.path_in(&it.folder, &name)?;
            world.files.create(&path, File { text, ..File::default() })?;
            Ok(format!("Saved {path}."))
        }
    ),
];

/// A folder by its name.
fn folder(name: &str) -> Result<&'static str, String> {
    let name = name.trim().to_lowercase();
    FOLDERS.into_iter().find(|folder| *folder == name).ok_or_else(|| {
        format!("There is no such folder of mails; there are {}.", FOLDERS.join(", "))
    })
}
