// moodycamel's queues order their memory with fences, which g++'s ThreadSanitizer does not model.
extern "C" const char* __tsan_default_suppressions() { return "race:moodycamel::ReaderWriterQueue"; }
