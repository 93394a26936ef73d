//! Several steps over two or more applications.

use serde_json::json;

use super::{Found, attended_by, money, moved, some_event, some_group, some_person};
use crate::Draft;
use crate::calendar::Event;
use crate::facts::Fact;
use crate::files::File;
use crate::problem::Problem;

pub(super) fn invite_group(draft: &mut Draft) -> Problem {
    let ((group, members), event) = (some_group(draft), some_event(draft));
    let title = &event.record.title;
    let coming = &event.record.attendees;
    let mut missing: Vec<_> = members.iter().filter(|it| !coming.contains(&it.email)).collect();
    // An event that all of them come to anyway would leave nothing to do.
    if missing.is_empty() {
        return invite_group(draft);
    }
    missing.sort_by(|a, b| a.id.len().cmp(&b.id.len()).then(a.id.cmp(&b.id)));
    let all = coming.iter().cloned().chain(missing.iter().map(|it| it.email.clone()));
    let calls: Vec<_> =
        missing.iter().map(|it| json!({ "event": event.id, "email": it.email })).collect();
    Problem::new(format!(
        "Invite everybody of the group {group} who is not invited yet to the event \"{title}\"."
    ))
    .look("contacts_group", json!({ "group": group }), &missing[0].email)
    .look("calendar_search", json!({ "query": title }), &event.id)
    .look("calendar_get", json!({ "event": event.id }), "attendees")
    .make_by("calendar_add_attendee", calls, attended_by(&event.id, all))
    .keep("the event was removed", "event", &event.id)
}

pub(super) fn files_named_in_mail(draft: &mut Draft) -> Problem {
    let files: Vec<Found<File>> = draft.until(|draft| {
        let files = [super::some_file(draft), super::some_file(draft)];
        (files[0].id != files[1].id).then(|| files.into())
    });
    let folder = draft.until(|draft| {
        let folder = super::other_folder(draft, &files[0].id);
        (!files[1].id.starts_with(&format!("{folder}/"))).then_some(folder)
    });
    let (from, subject) = (some_person(draft), draft.subject());
    let body = format!("We no longer need {} and {}.", files[0].name(), files[1].name());
    let id = draft.add_mail(&from.email, &subject, &body, &[]);
    let mut problem = Problem::new(format!(
        "Move the files that the mail \"{subject}\" names to the folder {folder}."
    ))
    .look("mail_search", json!({ "query": subject }), &id)
    .look("mail_read", json!({ "mail": id }), files[0].name());
    for file in &files {
        problem = problem.look("files_search", json!({ "query": file.name() }), &file.id);
    }
    for file in &files {
        let required = moved(&file.id, &format!("{folder}/{}", file.name()), &file.record);
        problem = problem.make("files_move", json!({ "path": file.id, "to": folder }), required);
    }
    problem
}

pub(super) fn split_bill(draft: &mut Draft) -> Problem {
    let event = some_event(draft);
    let people = super::attendees(draft, &event.record);
    let (from, subject, note) = (some_person(draft), draft.subject(), draft.note());
    // Whoever acts pays a share as well.
    let share = draft.cents(4, 30);
    let total = money(share * (people.len() as i64 + 1));
    let body = format!("Hello, the bill was {total} in all. Thank you for paying it.");
    let id = draft.add_mail(&from.email, &subject, &body, &[]);
    let title = &event.record.title;
    let problem = Problem::new(format!(
        "The mail \"{subject}\" tells what you paid for the event \"{title}\". Split it equally among you and all attendees \
         of the event, and request from each attendee their share, with the note \"{note}\"."
    ))
    .look("mail_search", json!({ "query": subject }), &id)
    .look("mail_read", json!({ "mail": id }), &total)
    .look("calendar_search", json!({ "query": title }), &event.id)
    .look("calendar_get", json!({ "event": event.id }), &people[0].email);
    super::single::ask_each(problem, &people, share, &note)
}

pub(super) fn reschedule(draft: &mut Draft) -> Problem {
    let event = some_event(draft);
    let Event { title, start, end, attendees, .. } = &event.record;
    let lasts = end.minutes_since(*start);
    let (day, free) = super::single::busy_day(draft, lasts);
    let time = crate::moment::time_words(free.minute_of_day());
    let to: Vec<&str> = attendees.iter().map(String::as_str).collect();
    let at = crate::goal::Required::changed("event", event.id.as_str())
        .is("start", free.to_string())
        .is("end", free.plus_minutes(lasts).to_string());
    let told = super::mailed(draft, &to)
        .reads("subject", title)
        .says("body", vec![Fact::Time(free.minute_of_day())]);
    Problem::new(format!(
        "Move the event \"{title}\" to {day}, as early as possible between 09:00 and 17:00, so that it clashes with nothing \
         else. Then send one mail to all its attendees with the subject \"{title}\" that tells the new time."
    ))
    .look("calendar_search", json!({ "query": title }), &event.id)
    .look("calendar_get", json!({ "event": event.id }), to[0])
    .look("calendar_free", json!({ "date": day.to_string(), "from": "09:00", "to": "17:00" }), &time)
    .make("calendar_move", json!({ "event": event.id, "start": free.to_string() }), [at])
    .make("mail_send", json!({ "to": to, "subject": title, "body": format!("It is at {time}.") }), [told])
    .keep("the event was removed", "event", &event.id)
}
