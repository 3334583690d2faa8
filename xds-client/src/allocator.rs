//! The memory that glibc's allocator keeps. Other allocators keep little.

/// Lets all threads use the same heap, of which glibc otherwise gives each thread its own. They allocate
/// rarely at the same time. To be called while the program has one thread.
#[expect(unsafe_code, reason = "a C function with numbers only")]
pub fn use_one_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it changes a number of the allocator, and no other thread allocates.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Returns free pages to the kernel. What a push needs is freed between memory that stays in use, and glibc
/// returns free memory by itself only from the end of its heap.
#[expect(
    unsafe_code,
    reason = "a C function without parameters that matter; it moves and frees nothing in use"
)]
pub(super) fn release() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it may be called on any thread at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
