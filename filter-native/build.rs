//! Links the unwinder into the module, because images without a shell or compiler lack
//! `libgcc_s.so.1`: the linker finds a script of that name which refers to the static library.

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var_os("CARGO_CFG_TARGET_ENV").is_some_and(|env| env == "gnu") {
        let directory = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets OUT_DIR"));
        fs::write(directory.join("libgcc_s.so"), "INPUT(-lgcc_eh)\n").expect("OUT_DIR is writable");
        println!("cargo::rustc-link-search=native={}", directory.display());
    }
}
