// moodycamel's queues order their memory with fences, which g++'s ThreadSanitizer does not model. In
// ConcurrentQueue such a fence says that a block is empty, so that a producer may fill it again.
// cnats reads and writes a TLS connection on two threads, and neither cnats nor OpenSSL is compiled for
// ThreadSanitizer, which sees their memory and not their locks.
extern "C" const char* __tsan_default_suppressions() {
  return "race:moodycamel::ReaderWriterQueue\n"
         "race:moodycamel::ConcurrentQueue*::ImplicitProducer::enqueue\n"
         "race:libssl.so\n"
         "race:libcrypto.so\n";
}
