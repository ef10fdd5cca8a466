// Compiles Asio's sources, which must happen in exactly one source file.
#include <boost/asio/impl/src.hpp>
