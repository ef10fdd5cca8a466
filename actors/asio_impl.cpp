// The one place where Asio's sources are compiled: everything else sees its headers alone.
#include <boost/asio/impl/src.hpp>
