// Compiles Beast's sources, which must happen in exactly one source file.
#include <boost/beast/src.hpp>
