//! The database file: opened only if all of it is readable, and otherwise never changed.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use ::redb::backends::InMemoryBackend;
use ::redb::{
    Database, DatabaseError, ReadableDatabase, ReadableTable, StorageBackend, TableDefinition, TableError,
    TableHandle,
};

use crate::store::Write;
use discovery::entries::Record;
use discovery::objects::Key;

/// Format that this version writes. A higher number is rejected.
pub const FORMAT: u64 = 1;
/// Maps `format` to its number.
const META: TableDefinition<&str, u64> = TableDefinition::new("app-health");
/// Maps `namespace/name` to the record as JSON.
const ENTRIES: TableDefinition<&str, &[u8]> = TableDefinition::new("entries");
/// Page cache in bytes. It is small because the registry holds all records in memory.
const CACHE_BYTES: usize = 4 << 20;
/// Suffix of the file's name until its creation is complete.
const UNFINISHED: &str = ".new";

type Records = Vec<(Key, Record)>;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("store {0}: in use by another process")]
    InUse(String),
    /// The file is damaged, or not a store.
    #[error("store {0}: corrupt: {1}; the file was not changed; move it away to start with an empty store")]
    Corrupt(String, String),
    #[error("store {0}: format {1} is newer than {FORMAT}")]
    Newer(String, u64),
    #[error("store {0}: {1}")]
    Io(String, String),
    /// The file was moved, replaced or deleted while it was in use.
    #[error("store {0}: {1}; nothing is stored: restore the file, or restart to use what is at this path")]
    Replaced(String, &'static str),
}

#[derive(Debug)]
pub(super) struct File {
    path: PathBuf,
    database: Database,
}

/// Opens or creates the file and reads all records; also returns whether it was created.
pub(super) fn open(path: &Path) -> Result<(File, Records, bool), StoreError> {
    let is_new = match fs::metadata(path) {
        Ok(found) => found.len() == 0,
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => return Err(io_error(path, &error)),
    };
    let records = if is_new { Vec::new() } else { read_copy(path)? };
    let file = if is_new { create(path)? } else { reopen(path)? };
    Ok((file, records, is_new))
}

/// Opens a file that must exist.
pub(super) fn reopen(path: &Path) -> Result<File, StoreError> {
    let opened = catch_unwind(|| Database::builder().set_cache_size(CACHE_BYTES).open(path));
    let database = match opened {
        Ok(opened) => opened.map_err(|error| open_error(path, error))?,
        Err(_) => return Err(StoreError::Corrupt(path.display().to_string(), "unreadable pages".to_owned())),
    };
    Ok(File { path: path.to_owned(), database })
}

/// Creates the file under a temporary name and renames it when it is complete, so that a process
/// that is killed meanwhile leaves no file that looks like a damaged store.
fn create(path: &Path) -> Result<File, StoreError> {
    let failed = |error: io::Error| io_error(path, &error);
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(UNFINISHED);
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&unfinished);
    let file = file.map_err(failed)?;
    lock(&file, path)?;
    // Another process may have created it between the check and the lock.
    if fs::metadata(path).is_ok_and(|found| found.len() > 0) {
        return Err(StoreError::InUse(path.display().to_string()));
    }
    file.set_len(0).map_err(failed)?;
    let created = Database::builder().set_cache_size(CACHE_BYTES).create_file(file);
    let file = File { path: path.to_owned(), database: created.map_err(|error| open_error(path, error))? };
    file.commit(&BTreeMap::new())?;
    fs::rename(&unfinished, path).map_err(failed)?;
    // The rename is durable only after a sync of the directory.
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed)?;
    Ok(file)
}

fn lock(file: &fs::File, path: &Path) -> Result<(), StoreError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(fs::TryLockError::WouldBlock) => Err(StoreError::InUse(path.display().to_string())),
        Err(fs::TryLockError::Error(error)) => Err(io_error(path, &error)),
    }
}

