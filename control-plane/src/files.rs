//! Reads input files, and replaces output files so that either all or none of them change.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::exit::joined;
use serving::exit::Failure;

/// Maximum size of an input in bytes.
const LIMIT: u64 = 64 << 20;
/// File extensions that are read from directories.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// Content of one input.
#[derive(Debug)]
pub struct Source {
    /// The path as given, or `stdin`, for messages.
    pub name: String,
    /// `None` for stdin.
    pub path: Option<PathBuf>,
    /// The content, with U+FFFD for each part that is not UTF-8.
    text: String,
    /// The positions of these parts.
    invalid: Vec<Position>,
    /// True if the content is UTF-16.
    is_utf16: bool,
    /// True if the file was found in a directory, false if it was named.
    pub found: bool,
}

/// A line and a column, counted from 1; the column in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    line: usize,
    column: usize,
}

impl Source {
    fn new(name: String, path: Option<PathBuf>, bytes: Vec<u8>, found: bool) -> Self {
        let is_utf16 = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
        let mut invalid = Vec::new();
        let text = String::from_utf8(bytes).unwrap_or_else(|error| {
            invalid = invalid_parts(error.as_bytes());
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        });
        Self { name, path, text, invalid, is_utf16, found }
    }

    /// Returns the content as text. Documents with an error in [`Self::invalid_in`] are not in UTF-8.
    ///
    /// # Errors
    /// Fails if no part of it is UTF-8.
    pub fn text(&self) -> Result<&str, String> {
        if self.is_utf16 {
            let name = &self.name;
            return Err(format!("{name}:1:1: is not UTF-8 but UTF-16, which PowerShell writes: convert it"));
        }
        Ok(&self.text)
    }

    /// Returns the error about the first part of a document that is not UTF-8. The document begins at
    /// `line`.
    pub fn invalid_in(&self, line: usize, document: &str) -> Option<String> {
        let last = line + document.trim_end_matches('\n').matches('\n').count();
        let first = self.invalid.partition_point(|at| at.line < line);
        let Position { line, column } = self.invalid.get(first).filter(|at| at.line <= last)?;
        Some(format!("{}:{line}:{column}: is not UTF-8", self.name))
    }
}

/// Returns the position of each part that is not UTF-8.
fn invalid_parts(bytes: &[u8]) -> Vec<Position> {
    let (mut line, mut column) = (1, 1);
    let mut found = Vec::new();
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid();
        line += valid.matches('\n').count();
        column = valid.rfind('\n').map_or(column + valid.len(), |newline| valid.len() - newline);
        if !chunk.invalid().is_empty() {
            found.push(Position { line, column });
            column += chunk.invalid().len();
        }
    }
    found
}

/// The inputs that could be read, and an error for each other one.
#[derive(Debug, Default)]
pub struct Sources {
    pub sources: Vec<Source>,
    pub unreadable: Vec<String>,
    /// Inputs of more than 64 MiB.
    pub too_large: Vec<String>,
    /// The directories that were read.
    pub directories: Vec<PathBuf>,
}

impl Sources {
    /// Returns the inputs if all of them could be read.
    ///
    /// # Errors
    /// Names each input that cannot be read or, if there is none, each that is too large.
    pub fn complete(self) -> Result<Vec<Source>, Failure> {
        match (self.unreadable.is_empty(), self.too_large.is_empty()) {
            (true, true) => Ok(self.sources),
            (true, false) => Err(Failure::Data(joined(&self.too_large))),
            (false, _) => Err(Failure::CannotRead(joined(&self.unreadable))),
        }
    }

    pub fn append(&mut self, mut other: Self) {
        self.sources.append(&mut other.sources);
        self.unreadable.append(&mut other.unreadable);
        self.too_large.append(&mut other.too_large);
        self.directories.append(&mut other.directories);
    }
}

