use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::{Map, Value};

use super::column::{Column, ColumnReader};
use super::rows::Assembly;
use super::schema::Schema;
use super::thrift::{Bytes, Thrift};
use super::{MAX_FILE_BYTES, MAX_FOOTER_BYTES, MAX_GROUP_BYTES, MAX_PAGE_BYTES, Wrong};

/// What a file begins and ends with.
const MAGIC: &[u8; 4] = b"PAR1";

/// A file whose rows are read a group of them at a time.
pub struct ParquetFile {
    file: File,
    bytes: u64,
    schema: Schema,
    groups: std::vec::IntoIter<Group>,
    /// Bytes that values may still take.
    left: u64,
    /// Rows of the group under way.
    rows: std::vec::IntoIter<Map<String, Value>>,
}

/// A group of rows.
struct Group {
    num_rows: usize,
    /// Of each column of values where it lies, in the order of the schema.
    chunks: Vec<Chunk>,
}

struct Chunk {
    start: u64,
    length: usize,
    codec: i64,
    num_values: usize,
}

impl ParquetFile {
    /// Whether what lies at a path begins as a file of Parquet does; not where it cannot be read.
    pub fn is_at(path: &Path) -> bool {
        let mut magic = [0; 4];
        path.is_file()
            && File::open(path).is_ok_and(|mut file| file.read_exact(&mut magic).is_ok())
            && magic == *MAGIC
    }

    /// Reads what a file says of itself.
    ///
    /// # Errors
    ///
    /// What is wrong with it, or of it is not read here.
    pub fn open(mut file: File) -> Result<Self, Wrong> {
        let io = |error: std::io::Error| error.to_string();
        let bytes = file.seek(SeekFrom::End(0)).map_err(io)?;
        let end = bytes.checked_sub(12).ok_or("it is too short")? + 4;
        file.seek(SeekFrom::Start(end)).map_err(io)?;
        let mut tail = [0; 8];
        file.read_exact(&mut tail).map_err(io)?;
        let (length, magic) = tail.split_at(4);
        if magic != MAGIC {
            return Err(match magic {
                b"PARE" => "it is encrypted".to_owned(),
                _ => "it ends early".to_owned(),
            });
        }
        let length = u32::from_le_bytes(length.try_into().expect("these are four bytes"));
        let length = u64::from(length);
        if length > MAX_FOOTER_BYTES || length > end {
            return Err("its description of itself tells a wrong length".to_owned());
        }
        file.seek(SeekFrom::Start(end - length)).map_err(io)?;
        let mut footer = vec![0; usize::try_from(length).expect("it is bounded")];
        file.read_exact(&mut footer).map_err(io)?;
        let description = Bytes::new(&footer).structure(0)?;
        let schema = Schema::read(description.list(2))?;
        let groups = description.list(4).iter().map(|group| Group::read(group, &schema));
        let groups: Vec<Group> = groups.collect::<Result<_, _>>()?;
        Ok(Self {
            file,
            bytes,
            schema,
            groups: groups.into_iter(),
            left: MAX_FILE_BYTES,
            rows: Vec::new().into_iter(),
        })
    }

    /// The next row; absent behind the last.
    ///
    /// # Errors
    ///
    /// What is wrong with the group that it is in.
    pub fn next_row(&mut self) -> Result<Option<Map<String, Value>>, Wrong> {
        loop {
            if let Some(row) = self.rows.next() {
                return Ok(Some(row));
            }
            let Some(group) = self.groups.next() else { return Ok(None) };
            self.rows = self.read(&group)?.into_iter();
        }
    }

    fn read(&mut self, group: &Group) -> Result<Vec<Map<String, Value>>, Wrong> {
        let (mut room, mut unpacked) = (MAX_GROUP_BYTES, MAX_GROUP_BYTES);
        let mut columns: Vec<Column> = Vec::with_capacity(group.chunks.len());
        for (leaf, chunk) in self.schema.leaves.iter().zip(&group.chunks) {
            let told = |what: Wrong| format!("column `{}`: {what}", leaf.path);
            let is_within =
                chunk.start.checked_add(chunk.length as u64).is_some_and(|end| end <= self.bytes);
            if !is_within {
                return Err(told("it leads out of the file".to_owned()));
            }
            let mut pages = vec![0; chunk.length];
            self.file
                .seek(SeekFrom::Start(chunk.start))
                .and_then(|_| self.file.read_exact(&mut pages))
                .map_err(|error| told(error.to_string()))?;
            let (codec, num_values) = (chunk.codec, chunk.num_values);
            let reader =
                ColumnReader { leaf, codec, num_values, room: &mut room, unpacked: &mut unpacked };
            columns.push(reader.read(&pages).map_err(told)?);
        }
        let used = (MAX_GROUP_BYTES - room) as u64;
        self.left = self.left.checked_sub(used).ok_or("the values of the file are too large")?;
        let mut assembly = Assembly::new(&self.schema, columns);
        let rows = (0..group.num_rows).map(|_| assembly.row()).collect::<Result<_, _>>()?;
        assembly.finish()?;
        Ok(rows)
    }
}

impl Group {
    fn read(group: &Thrift<'_>, schema: &Schema) -> Result<Self, Wrong> {
        let num_rows = group.count(3, "the number of rows")?;
        let chunks: Vec<Chunk> = group.list(1).iter().map(Chunk::read).collect::<Result<_, _>>()?;
        if chunks.len() != schema.leaves.len() {
            return Err("a row group has other columns than the file".to_owned());
        }
        // Each row has a level in every column, so that no more room is made than there is.
        let is_told = chunks.iter().all(|chunk| chunk.num_values >= num_rows);
        if !is_told || (chunks.is_empty() && num_rows > 0) {
            return Err("a row group has more rows than values".to_owned());
        }
        Ok(Self { num_rows, chunks })
    }
}

impl Chunk {
    fn read(chunk: &Thrift<'_>) -> Result<Self, Wrong> {
        if chunk.text(1).is_some_and(|path| !path.is_empty()) {
            return Err("its columns lie in other files".to_owned());
        }
        let about = chunk.field(3).ok_or("a column does not tell what it is")?;
        let data = about.count(9, "the place of a column")?;
        let dictionary = about.int(11).and_then(|at| usize::try_from(at).ok()).filter(|at| *at > 0);
        let length = about.count(7, "the size of a column")?;
        if length > MAX_PAGE_BYTES {
            return Err(format!("a column has {length} bytes, at most {MAX_PAGE_BYTES} are read"));
        }
        Ok(Self {
            start: dictionary.map_or(data, |at| at.min(data)) as u64,
            length,
            codec: about.int(4).unwrap_or(-1),
            num_values: about.count(5, "the number of values")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_all_groups_have_a_bound_together() {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/nested_snappy.parquet");
        let open = || ParquetFile::open(File::open(&path).unwrap()).unwrap();
        let mut file = open();
        while file.next_row().unwrap().is_some() {}
        let all = MAX_FILE_BYTES - file.left;
        let mut short = open();
        short.left = all - 1;
        let mut told = Ok(());
        while told.is_ok() {
            match short.next_row() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => told = Err(error),
            }
        }
        assert_eq!(told.unwrap_err(), "the values of the file are too large");
    }
}
