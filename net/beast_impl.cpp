// The one place where Beast's sources are compiled: everything else sees its headers alone.
#include <boost/beast/src.hpp>
