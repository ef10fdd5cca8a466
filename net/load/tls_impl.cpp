// The one place where Asio's TLS sources are compiled.
#include <boost/asio/ssl/impl/src.hpp>
