//! Who a command runs as.

use crate::SandboxError;

/// A user inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Other groups.
    pub(crate) groups: Vec<u32>,
    pub(crate) name: String,
    pub(crate) home: String,
}

impl User {
    /// `name`, `uid` or `uid:gid`, looked up in what `/etc/passwd` and `/etc/group` hold inside.
    ///
    /// # Errors
    ///
    /// [`SandboxError::InvalidSpec`] if there is no such user.
    pub(crate) fn find(text: &str, passwd: &str, group: &str) -> Result<Self, SandboxError> {
        let unknown = || SandboxError::InvalidSpec {
            problems: vec![format!("there is no user `{text}` in the sandbox")],
        };
        let (name, given_group) = match text.split_once(':') {
            Some((name, group)) => (name, Some(group)),
            None => (text, None),
        };
        let number = name.parse::<u32>().ok();
        let line = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|fields| {
            fields.len() >= 6
                && match number {
                    Some(uid) => fields[2].parse() == Ok(uid),
                    None => fields[0] == name,
                }
        });
        let (uid, mut gid, name, home) = match (&line, number) {
            (Some(fields), _) => (
                fields[2].parse().map_err(|_| unknown())?,
                fields[3].parse().map_err(|_| unknown())?,
                fields[0].to_owned(),
                fields[5].to_owned(),
            ),
            (None, Some(uid)) => (uid, 0, uid.to_string(), "/".to_owned()),
            (None, None) => return Err(unknown()),
        };
        if let Some(given) = given_group {
            gid = given
                .parse()
                .ok()
                .or_else(|| {
                    let mut lines = group.lines().map(|line| line.split(':').collect::<Vec<_>>());
                    lines.find(|fields| fields[0] == given)?.get(2)?.parse().ok()
                })
                .ok_or_else(unknown)?;
        }
        let groups = group
            .lines()
            .filter_map(|line| {
                let fields: Vec<&str> = line.split(':').collect();
                let is_member = fields.get(3)?.split(',').any(|member| member == name);
                if is_member { fields[2].parse().ok() } else { None }
            })
            .collect();
        Ok(Self { uid, gid, groups, name, home })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name_and_number() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:100::/home/ann:/bin/sh\n";
        let group = "root:x:0:\nusers:x:100:\nstaff:x:50:bob,ann\n";
        let find = |text| User::find(text, passwd, group);
        let ann = find("ann").unwrap();
        assert_eq!((ann.uid, ann.gid, &ann.groups[..]), (1000, 100, &[50][..]));
        assert_eq!(ann.home, "/home/ann");
        assert_eq!(find("1000").unwrap(), ann);
        assert_eq!(find("ann:staff").unwrap().gid, 50);
        let unknown = find("77:88").unwrap();
        assert_eq!((unknown.uid, unknown.gid, unknown.home.as_str()), (77, 88, "/"));
        assert!(find("eve").is_err() && find("ann:none").is_err() && find("").is_err());
    }
}
