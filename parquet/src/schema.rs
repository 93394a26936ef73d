//! What columns there are, and how they are nested.

use super::thrift::Thrift;
use super::{MAX_DEPTH, MAX_NAME_BYTES, MAX_PATHS_BYTES, Wrong};

/// How often a column is in what it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repetition {
    Required,
    Optional,
    Repeated,
}

/// How values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Physical {
    Boolean,
    Int32,
    Int64,
    Unsigned32,
    Unsigned64,
    /// Days since 1970.
    Days,
    /// So many parts of a second since 1970.
    Moment {
        per_second: i64,
        is_utc: bool,
    },
    Float,
    Double,
    Bytes,
    /// Of so many bytes each.
    Fixed(usize),
}

/// A column, or a group of them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) repetition: Repetition,
    pub(super) kind: NodeKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum NodeKind {
    /// Number of the column of values.
    Leaf(usize),
    Group {
        children: Vec<Node>,
        shape: Shape,
    },
}

/// What a group stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Struct,
    List,
    Map,
}

/// A column of values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Leaf {
    /// Names from the outside in, joined by points.
    pub(super) path: String,
    pub(super) physical: Result<Physical, Wrong>,
    /// The levels of a value that is there.
    pub(super) max_definition: u32,
    pub(super) max_repetition: u32,
}

/// The columns of a file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Schema {
    pub(super) columns: Vec<Node>,
    pub(super) leaves: Vec<Leaf>,
}

impl Schema {
    /// Reads the list of a file's description, parents before their children.
    pub(super) fn read(elements: &[Thrift<'_>]) -> Result<Self, Wrong> {
        let mut reader =
            Reader { elements: elements.iter(), leaves: Vec::new(), paths_left: MAX_PATHS_BYTES };
        let root = reader.elements.next().ok_or("it has no columns")?;
        let count = root.count(5, "the number of columns")?;
        let columns = reader.children(count, &[], (0, 0))?;
        Ok(Self { columns, leaves: reader.leaves })
    }
}

struct Reader<'a, 't> {
    elements: std::slice::Iter<'a, Thrift<'t>>,
    leaves: Vec<Leaf>,
    /// Bytes that paths may still have: the name of a group stands in those of all its columns.
    paths_left: usize,
}

impl Reader<'_, '_> {
    fn children(
        &mut self,
        count: usize,
        path: &[&str],
        levels: (u32, u32),
    ) -> Result<Vec<Node>, Wrong> {
        if path.len() > MAX_DEPTH {
            return Err("its columns are nested too deeply".to_owned());
        }
        (0..count).map(|_| self.node(path, levels)).collect()
    }