/// Reads all inputs; the files of a directory are read in byte order of their names.
pub fn read(names: &[PathBuf], recursive: bool) -> Sources {
    let mut found = Found::default();
    for name in names {
        if name == Path::new("-") {
            found.paths.push((None, false));
        } else {
            found.expand(name, recursive, true);
        }
    }
    let mut read =
        Sources { unreadable: found.unreadable, directories: found.directories, ..Sources::default() };
    for (path, found) in found.paths {
        let name =
            path.as_ref().map_or_else(|| "stdin".to_owned(), |path: &PathBuf| path.display().to_string());
        let bytes = match &path {
            None => read_limited(io::stdin().lock()),
            Some(path) => File::open(path).and_then(read_limited),
        };
        match bytes {
            Ok(bytes) if bytes.len() as u64 > LIMIT => {
                read.too_large.push(format!("{name}: more than 64 MiB"));
            }
            Ok(bytes) => read.sources.push(Source::new(name, path, bytes, found)),
            Err(error) => read.unreadable.push(format!("{name}: {error}")),
        }
    }
    read
}

/// Reads at most one byte more than [`LIMIT`].
fn read_limited(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(LIMIT + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The files to read.
#[derive(Default)]
struct Found {
    /// `None` for stdin, and true if the file was found in a directory.
    paths: Vec<(Option<PathBuf>, bool)>,
    /// Directories that cannot be read, with the error.
    unreadable: Vec<String>,
    directories: Vec<PathBuf>,
}

impl Found {
    fn expand(&mut self, path: &Path, recursive: bool, named: bool) {
        if !path.is_dir() {
            let wanted =
                path.extension().is_some_and(|extension| ENDINGS.iter().any(|ending| extension == *ending));
            // A pipe or a device in a directory is not a manifest, and reading it may never end.
            let is_special = fs::metadata(path).is_ok_and(|found| !found.is_file());
            if named || wanted && !is_special {
                self.paths.push((Some(path.to_owned()), !named));
            }
            return;
        }
        // As in kubectl, links to directories are not followed, so that a loop of links ends.
        if !named && (!recursive || path.is_symlink()) {
            return;
        }
        let entries = fs::read_dir(path).and_then(|entries| {
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()
        });
        match entries {
            Ok(mut entries) => {
                entries.sort();
                self.directories.push(path.to_owned());
                entries.iter().for_each(|entry| self.expand(entry, recursive, false));
            }
            Err(error) => self.unreadable.push(format!("{}: {error}", path.display())),
        }
    }
}

/// A complete file next to the one that it will replace; removed on drop unless it was renamed.
struct Temporary {
    path: PathBuf,
    target: PathBuf,
}

impl Temporary {
    fn write(target: &Path, bytes: &[u8]) -> io::Result<Self> {
        // Symbolic links are kept; their target is replaced.
        let target = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        let permissions = fs::metadata(&target).ok().map(|found| found.permissions());
        if permissions.as_ref().is_some_and(fs::Permissions::readonly) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "is read-only"));
        }
        let mut path = target.as_os_str().to_owned();
        path.push(format!(".{}.app-health", std::process::id()));
        let temporary = Self { path: path.into(), target };
        let mut file = OpenOptions::new().write(true).create_new(true).open(&temporary.path)?;
        file.write_all(bytes)?;
        permissions.map_or(Ok(()), |permissions| file.set_permissions(permissions))?;
        Ok(temporary)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Writes all files: each to a temporary file next to its path first, then all are renamed. Nothing
/// changes before the last temporary file is written.
pub fn write_all(files: &[(PathBuf, String)]) -> Result<(), Failure> {
    let mut written = Vec::new();
    for (path, text) in files {
        written.push(Temporary::write(path, text.as_bytes()).map_err(|error| cannot_write(path, &error))?);
    }
    for Temporary { path, target } in &written {
        fs::rename(path, target).map_err(|error| cannot_write(target, &error))?;
    }
    Ok(())
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::CannotWrite(format!("{}: {error}", path.display()))
}

/// Writes to a file. A regular file is replaced; a pipe or device is written to.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        let written =
            OpenOptions::new().write(true).open(path).and_then(|mut file| file.write_all(text.as_bytes()));
        return written.map_err(|error| cannot_write(path, &error));
    }
    write_all(&[(path.to_owned(), text.to_owned())])
}

pub fn write_stdout(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|error| Failure::CannotWrite(format!("stdout: {error}")))
}

#[cfg(test)]
mod tests;
