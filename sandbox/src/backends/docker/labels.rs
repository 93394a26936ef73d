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
/// [`KIND`] of the volume that holds the helper; it belongs to no process.
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

    /// Absent where the labels are not spar's or cannot be understood.
    pub(super) fn from_labels(labels: &HashMap<String, String>) -> Option<Self> {
        let time = |name: &str| {
            let seconds = labels.get(name)?.parse().ok()?;
            UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
        };
        Some(Self {
            owner: serde_json::from_str(labels.get(OWNER)?).ok()?,
            image: labels.get(IMAGE).cloned().unwrap_or_default(),
            created: time(CREATED)?,
            expires: time(EXPIRES)?,
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
    fn labels_round_trip_and_foreign_ones_are_not_understood() {
        let tag = Tag::new(&SandboxSpec::new(Image::Reference("debian".into())));
        let labels = tag.labels("sandbox");
        let back = Tag::from_labels(&labels).unwrap();
        assert_eq!((&back.owner, &back.image), (&tag.owner, &tag.image));
        assert!(!back.is_over());
        assert_eq!(Tag::from_labels(&HashMap::new()), None);
        let mut foreign = labels;
        foreign.insert(OWNER.into(), "somebody else's".into());
        assert_eq!(Tag::from_labels(&foreign), None);
    }

    #[test]
    fn what_is_too_old_is_over_though_its_owner_lives() {
        let mut tag = Tag::new(&SandboxSpec::new(Image::Default));
        tag.expires = SystemTime::now() - Duration::from_secs(1);
        assert!(tag.is_over());
    }
}
