//! Rows, put together from columns.

use serde_json::{Map, Value};

use super::Wrong;
use super::column::Column;
use super::schema::{Leaf, Node, NodeKind, Repetition, Schema, Shape};

/// The columns of a row group, read row by row.
pub(super) struct Assembly<'a> {
    schema: &'a Schema,
    columns: Vec<Cursor<'a>>,
}

struct Cursor<'a> {
    leaf: &'a Leaf,
    column: Column,
    level: usize,
    value: usize,
}

impl Cursor<'_> {
    fn definition(&self) -> Result<u32, Wrong> {
        match self.level < self.column.len {
            true if self.leaf.max_definition == 0 => Ok(0),
            true => Ok(self.column.definitions[self.level]),
            false => Err(format!("column `{}` ends early", self.leaf.path)),
        }
    }

    /// Whether what comes next is another element of the list at this level.
    fn goes_on(&self, repetition: u32) -> bool {
        self.level < self.column.len
            && self.leaf.max_repetition > 0
            && self.column.repetitions[self.level] >= repetition
    }

    fn next(&mut self) -> Result<Value, Wrong> {
        let is_there = self.definition()? == self.leaf.max_definition;
        self.level += 1;
        if !is_there {
            return Ok(Value::Null);
        }
        let value = self.column.values.get_mut(self.value).map(Value::take);
        self.value += 1;
        value.ok_or_else(|| format!("column `{}` lacks a value", self.leaf.path))
    }
}

impl<'a> Assembly<'a> {
    pub(super) fn new(schema: &'a Schema, columns: Vec<Column>) -> Self {
        let columns = schema.leaves.iter().zip(columns);
        let columns = columns.map(|(leaf, column)| Cursor { leaf, column, level: 0, value: 0 });
        Self { schema, columns: columns.collect() }
    }

    /// The next row.
    pub(super) fn row(&mut self) -> Result<Map<String, Value>, Wrong> {
        for column in &self.columns {
            if column.goes_on(1) {
                return Err(format!("column `{}` goes on behind a row", column.leaf.path));
            }
        }
        self.fields(&self.schema.columns, 0, 0)
    }

    /// That nothing is left behind the last row.
    pub(super) fn finish(&self) -> Result<(), Wrong> {
        let is_left =
            |it: &&Cursor<'_>| it.level < it.column.len || it.value < it.column.values.len();
        match self.columns.iter().find(is_left) {
            Some(column) => {
                Err(format!("column `{}` goes on behind the last row", column.leaf.path))
            }
            None => Ok(()),
        }
    }

    fn fields(
        &mut self,
        nodes: &'a [Node],
        definition: u32,
        repetition: u32,
    ) -> Result<Map<String, Value>, Wrong> {
        let mut fields = Map::with_capacity(nodes.len());
        for node in nodes {
            fields.insert(node.name.clone(), self.node(node, definition, repetition)?);
        }
        Ok(fields)
    }

    /// What a column has in what it belongs to, which is there at these levels.
    fn node(&mut self, node: &'a Node, definition: u32, repetition: u32) -> Result<Value, Wrong> {
        match node.repetition {
            Repetition::Required => self.content(node, definition, repetition),
            Repetition::Optional => match self.is_there(node, definition + 1)? {
                true => self.content(node, definition + 1, repetition),
                false => {
                    self.skip(node)?;
                    Ok(Value::Null)
                }
            },
            Repetition::Repeated => self.elements(node, definition, repetition).map(Value::Array),
        }
    }

    fn elements(
        &mut self,
        node: &'a Node,
        definition: u32,
        repetition: u32,
    ) -> Result<Vec<Value>, Wrong> {
        let (definition, repetition) = (definition + 1, repetition + 1);
        if !self.is_there(node, definition)? {
            self.skip(node)?;
            return Ok(Vec::new());
        }
        let first = node.first_leaf().ok_or("a column has no values")?;
        let mut elements = vec![self.content(node, definition, repetition)?];
        while self.columns[first].goes_on(repetition) {
            elements.push(self.content(node, definition, repetition)?);
        }
        Ok(elements)
    }

    fn content(
        &mut self,
        node: &'a Node,
        definition: u32,
        repetition: u32,
    ) -> Result<Value, Wrong> {
        let (children, shape) = match &node.kind {
            NodeKind::Leaf(number) => return self.columns[*number].next(),
            NodeKind::Group { children, shape } => (children, shape),
        };
        match (shape, &children[..]) {
            (Shape::List, [list]) => {
                let elements = self.elements(list, definition, repetition)?;
                let unwrap = |element: Value| match element {
                    Value::Object(fields) => {
                        fields.into_iter().next().map_or(Value::Null, |it| it.1)
                    }
                    other => other,
                };
                Ok(match list.is_wrapper(&node.name) {
                    true => elements.into_iter().map(unwrap).collect(),
                    false => elements.into(),
                })
            }
            (Shape::Map, [pairs]) => {
                let pairs = self.elements(pairs, definition, repetition)?;
                let pairs = pairs.into_iter().filter_map(|pair| {
                    let Value::Object(fields) = pair else { return None };
                    let mut fields = fields.into_iter();
                    let (key, value) = (fields.next()?.1, fields.next()?.1);
                    let key = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
                    Some((key, value))
                });
                Ok(Value::Object(pairs.collect()))
            }
            _ => self.fields(children, definition, repetition).map(Value::Object),
        }
    }

    fn is_there(&self, node: &Node, definition: u32) -> Result<bool, Wrong> {
        let first = node.first_leaf().ok_or("a column has no values")?;
        Ok(self.columns[first].definition()? >= definition)
    }

    /// Passes over what is not there, which stands once in every column below.
    fn skip(&mut self, node: &Node) -> Result<(), Wrong> {
        let mut leaves = Vec::new();
        node.leaves(&mut leaves);
        leaves.into_iter().try_for_each(|number| self.columns[number].next().map(drop))
    }
}