/// Reads all records from a copy in memory: opening a file that was not closed cleanly writes to
/// it, and a damaged file must stay unchanged.
fn read_copy(path: &Path) -> Result<Records, StoreError> {
    let bytes = locked_bytes(path)?;
    let corrupt = |reason: &str| StoreError::Corrupt(path.display().to_string(), reason.to_owned());
    let read = AssertUnwindSafe(|| -> Result<Records, StoreError> {
        let memory = InMemoryBackend::new();
        memory.set_len(bytes.len() as u64).map_err(|error| io_error(path, &error))?;
        memory.write(0, &bytes).map_err(|error| io_error(path, &error))?;
        let mut copy =
            Database::builder().create_with_backend(memory).map_err(|error| open_error(path, error))?;
        match copy.check_integrity() {
            Ok(true) => records(path, &copy),
            Ok(false) => Err(corrupt("checksums do not match")),
            Err(error) => Err(open_error(path, error)),
        }
    });
    catch_unwind(read).unwrap_or_else(|_| Err(corrupt("unreadable pages")))
}

/// Reads the file while holding its lock.
fn locked_bytes(path: &Path) -> Result<Vec<u8>, StoreError> {
    let failed = |error: io::Error| io_error(path, &error);
    let mut file = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
    lock(&file, path)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

fn records(path: &Path, database: &Database) -> Result<Records, StoreError> {
    let name = || path.display().to_string();
    let failed = |error: &dyn std::fmt::Display| StoreError::Corrupt(name(), error.to_string());
    let transaction = database.begin_read().map_err(|error| failed(&error))?;
    let format = match transaction.open_table(META) {
        Ok(meta) => meta.get("format").map_err(|error| failed(&error))?.map(|format| format.value()),
        Err(TableError::TableDoesNotExist(_)) => None,
        Err(error) => return Err(failed(&error)),
    };
    match format {
        Some(format) if format > FORMAT => return Err(StoreError::Newer(name(), format)),
        Some(_) => {}
        None => {
            // Either the process was killed before its first batch, or this is not a store of
            // app-health.
            let mut tables = transaction.list_tables().map_err(|error| failed(&error))?;
            return match tables.next() {
                None => Ok(Vec::new()),
                Some(other) => {
                    Err(failed(&format_args!("not a store of app-health, it has a table {}", other.name())))
                }
            };
        }
    }
    let table = transaction.open_table(ENTRIES).map_err(|error| failed(&error))?;
    let mut records = Vec::new();
    for row in table.iter().map_err(|error| failed(&error))? {
        let (key, value) = row.map_err(|error| failed(&error))?;
        let wrong = |reason: &dyn std::fmt::Display| failed(&format_args!("entry {}: {reason}", key.value()));
        let (namespace, name) = key.value().split_once('/').ok_or_else(|| wrong(&"no namespace"))?;
        let record = serde_json::from_slice(value.value()).map_err(|error| wrong(&error))?;
        records.push((Key::new(namespace, name), record));
    }
    Ok(records)
}

impl File {
    /// Writes the whole batch and flushes it to disk, or writes nothing.
    pub(super) fn commit(&self, writes: &BTreeMap<Key, Write>) -> Result<(), StoreError> {
        let write = || -> Result<(), ::redb::Error> {
            let transaction = self.database.begin_write()?;
            {
                transaction.open_table(META)?.insert("format", FORMAT)?;
                let mut table = transaction.open_table(ENTRIES)?;
                for (key, write) in writes {
                    let name = key.to_string();
                    match &write.record {
                        None => drop(table.remove(name.as_str())?),
                        Some(record) => {
                            let bytes = serde_json::to_vec(record).expect("a record can be written as JSON");
                            table.insert(name.as_str(), bytes.as_slice())?;
                        }
                    }
                }
            }
            transaction.commit()?;
            Ok(())
        };
        write().map_err(|error| StoreError::Io(self.path.display().to_string(), first_line(&error)))
    }
}

fn open_error(path: &Path, error: DatabaseError) -> StoreError {
    let name = path.display().to_string();
    match error {
        DatabaseError::DatabaseAlreadyOpen => StoreError::InUse(name),
        DatabaseError::Storage(::redb::StorageError::Io(error)) if !is_invalid_content(&error) => {
            io_error(path, &error)
        }
        other => StoreError::Corrupt(name, first_line(&other)),
    }
}

/// True if the file was readable but its content is invalid.
fn is_invalid_content(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof
    )
}

pub(super) fn io_error(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Io(path.display().to_string(), first_line(error))
}

/// Returns the first line of the error without a full stop.
fn first_line(error: &dyn std::fmt::Display) -> String {
    error.to_string().lines().next().unwrap_or_default().trim_end_matches('.').to_owned()
}
