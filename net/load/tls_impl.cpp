// Compiles Asio's TLS sources, which must happen in exactly one source file.
#include <boost/asio/ssl/impl/src.hpp>
