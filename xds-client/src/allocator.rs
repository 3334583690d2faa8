//! The memory that glibc's allocator keeps.

/// Returns free pages to the kernel. What a push needs is freed between memory that stays in use, and glibc
/// returns free memory by itself only from the end of its heap.
#[cfg(target_env = "gnu")]
#[expect(
    unsafe_code,
    reason = "a C function without parameters that matter; it moves and frees nothing in use"
)]
pub(super) fn release() {
    // SAFETY: it may be called on any thread at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Other allocators keep little.
#[cfg(not(target_env = "gnu"))]
pub(super) fn release() {}
