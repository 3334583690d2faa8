//! Reads, checks and compiles a wasm file, once for each content. A file that is older than its
//! sources is rejected, so that no test runs an old filter, and so is a module with imports of
//! another module than `env`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::SystemTime;
use std::{fmt, fs, io};

use sha2::{Digest, Sha256};
use wasmtime::{Config, Engine, Error, ExternType, Linker, Module, Store};

use super::{ALLOWED, FilterFile, Host, compiled, imports};

/// Why a wasm file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The wasm file, or one of its sources, cannot be read.
    #[error("{path} cannot be read; run ./justw wasm to build the filter")]
    Read { path: PathBuf, source: io::Error },
    /// A source was modified after the wasm file was built.
    #[error("{wasm} is older than {newer}; run ./justw wasm to build the filter")]
    Stale { wasm: PathBuf, newer: PathBuf },
    /// Imports outside module `env`, with their modules.
    #[error("imports = {}: not of the module env", .0.join(", "))]
    Imports(Vec<String>),
    /// Not a module of ABI 0.2.1.
    #[error("export = proxy_abi_version_0_2_1: missing")]
    Abi,
    /// Not wasm, or an import with another signature.
    #[error("the module does not compile or link: {0:#}")]
    Wasm(Error),
}

/// A compiled filter for any number of VMs; cheap to clone.
#[derive(Clone)]
pub struct Filter {
    pub(super) module: Module,
    pub(super) linker: Arc<Linker<Host>>,
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filter").finish_non_exhaustive()
    }
}

static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    let mut config = Config::default();
    config.consume_fuel(true);
    Engine::new(&config).expect("the settings are supported on this machine")
});

/// Compiled and linked modules by the hash of their bytes. This only caches a pure function, so tests do not
/// affect each other.
static CACHE: LazyLock<Mutex<HashMap<[u8; 32], Filter>>> = LazyLock::new(Mutex::default);

impl Filter {
    /// Loads the workspace's filter, according to the environment.
    ///
    /// # Errors
    /// As `from_file`.
    pub fn load() -> Result<Self, LoadError> {
        Self::from_file(&FilterFile::from_environment())
    }

    /// Loads the filter of that file.
    ///
    /// # Errors
    /// `Read` if it or a source is missing; `Stale` if a source is newer; otherwise as
    /// `from_bytes`.
    pub fn from_file(file: &FilterFile) -> Result<Self, LoadError> {
        check_fresh(&file.wasm, &file.sources)?;
        Self::cached(&fs::read(&file.wasm).map_err(unreadable(&file.wasm))?, Some(&file.compiled))
    }

    /// Compiles a module from its bytes or from WAT text.
    ///
    /// # Errors
    /// `Imports`, `Abi` or `Wasm` for a module that production would reject.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, LoadError> {
        let wasm = wat::parse_bytes(bytes).map_err(|error| LoadError::Wasm(Error::new(error)))?;
        Self::cached(&wasm, None)
    }

    fn cached(wasm: &[u8], folder: Option<&Path>) -> Result<Self, LoadError> {
        let hash: [u8; 32] = Sha256::digest(wasm).into();
        // The lock is held during compilation, so that other tests wait for the same filter instead
        // of compiling it again.
        let mut compiled = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(filter) = compiled.get(&hash) {
            return Ok(filter.clone());
        }
        let name: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let filter = Self::link(compiled::module(&ENGINE, wasm, folder, &name).map_err(LoadError::Wasm)?)?;
        compiled.insert(hash, filter.clone());
        Ok(filter)
    }

    /// Returns the size of the initial linear memory of a VM, in pages of 64 KiB: data and stack.
    /// The first allocation of the filter adds to it.
    pub fn initial_pages(&self) -> u64 {
        let memory = self.module.get_export("memory");
        memory.and_then(|memory| memory.memory().map(|memory| memory.minimum())).unwrap_or(0)
    }

    fn link(module: Module) -> Result<Self, LoadError> {
        let unlisted: Vec<String> = module
            .imports()
            .filter(|import| import.module() != "env")
            .map(|import| format!("{}.{}", import.module(), import.name()))
            .collect();
        if !unlisted.is_empty() {
            return Err(LoadError::Imports(unlisted));
        }
        if module.get_export("proxy_abi_version_0_2_1").is_none() {
            return Err(LoadError::Abi);
        }
        let mut linker = Linker::new(&ENGINE);
        imports::link(&mut linker).map_err(LoadError::Wasm)?;
        for import in module.imports().filter(|import| !ALLOWED.contains(&import.name())) {
            if let ExternType::Func(kind) = import.ty() {
                imports::link_restricted(&mut linker, import.name(), &kind).map_err(LoadError::Wasm)?;
            }
        }
        // Only an instance shows whether the signatures of the imports match.
        let mut store = Store::new(&ENGINE, Host::default());
        let fuel = store.data().fuel;
        let trial = store.set_fuel(fuel).and_then(|()| linker.instantiate(&mut store, &module));
        trial.map_err(LoadError::Wasm)?;
        Ok(Self { module, linker: Arc::new(linker) })
    }
}

/// Rejects a wasm file that is missing or older than any of its sources. These are files, or
/// folders with all files in them except unit tests, which are not part of the filter and do not
/// cause cargo to rebuild it.
///
/// # Errors
/// `Read` for a path that is missing, `Stale` with the first source that is newer.
pub fn check_fresh(wasm: &Path, sources: &[PathBuf]) -> Result<(), LoadError> {
    let built = modified(wasm)?;
    for source in sources {
        if let Some(newer) = newer_than(built, source)? {
            return Err(LoadError::Stale { wasm: wasm.to_owned(), newer });
        }
    }
    Ok(())
}

/// Returns the first file at or below the path that was modified after that time.
fn newer_than(built: SystemTime, path: &Path) -> Result<Option<PathBuf>, LoadError> {
    // Unit tests are not part of the wasm file; the agent's build script has the same rule for the
    // embedded filter.
    if path.ends_with("tests.rs") {
        return Ok(None);
    }
    if !path.is_dir() {
        return Ok((modified(path)? > built).then(|| path.to_owned()));
    }
    for entry in fs::read_dir(path).map_err(unreadable(path))? {
        let entry = entry.map_err(unreadable(path))?;
        if let Some(newer) = newer_than(built, &entry.path())? {
            return Ok(Some(newer));
        }
    }
    Ok(None)
}

fn modified(path: &Path) -> Result<SystemTime, LoadError> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).map_err(unreadable(path))
}

fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> LoadError {
    let path = path.to_owned();
    move |source| LoadError::Read { path, source }
}
