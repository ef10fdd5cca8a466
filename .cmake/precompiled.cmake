# Headers that nearly every file of a room includes are compiled once a target. Each list contains the one
# before it.
#
# A file still includes what it uses: -DWEIR_PRECOMPILED_HEADERS=OFF builds without them, and shows who does
# not.
option(WEIR_PRECOMPILED_HEADERS
       "Precompile the headers of Boost and the standard library that a room uses" ON)

set(weir_headers_std <algorithm> <chrono> <functional> <map> <memory> <optional> <span> <string>
                     <string_view> <variant> <vector>)
set(weir_headers_core ${weir_headers_std} <fmt/format.h>)
set(weir_headers_asio ${weir_headers_core} <boost/asio/any_io_executor.hpp> <boost/asio/awaitable.hpp>
                      <boost/asio/co_spawn.hpp> <boost/asio/detached.hpp> <boost/asio/io_context.hpp>
                      <boost/asio/post.hpp> <boost/asio/redirect_error.hpp> <boost/asio/steady_timer.hpp>
                      <boost/asio/use_awaitable.hpp>)
set(weir_headers_beast ${weir_headers_asio} <boost/asio/ip/tcp.hpp> <boost/asio/write.hpp>
                       <boost/beast/core/flat_buffer.hpp> <boost/beast/core/tcp_stream.hpp>
                       <boost/beast/http.hpp> <boost/json.hpp>)

# weir_precompile(TARGET std|core|asio|beast [HEADERS...])
# weir_precompile(TARGET TARGET): those of another target, which has the same flags and definitions.
function(weir_precompile target list)
  if(WEIR_PRECOMPILED_HEADERS AND TARGET ${list})
    target_precompile_headers(${target} REUSE_FROM ${list})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${target} PRIVATE -fpch-preprocess)
    endif()
    return()
  endif()
  if(WEIR_PRECOMPILED_HEADERS)
    target_precompile_headers(${target} PRIVATE ${weir_headers_${list}} ${ARGN})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${target} PRIVATE -fpch-preprocess)  # for ccache
    endif()
  endif()
endfunction()
