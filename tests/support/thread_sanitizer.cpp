// moodycamel's queues order their memory with fences, which g++'s ThreadSanitizer does not model. In
// ConcurrentQueue such a fence says that a block is empty, so that a producer may fill it again.
extern "C" const char* __tsan_default_suppressions() {
  return "race:moodycamel::ReaderWriterQueue\n"
         "race:moodycamel::ConcurrentQueue*::ImplicitProducer::enqueue\n";
}
