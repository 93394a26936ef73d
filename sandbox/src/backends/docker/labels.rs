//! The labels by which spar knows its own.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::NAME;
use crate::{Owner, OwnerState, SandboxRecord, SandboxSpec};

pub(super) const OWNER: &str = "spar.owner";
pub(super) const KIND: &str = "spar.kind";
const IMAGE: &str = "spar.image";
const CREATED: &str = "spar.created";
const EXPIRES: &str = "spar.expires";
/// [`KIND`] of a sandbox's container.
pub(super) const SANDBOX: &str = "sandbox";
/// [`KIND`] of a snapshot's image.
pub(super) const SNAPSHOT: &str = "snapshot";
/// [`KIND`]s of what sandboxes may have beside their container.
pub(super) const VOLUME: &str = "volume";
pub(super) const NETWORK: &str = "network";
/// [`KIND`] of the volume that holds the helper, which belongs to no process, and of the container
/// through which it is filled.
pub(super) const HELPER: &str = "helper";

/// What a thing was made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) image: String,
    pub(super) owner: Owner,
    pub(super) created: SystemTime,
    pub(super) expires: SystemTime,
}

impl Tag {
    /// For something that this process makes now for a sandbox of this spec.
    pub(super) fn new(spec: &SandboxSpec) -> Self {
        let created = SystemTime::now();
        Self {
            image: spec.image.to_string(),
            owner: Owner::this_process().clone(),
            created,
            // A time to live that no calendar holds is as good as a century.
            expires: created
                .checked_add(spec.lifetimes.time_to_live())
                .unwrap_or(created + Duration::from_secs(100 * 365 * 86_400)),
        }
    }

    /// As labels of a `container`, `image` and so on.
    pub(super) fn labels(&self, kind: &str) -> HashMap<String, String> {
        let owner = serde_json::to_string(&self.owner).expect("an owner has only plain fields");
        HashMap::from([
            (OWNER.to_owned(), owner),
            (KIND.to_owned(), kind.to_owned()),
            (IMAGE.to_owned(), self.image.clone()),
            (CREATED.to_owned(), seconds(self.created)),
            (EXPIRES.to_owned(), seconds(self.expires)),
        ])
    }

    /// What the labels of a thing say that is of one of these kinds. Absent where it is of another or
    /// not spar's: what people make of an image has all its labels.
    ///
    /// # Errors
    ///
    /// Why they cannot be understood: another version may have written them.
    pub(super) fn read(
        labels: &HashMap<String, String>,
        kinds: &[&str],
    ) -> Result<Option<Self>, String> {
        let Some(owner) = labels.get(OWNER) else { return Ok(None) };
        if !labels.get(KIND).is_some_and(|kind| kinds.contains(&kind.as_str())) {
            return Ok(None);
        }
        let time = |name: &str| {
            let seconds = labels.get(name).and_then(|seconds| seconds.parse().ok());
            seconds
                .and_then(|seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds)))
                .ok_or_else(|| format!("its label `{name}` cannot be read"))
        };
        Ok(Some(Self {
            owner: serde_json::from_str(owner)
                .map_err(|error| format!("its label `{OWNER}` cannot be read: {error}"))?,
            image: labels.get(IMAGE).cloned().unwrap_or_default(),
            created: time(CREATED)?,
            expires: time(EXPIRES)?,
        }))
    }

    /// Whether its owner gave a thing this name. Labels are handed on, to the images that are made
    /// of a container and to the containers and images that people make of those; names are not.
    pub(super) fn has_named(&self, name: &str) -> bool {
        let count = name
            .strip_prefix("spar-")
            .and_then(|rest| rest.strip_prefix(self.owner.run.as_str()))
            .and_then(|rest| rest.strip_prefix('-'));
        count.is_some_and(|count| {
            !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit())
        })
    }

    /// Whether a reaper may remove it.
    pub(super) fn is_over(&self) -> bool {
        self.owner.state() == OwnerState::Dead || SystemTime::now() > self.expires
    }

    pub(super) fn into_record(self, id: String) -> SandboxRecord {
        SandboxRecord {
            id,
            backend: NAME.into(),
            image: self.image,
            owner_state: self.owner.state(),
            owner: self.owner,
            created: self.created,
            expires: self.expires,
        }
    }
}

/// A filter for everything of spar's.
pub(super) fn filter() -> HashMap<String, Vec<String>> {
    HashMap::from([("label".to_owned(), vec![OWNER.to_owned()])])
}

fn seconds(time: SystemTime) -> String {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Image;

    #[test]
    fn labels_round_trip_and_those_of_other_kinds_are_not_ours() {
        let tag = Tag::new(&SandboxSpec::new(Image::Reference("debian".into())));
        let labels = tag.labels(SANDBOX);
        let back = Tag::read(&labels, &[HELPER, SANDBOX]).unwrap().unwrap();
        assert_eq!((&back.owner, &back.image), (&tag.owner, &tag.image));
        assert!(!back.is_over());
        assert_eq!(Tag::read(&HashMap::new(), &[SANDBOX]), Ok(None));
        assert_eq!(Tag::read(&tag.labels(SNAPSHOT), &[SANDBOX, HELPER]), Ok(None));
        for (label, value) in [(OWNER, "somebody else's"), (EXPIRES, "tomorrow")] {
            let mut other = labels.clone();
            other.insert(label.into(), value.into());
            let reason = Tag::read(&other, &[SANDBOX]).unwrap_err();
            assert!(reason.contains(label), "{reason}");
        }
    }

    #[test]
    fn only_names_that_the_owner_gave_count_as_its_own() {
        let tag = Tag::new(&SandboxSpec::new(Image::Default));
        assert!(tag.has_named(&super::super::container::new_name()));
        let run = &tag.owner.run;
        for name in ["mine", "spar-7", &format!("spar-{run}"), &format!("spar-{run}-"), run] {
            assert!(!tag.has_named(name), "{name}");
        }
        assert!(!tag.has_named(&format!("spar-{run}-copy")));
    }

    #[test]
    fn what_is_too_old_is_over_though_its_owner_lives() {
        let mut tag = Tag::new(&SandboxSpec::new(Image::Default));
        tag.expires = SystemTime::now() - Duration::from_secs(1);
        assert!(tag.is_over());
    }
}
