//! Compiles wasm to machine code, and keeps the machine code of the filter in a file: an unoptimized
//! compiler needs seconds for it, and several test programs load the same filter.

use std::path::{Path, PathBuf};
use std::{fs, io, process};

use wasmtime::{Engine, Error, Module};

/// Returns the module of these bytes. With a folder, its machine code is read from
/// `<folder>/<name>.cwasm`, which is written if it is missing or of another version of wasmtime.
///
/// # Errors
/// If the bytes are not valid wasm. A file that cannot be written is no error.
pub(super) fn module(
    engine: &Engine,
    bytes: &[u8],
    folder: Option<&Path>,
    name: &str,
) -> Result<Module, Error> {
    let Some(folder) = folder else { return Module::new(engine, bytes) };
    let file = folder.join(name).with_extension("cwasm");
    if let Some(module) = read(engine, &file) {
        return Ok(module);
    }
    let module = Module::new(engine, bytes)?;
    // The next test program compiles again if this fails, for example in a read-only checkout.
    let _ = write(&file, &module.serialize()?);
    Ok(module)
}

/// Returns `None` if the file is missing, or if wasmtime rejects its version or settings.
#[expect(unsafe_code, reason = "wasmtime cannot verify machine code; only `write` creates this file")]
fn read(engine: &Engine, file: &Path) -> Option<Module> {
    // SAFETY: the file is in the build folder, and `write` replaces it as a whole.
    unsafe { Module::deserialize_file(engine, file) }.ok()
}

/// Renames a complete file into place, so that a test program that runs at the same time never
/// reads a part of it.
fn write(file: &Path, machine_code: &[u8]) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let partial: PathBuf = file.with_extension(process::id().to_string());
    fs::write(&partial, machine_code)?;
    fs::rename(partial, file)
}

#[cfg(test)]
mod tests;
