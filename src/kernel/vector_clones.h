#pragma once

// A function marked so is compiled several times and the loader picks what the processor can do. (ThreadSanitizer
// cannot start programs that choose functions at load time.)
#if defined(__has_feature)
#define EINREL_UNDER_TSAN __has_feature(thread_sanitizer)
#elif defined(__SANITIZE_THREAD__)
#define EINREL_UNDER_TSAN 1
#else
#define EINREL_UNDER_TSAN 0
#endif

#if defined(__x86_64__) && defined(__linux__) && !EINREL_UNDER_TSAN
#define EINREL_VECTOR_CLONES [[gnu::target_clones("default", "avx2", "avx512f")]]
#else
#define EINREL_VECTOR_CLONES
#endif
