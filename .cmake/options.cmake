# What every target of the project is compiled with. Instruction-set flags are not here: files that need them
# carry their own and are chosen at run time.
find_program(WEIR_CCACHE ccache)
if(WEIR_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Without these variables ccache keeps nothing that uses a precompiled header, and finds nothing that
  # another clone compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${WEIR_CCACHE})
endif()
find_program(WEIR_MOLD mold)

add_library(weir_options INTERFACE)
target_include_directories(weir_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(weir_options INTERFACE -Wall -Wextra -Wno-missing-field-initializers
                                              -fno-omit-frame-pointer)
if(WEIR_WERROR)
  target_compile_options(weir_options INTERFACE -Werror)
endif()
if(WEIR_MOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_link_options(weir_options INTERFACE -fuse-ld=mold)
endif()
if(WEIR_SANITIZE STREQUAL "address")
  # The check of types (vptr) reads memory through a pipe. A test that leaves the process no descriptor made
  # it report objects that are well.
  target_compile_options(weir_options INTERFACE -fsanitize=address,undefined -fno-sanitize=vptr
                                                -fno-sanitize-recover=undefined)
  if(NOT WEIR_POINTER_CHECKS)
    target_compile_options(weir_options INTERFACE -fno-sanitize=null,alignment,object-size)
  endif()
  target_link_options(weir_options INTERFACE -fsanitize=address,undefined)
elseif(WEIR_SANITIZE STREQUAL "fuzzer")
  # Only clang has libFuzzer. clang cannot check the types of functions with coroutines in them (LLVM issue
  # 49689). The targets link libFuzzer's main.
  target_compile_options(weir_options INTERFACE -fsanitize=fuzzer-no-link,address,undefined
                                                -fno-sanitize=function -fno-sanitize-recover=undefined)
  target_link_options(weir_options INTERFACE -fsanitize=address,undefined)
elseif(WEIR_SANITIZE STREQUAL "thread")
  # Asio's reference counts end in a fence, which g++'s ThreadSanitizer does not model: it reports a race
  # where the last owner frees. Without std::atomic Asio counts with acquire-release operations instead.
  target_compile_definitions(weir_options INTERFACE BOOST_ASIO_DISABLE_STD_ATOMIC)
  target_compile_options(weir_options INTERFACE -fsanitize=thread -Wno-tsan)
  target_link_options(weir_options INTERFACE -fsanitize=thread)
elseif(NOT WEIR_SANITIZE STREQUAL "")
  message(FATAL_ERROR "WEIR_SANITIZE: '${WEIR_SANITIZE}' is not one of '', address, thread, fuzzer")
endif()

option(WEIR_UNITY "Compile the files of a room and its tests some eight at a time: half the time" OFF)

# weir_batches(TARGET) — compiles the target's files in batches of some eight, where WEIR_UNITY says so. A
# file's batch follows from the file's name alone, and the number of batches is a power of two: a file that
# comes or goes changes its own batch, and no other one is compiled again.
function(weir_batches target)
  if(NOT WEIR_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  list(LENGTH sources files)
  set(batches 1)
  while(batches LESS_EQUAL 1024)
    math(EXPR room "${batches} * 10")
    if(files LESS_EQUAL room)
      break()
    endif()
    math(EXPR batches "${batches} * 2")
  endwhile()
  foreach(source ${sources})
    get_filename_component(path ${source} ABSOLUTE)
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${path})
    string(MD5 print ${path})
    string(SUBSTRING ${print} 0 4 print)
    math(EXPR batch "0x${print} % ${batches}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${batch})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ warns of every coroutine with a lambda that is not in the file it was given, but in an included one.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

# weir_room(NAME LIBS...) — one static library from every .cpp below the current folder.
function(weir_room name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/net/(bus|embed|load)/")  # libraries of their own
  add_library(weir_${name} STATIC ${sources})
  weir_batches(weir_${name})
  target_link_libraries(weir_${name} PUBLIC $<BUILD_INTERFACE:weir_options> ${ARGN})
endfunction()