    fn node(
        &mut self,
        path: &[&str],
        (mut definition, mut repeated): (u32, u32),
    ) -> Result<Node, Wrong> {
        let element = self.elements.next().ok_or("its list of columns ends early")?;
        let name = element.text(4).ok_or("a column has no name")?;
        if name.len() > MAX_NAME_BYTES {
            let most = MAX_NAME_BYTES;
            return Err(format!(
                "a column has a name of {} bytes, at most {most} are read",
                name.len()
            ));
        }
        let repetition = match element.int(3) {
            Some(0) => Repetition::Required,
            Some(1) => Repetition::Optional,
            Some(2) => Repetition::Repeated,
            _ => return Err(format!("column `{name}` does not tell how often it is there")),
        };
        definition += u32::from(repetition != Repetition::Required);
        repeated += u32::from(repetition == Repetition::Repeated);
        let path: Vec<&str> = path.iter().copied().chain([name]).collect();
        let kind = match element.int(5).unwrap_or(0) {
            0 => {
                let bytes = path.iter().map(|name| name.len() + 1).sum();
                let left = self.paths_left.checked_sub(bytes);
                self.paths_left = left.ok_or("the names of its columns are too long")?;
                self.leaves.push(Leaf {
                    path: path.join("."),
                    physical: physical(element),
                    max_definition: definition,
                    max_repetition: repeated,
                });
                NodeKind::Leaf(self.leaves.len() - 1)
            }
            _ => {
                let count = element.count(5, "the number of columns in a column")?;
                let children = self.children(count, &path, (definition, repeated))?;
                NodeKind::Group { shape: shape(element, &children), children }
            }
        };
        Ok(Node { name: name.to_owned(), repetition, kind })
    }
}

/// How the values of a column are stored, and what they say: what is written as a number or bytes and means something else is read as
/// that, or refused.
fn physical(element: &Thrift<'_>) -> Result<Physical, Wrong> {
    let stored = match element.int(1) {
        Some(0) => Physical::Boolean,
        Some(1) => Physical::Int32,
        Some(2) => Physical::Int64,
        Some(3) => return Err("times of 96 bits".to_owned()),
        Some(4) => Physical::Float,
        Some(5) => Physical::Double,
        Some(6) => Physical::Bytes,
        Some(7) => Physical::Fixed(element.count(2, "the length of its values")?),
        _ => return Err("values of an unknown kind".to_owned()),
    };
    let logical = element.field(10);
    let has = |number| logical.is_some_and(|kind| kind.field(number).is_some());
    let converted = element.int(6);
    let is_any = |numbers: &[i64]| converted.is_some_and(|it| numbers.contains(&it));
    let unsigned = logical.and_then(|kind| kind.field(10)).and_then(|integer| integer.field(2));
    for (is_it, what) in [
        (has(5) || is_any(&[5]), "decimal numbers"),
        (has(7) || is_any(&[7, 8]), "times of the day"),
        (has(13) || is_any(&[20]), "BSON"),
        (has(14), "UUIDs"),
        (has(15), "numbers of 16 bits"),
        (is_any(&[21]), "intervals"),
    ] {
        if is_it {
            return Err(what.to_owned());
        }
    }
    if unsigned == Some(&Thrift::Bool(false)) || is_any(&[11, 12, 13, 14]) {
        return match stored {
            Physical::Int32 => Ok(Physical::Unsigned32),
            Physical::Int64 => Ok(Physical::Unsigned64),
            _ => Err("integers that are not stored as such".to_owned()),
        };
    }
    if has(6) || is_any(&[6]) {
        return match stored {
            Physical::Int32 => Ok(Physical::Days),
            _ => Err("dates that are not stored as such".to_owned()),
        };
    }
    if has(8) || is_any(&[9, 10]) {
        let about = logical.and_then(|kind| kind.field(8));
        let unit = about.and_then(|about| about.field(2));
        let is_unit = |number| unit.is_some_and(|unit| unit.field(number).is_some());
        // Where only the older form is there, moments are of UTC.
        let is_utc = about.is_none_or(|about| about.field(1) == Some(&Thrift::Bool(true)));
        let per_second = match () {
            () if is_unit(1) || (unit.is_none() && converted == Some(9)) => 1_000,
            () if is_unit(2) || (unit.is_none() && converted == Some(10)) => 1_000_000,
            () if is_unit(3) => 1_000_000_000,
            () => return Err("moments of an unknown unit".to_owned()),
        };
        return match stored {
            Physical::Int64 => Ok(Physical::Moment { per_second, is_utc }),
            _ => Err("moments that are not stored as such".to_owned()),
        };
    }
    Ok(stored)
}

/// What a group stands for, where its children are as they have to be for that.
fn shape(element: &Thrift<'_>, children: &[Node]) -> Shape {
    let [only] = children else { return Shape::Struct };
    let logical = |number| element.field(10).is_some_and(|kind| kind.field(number).is_some());
    let is_map = matches!(element.int(6), Some(1 | 2)) || logical(2);
    let is_list = element.int(6) == Some(3) || logical(3);
    let has_pairs = matches!(&only.kind, NodeKind::Group { children, .. } if children.len() == 2);
    match only.repetition == Repetition::Repeated {
        true if is_map && has_pairs => Shape::Map,
        true if is_list => Shape::List,
        _ => Shape::Struct,
    }
}

impl Node {
    /// The number of its first column of values.
    pub(super) fn first_leaf(&self) -> Option<usize> {
        match &self.kind {
            NodeKind::Leaf(number) => Some(*number),
            NodeKind::Group { children, .. } => children.iter().find_map(Self::first_leaf),
        }
    }

    /// The numbers of its columns of values.
    pub(super) fn leaves(&self, found: &mut Vec<usize>) {
        match &self.kind {
            NodeKind::Leaf(number) => found.push(*number),
            NodeKind::Group { children, .. } => children.iter().for_each(|it| it.leaves(found)),
        }
    }

    /// Whether a repeated group within a list is only there to be repeated, so that its one column is the element.
    pub(super) fn is_wrapper(&self, list: &str) -> bool {
        match &self.kind {
            NodeKind::Group { children, .. } => {
                children.len() == 1 && self.name != "array" && self.name != format!("{list}_tuple")
            }
            NodeKind::Leaf(_) => false,
        }
    }
}
