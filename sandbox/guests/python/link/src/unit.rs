//! One module, as linking sees it.

use std::collections::HashMap;

use anyhow::{Result, bail};
use wasmparser::{
    ExternalKind, FuncType, FunctionBody, KnownCustom, Name, Parser, Payload, TypeRef,
};

/// A module that becomes part of the output.
pub struct Unit<'a> {
    pub types: Vec<FuncType>,
    pub imports: Vec<wasmparser::Import<'a>>,
    /// Types of the functions it defines.
    pub functions: Vec<u32>,
    pub bodies: Vec<FunctionBody<'a>>,
    pub tables: Vec<wasmparser::Table<'a>>,
    pub memories: Vec<wasmparser::MemoryType>,
    pub globals: Vec<wasmparser::Global<'a>>,
    pub elements: Vec<wasmparser::Element<'a>>,
    pub data: Vec<wasmparser::Data<'a>>,
    pub exports: HashMap<&'a str, (ExternalKind, u32)>,
    /// Names of functions, for traces and profiles.
    pub names: Vec<(u32, &'a str)>,
}

/// Reads a module that has neither a start function nor tags.
pub fn read(bytes: &[u8]) -> Result<Unit<'_>> {
    let mut unit = Unit {
        types: Vec::new(),
        imports: Vec::new(),
        functions: Vec::new(),
        bodies: Vec::new(),
        tables: Vec::new(),
        memories: Vec::new(),
        globals: Vec::new(),
        elements: Vec::new(),
        data: Vec::new(),
        exports: HashMap::new(),
        names: Vec::new(),
    };
    for payload in Parser::new(0).parse_all(bytes) {
        match payload? {
            Payload::TypeSection(reader) => {
                for ty in reader.into_iter_err_on_gc_types() {
                    unit.types.push(ty?);
                }
            }
            Payload::ImportSection(reader) => {
                unit.imports = reader.into_imports().collect::<Result<_, _>>()?;
            }
            Payload::FunctionSection(reader) => {
                unit.functions = reader.into_iter().collect::<Result<_, _>>()?;
            }
            Payload::TableSection(reader) => {
                unit.tables = reader.into_iter().collect::<Result<_, _>>()?;
            }
            Payload::MemorySection(reader) => {
                unit.memories = reader.into_iter().collect::<Result<_, _>>()?;
            }
            Payload::GlobalSection(reader) => {
                unit.globals = reader.into_iter().collect::<Result<_, _>>()?;
            }
            Payload::ElementSection(reader) => {
                unit.elements = reader.into_iter().collect::<Result<_, _>>()?;
            }
            Payload::DataSection(reader) => {
                unit.data = reader.into_iter().collect::<Result<_, _>>()?;
            }
            Payload::ExportSection(reader) => {
                for export in reader {
                    let export = export?;
                    unit.exports.insert(export.name, (export.kind, export.index));
                }
            }
            Payload::CustomSection(section) => {
                if let KnownCustom::Name(names) = section.as_known() {
                    for subsection in names {
                        if let Name::Function(names) = subsection? {
                            for name in names {
                                let name = name?;
                                unit.names.push((name.index, name.name));
                            }
                        }
                    }
                }
            }
            Payload::CodeSectionEntry(body) => unit.bodies.push(body),
            Payload::StartSection { .. } => bail!("it has a start function"),
            Payload::TagSection(_) => bail!("it has tags"),
            _ => {}
        }
    }
    Ok(unit)
}

pub fn kind_of(ty: &TypeRef) -> ExternalKind {
    match ty {
        TypeRef::Func(_) | TypeRef::FuncExact(_) => ExternalKind::Func,
        TypeRef::Table(_) => ExternalKind::Table,
        TypeRef::Memory(_) => ExternalKind::Memory,
        TypeRef::Global(_) => ExternalKind::Global,
        TypeRef::Tag(_) => ExternalKind::Tag,
    }
}

impl<'a> Unit<'a> {
    /// The imports of one kind, which come first in its index space.
    pub fn imports_of(&self, kind: ExternalKind) -> impl Iterator<Item = &wasmparser::Import<'a>> {
        self.imports.iter().filter(move |import| kind_of(&import.ty) == kind)
    }
}
