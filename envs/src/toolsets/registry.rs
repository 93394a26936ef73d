//! The toolsets that have a name.

use std::sync::Arc;

use spar_core::registry::{Axis, Given, Row, RowError, Table};

use super::{Toolset, aci, mini, openhands, r2e, terminus};

/// Makes a toolset with options.
pub type OpenToolset = fn(&Given<'_>) -> Result<Arc<dyn Toolset>, RowError>;

/// A toolset that has a name.
pub type ToolsetRow = Row<OpenToolset>;

const AXIS: Axis = Axis {
    name: "toolsets",
    what: "toolset",
    about: "What agents of published scaffolds work with at a machine.",
};

const ROWS: &[ToolsetRow] = &[mini::ROW, aci::ROW, terminus::ROW, openhands::ROW, r2e::ROW];

static TABLE: Table<OpenToolset> = Table::new(AXIS, ROWS);

/// All toolsets that have a name; a new one is one file or folder and one row here.
pub fn toolset_registry() -> &'static Table<OpenToolset> {
    &TABLE
}
