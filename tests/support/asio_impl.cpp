// The one place where the tests of the runtime compile Asio: everything else sees its headers alone.
#include <boost/asio/impl/src.hpp>
