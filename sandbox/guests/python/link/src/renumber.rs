//! The numbers that a unit's code refers to, in the output.

use wasm_encoder::ConstExpr;
use wasm_encoder::reencode::{Error as ReencodeError, Reencode};
use wasmparser::Operator;

use crate::merge::{Items, Linking, Numbers};

/// Puts the output's numbers into a unit's code.
pub struct Renumber<'l, 'a, 'b> {
    pub linking: &'l Linking<'a, 'b>,
    pub items: &'l Items,
    pub numbers: &'l Numbers,
    pub unit: usize,
}

impl Reencode for Renumber<'_, '_, '_> {
    type Error = anyhow::Error;

    fn type_index(&mut self, ty: u32) -> Result<u32, ReencodeError<Self::Error>> {
        Ok(self.numbers.types[ty as usize])
    }

    fn function_index(&mut self, function: u32) -> Result<u32, ReencodeError<Self::Error>> {
        Ok(self.numbers.functions[function as usize])
    }

    fn table_index(&mut self, table: u32) -> Result<u32, ReencodeError<Self::Error>> {
        Ok(self.numbers.tables[table as usize])
    }

    fn memory_index(&mut self, _memory: u32) -> Result<u32, ReencodeError<Self::Error>> {
        Ok(0)
    }

    fn global_index(&mut self, global: u32) -> Result<u32, ReencodeError<Self::Error>> {
        Ok(self.numbers.globals[global as usize])
    }

    fn data_index(&mut self, data: u32) -> Result<u32, ReencodeError<Self::Error>> {
        Ok(self.numbers.first_data + data)
    }

    fn element_index(&mut self, element: u32) -> Result<u32, ReencodeError<Self::Error>> {
        Ok(self.numbers.first_element + element)
    }

    fn const_expr(
        &mut self,
        expr: wasmparser::ConstExpr<'_>,
    ) -> Result<ConstExpr, ReencodeError<Self::Error>> {
        let is_get = |operator: &wasmparser::Result<Operator<'_>>| {
            matches!(operator, Ok(Operator::GlobalGet { .. }))
        };
        if !expr.get_operators_reader().into_iter().any(|operator| is_get(&operator)) {
            return wasm_encoder::reencode::utils::const_expr(self, expr);
        }
        let value = self.linking.value(self.items, self.unit, &expr);
        value.map(ConstExpr::i32_const).map_err(ReencodeError::UserError)
    }
}
