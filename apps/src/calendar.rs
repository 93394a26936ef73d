//! Events with attendees.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::World;
use crate::arguments::{address, clipped, has_words, lines, optional_text, text};
use crate::diff::Change;
use crate::moment::{Date, Moment, parse_time, time_words};
use crate::table::{self, Table};
use crate::tool::{AppTool, tool};

const MOST_LISTED: usize = 20;
const MOST_ATTENDEES: usize = 20;
/// Minutes of an event: two weeks.
const MOST_MINUTES: i64 = 14 * 24 * 60;

/// Something that takes place.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Event {
    pub(crate) title: String,
    pub(crate) start: Moment,
    pub(crate) end: Moment,
    pub(crate) location: String,
    /// Addresses of those who come, the owner left out.
    pub(crate) attendees: BTreeSet<String>,
    /// Minutes before it that it is told; 0 where it is not.
    pub(crate) reminder: u32,
    /// What the owner answered: `none`, `accepted`, `declined` or `tentative`.
    pub(crate) response: String,
}

/// All events.
#[derive(Debug, Clone, Default)]
pub(crate) struct Calendar {
    pub(crate) events: Table<u32, Event>,
}

impl Calendar {
    pub(crate) fn diff(&self, after: &Self, changes: &mut Vec<Change>) {
        self.events.diff(&after.events, "event", |key| table::id('e', *key), changes);
    }

    fn get_mut(&mut self, id: &str) -> Result<(u32, &mut Event), String> {
        let key = table::key('e', "an event", id)?;
        let event = self.events.get_mut(&key).ok_or_else(|| {
            format!(
                "There is no event `e{key}`; `calendar_search` and `calendar_day` tell the ids."
            )
        })?;
        Ok((key, event))
    }

    /// Events that overlap a stretch of time, in the order of time.
    pub(crate) fn between(&self, start: Moment, end: Moment) -> Vec<(u32, &Event)> {
        let overlaps = |event: &Event| event.start < end && event.end > start;
        let found = self.events.iter().filter(|(_, event)| overlaps(event));
        let mut found: Vec<_> = found.map(|(key, event)| (*key, event)).collect();
        found.sort_by_key(|(key, event)| (event.start, *key));
        found
    }
}

fn line(key: u32, event: &Event) -> String {
    let mut line = format!(
        "{} | {} | {} to {}",
        table::id('e', key),
        event.title,
        event.start,
        time_words(event.end.minute_of_day())
    );
    if !event.location.is_empty() {
        line += &format!(" | {}", event.location);
    }
    line
}

fn whole(world: &World, key: u32, event: &Event) -> String {
    let one = |email: &String| format!("{} <{email}>", world.contacts.name_of(email));
    let attendees: Vec<String> = event.attendees.iter().map(one).collect();
    let attendees =
        if attendees.is_empty() { "nobody else".to_owned() } else { attendees.join(", ") };
    let reminder = match event.reminder {
        0 => "none".to_owned(),
        minutes => format!("{minutes} minutes before"),
    };
    format!(
        "{}\nattendees: {attendees}\nreminder: {reminder}\nyour answer: {}",
        line(key, event),
        event.response
    )
}

fn list(found: Vec<(u32, &Event)>) -> String {
    lines("event", found.into_iter().map(|(key, event)| line(key, event)).collect(), MOST_LISTED)
}

fn date(given: &str) -> Result<Date, String> {
    Date::parse(given.trim()).ok_or_else(|| {
        format!("`{}` is no date, which is written as in 2031-03-14.", clipped(given, 40))
    })
}

fn moment(given: &str) -> Result<Moment, String> {
    Moment::parse(given.trim()).ok_or_else(|| {
        format!(
            "`{}` is no date with a time, which is written as in 2031-03-14 09:30.",
            clipped(given, 40)
        )
    })
}

