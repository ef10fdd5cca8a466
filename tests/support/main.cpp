#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>

#ifdef __SANITIZE_THREAD__
// moodycamel's queues order their memory with fences, which g++'s ThreadSanitizer does not model.
extern "C" const char* __tsan_default_suppressions() { return "race:moodycamel::ReaderWriterQueue"; }
#endif