fn minutes(given: i64) -> Result<i64, String> {
    match (1..=MOST_MINUTES).contains(&given) {
        true => Ok(given),
        false => Err(format!("An event lasts 1 to {MOST_MINUTES} minutes.")),
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Day {
    /// The date, as 2031-03-14.
    date: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Range {
    /// The first date, as 2031-03-14.
    from: String,
    /// The last date.
    to: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Search {
    /// Words of the title or the location.
    query: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct One {
    /// The id of the event, such as e5.
    event: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Create {
    /// The title.
    title: String,
    /// When it begins, as 2031-03-14 09:30.
    start: String,
    /// How long it lasts, in minutes.
    minutes: i64,
    /// Where it is.
    location: Option<String>,
    /// Mail addresses of the others who come.
    attendees: Option<Vec<String>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Move {
    /// The id of the event, such as e5.
    event: String,
    /// When it begins then, as 2031-03-14 09:30; it lasts as long as before.
    start: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Last {
    /// The id of the event, such as e5.
    event: String,
    /// How long it lasts then, in minutes.
    minutes: i64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Rename {
    /// The id of the event, such as e5.
    event: String,
    /// The new title.
    title: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Place {
    /// The id of the event, such as e5.
    event: String,
    /// Where it is.
    location: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Attendee {
    /// The id of the event, such as e5.
    event: String,
    /// The mail address of the other.
    email: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Free {
    /// The date, as 2031-03-14.
    date: String,
    /// The earliest time, as 09:00.
    from: String,
    /// The time by which it has to be over, as 17:00.
    to: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Remind {
    /// The id of the event, such as e5.
    event: String,
    /// How many minutes before it you are reminded, 0 for not at all.
    minutes: u32,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Respond {
    /// The id of the event, such as e5.
    event: String,
    /// One of accepted, declined and tentative.
    answer: String,
}

pub(crate) const TOOLS: &[AppTool] = &[
    tool!("calendar_day", Calendar, "Lists the events of a day.", Day, |world, it| {
        let date = date(&it.date)?;
        Ok(list(world.calendar.between(date.at(0), date.plus_days(1).at(0))))
    }),
    tool!(
        "calendar_list",
        Calendar,
        "Lists the events from one day to another.",
        Range,
        |world, it| {
            let (from, to) = (date(&it.from)?, date(&it.to)?);
            Ok(list(world.calendar.between(from.at(0), to.plus_days(1).at(0))))
        }
    ),
    tool!(
        "calendar_search",
        Calendar,
        "Finds events by words of title or location.",
        Search,
        |world, it| {
            let events = world.calendar.events.iter();
            let fits = |event: &Event| {
                has_words(&format!("{} {}", event.title, event.location), &it.query)
            };
            let mut found: Vec<_> =
                events.filter(|(_, event)| fits(event)).map(|(key, event)| (*key, event)).collect();
            found.sort_by_key(|(key, event)| (event.start, *key));
            Ok(list(found))
        }
    ),
    tool!("calendar_get", Calendar, "Shows an event with its attendees.", One, |world, it| {
        let (key, event) = world.calendar.get_mut(&it.event)?;
        let event = event.clone();
        Ok(whole(world, key, &event))
    }),
    tool!(
        "calendar_free",
        Calendar,
        "Lists the stretches of a day without any event.",
        Free,
        |world, it| {
            let date = date(&it.date)?;
            let time = |given: &str| {
                parse_time(given.trim()).ok_or_else(|| {
                    format!("`{}` is no time, which is written as in 09:30.", clipped(given, 40))
                })
            };
            let (mut free, to) = (date.at(time(&it.from)?), date.at(time(&it.to)?));
            let mut all = Vec::new();
            let mut stretch = |from: Moment, to: Moment| {
                if from < to {
                    let words = |at: Moment| time_words(at.minute_of_day());
                    all.push(format!(
                        "{} to {} | {} minutes",
                        words(from),
                        words(to),
                        to.minutes_since(from)
                    ));
                }
            };
            for (_, event) in world.calendar.between(free, to) {
                stretch(free, event.start.min(to));
                free = free.max(event.end);
            }
            stretch(free, to);
            Ok(lines("free time", all, MOST_LISTED))
        }
    ),
    tool!("calendar_create", Calendar, "Makes an event.", Create, |world, it| {
        let attendees = it.attendees.unwrap_or_default();
        if attendees.len() > MOST_ATTENDEES {
            return Err(format!("{MOST_ATTENDEES} attendees are the most."));
        }
        let start = moment(&it.start)?;
        let event = Event {
            title: text("title", &it.title, 120)?,
            start,
            end: start.plus_minutes(minutes(it.minutes)?),
            location: optional_text("location", &it.location.unwrap_or_default(), 120)?,
            attendees: attendees.iter().map(|email| address(email)).collect::<Result<_, _>>()?,
            reminder: 0,
            response: "accepted".to_owned(),
        };
        let shown = event.clone();
        let key = world.calendar.events.add(event)?;
        Ok(format!("Made {}.", line(key, &shown)))
    }),
    tool!("calendar_move", Calendar, "Moves an event to another time.", Move, |world, it| {
        let start = moment(&it.start)?;
        let (key, event) = world.calendar.get_mut(&it.event)?;
        let lasts = event.end.minutes_since(event.start);
        (event.start, event.end) = (start, start.plus_minutes(lasts));
        Ok(format!("Moved {}.", line(key, event)))
    }),
    tool!(
        "calendar_set_minutes",
        Calendar,
        "Makes an event longer or shorter.",
        Last,
        |world, it| {
            let minutes = minutes(it.minutes)?;
            let (key, event) = world.calendar.get_mut(&it.event)?;
            event.end = event.start.plus_minutes(minutes);
            Ok(format!("Changed {}.", line(key, event)))
        }
    ),
    tool!("calendar_rename", Calendar, "Gives an event another title.", Rename, |world, it| {
        let title = text("title", &it.title, 120)?;
        let (key, event) = world.calendar.get_mut(&it.event)?;
        event.title = title;
        Ok(format!("Renamed {}.", line(key, event)))
    }),
    tool!("calendar_set_location", Calendar, "Tells where an event is.", Place, |world, it| {
        let location = optional_text("location", &it.location, 120)?;
        let (key, event) = world.calendar.get_mut(&it.event)?;
        event.location = location;
        Ok(format!("Changed {}.", line(key, event)))
    }),
    tool!(
        "calendar_add_attendee",
        Calendar,
        "Invites somebody to an event.",
        Attendee,
        |world, it| {
            let email = address(&it.email)?;
            let (key, event) = world.calendar.get_mut(&it.event)?;
            if event.attendees.len() >= MOST_ATTENDEES {
                return Err(format!("`e{key}` has {MOST_ATTENDEES} attendees already."));
            }
            match event.attendees.insert(email.clone()) {
                true => Ok(format!("{email} is invited to {}.", table::id('e', key))),
                false => Err(format!("{email} is invited to {} already.", table::id('e', key))),
            }
        }
    ),
    tool!(
        "calendar_remove_attendee",
        Calendar,
        "Takes somebody off an event.",
        Attendee,
        |world, it| {
            let email = address(&it.email)?;
            let (key, event) = world.calendar.get_mut(&it.event)?;
            match event.attendees.remove(&email) {
                true => Ok(format!("{email} is no longer invited to {}.", table::id('e', key))),
                false => Err(format!("{email} is not invited to {}.", table::id('e', key))),
            }
        }
    ),
    tool!(
        "calendar_set_reminder",
        Calendar,
        "Sets when you are reminded of an event.",
        Remind,
        |world, it| {
            if i64::from(it.minutes) > MOST_MINUTES {
                return Err(format!("{MOST_MINUTES} minutes are the most."));
            }
            let (key, event) = world.calendar.get_mut(&it.event)?;
            event.reminder = it.minutes;
            Ok(format!(
                "You are reminded of {} {} minutes before it.",
                table::id('e', key),
                it.minutes
            ))
        }
    ),
    tool!("calendar_respond", Calendar, "Answers an invitation.", Respond, |world, it| {
        let answer = it.answer.trim().to_lowercase();
        if !["accepted", "declined", "tentative"].contains(&answer.as_str()) {
            return Err("The answer is one of accepted, declined and tentative.".to_owned());
        }
        let (key, event) = world.calendar.get_mut(&it.event)?;
        event.response = answer;
        Ok(format!("Your answer to {} is {}.", table::id('e', key), event.response))
    }),
    tool!("calendar_delete", Calendar, "Removes an event.", One, |world, it| {
        let (key, event) = world.calendar.get_mut(&it.event)?;
        let title = event.title.clone();
        world.calendar.events.remove(&key);
        Ok(format!("Removed {title}."))
    }),
];
