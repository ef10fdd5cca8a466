# moodycamel's readerwriterqueue: its own package or target where there is one, else the headers, wherever
# they lie (Debian has no package for CMake). readerwriterqueue_INCLUDE_DIR may name the place.
if(NOT TARGET readerwriterqueue::readerwriterqueue)
  find_package(readerwriterqueue CONFIG QUIET)
endif()
if(NOT TARGET readerwriterqueue::readerwriterqueue)
  find_path(readerwriterqueue_INCLUDE_DIR NAMES readerwriterqueue/readerwriterqueue.h readerwriterqueue.h)
  mark_as_advanced(readerwriterqueue_INCLUDE_DIR)
  if(readerwriterqueue_INCLUDE_DIR)
    add_library(readerwriterqueue::readerwriterqueue INTERFACE IMPORTED)
    target_include_directories(readerwriterqueue::readerwriterqueue
                               INTERFACE ${readerwriterqueue_INCLUDE_DIR})
  endif()
endif()
set(readerwriterqueue_FOUND FALSE)
if(TARGET readerwriterqueue::readerwriterqueue)
  set(readerwriterqueue_FOUND TRUE)
elseif(readerwriterqueue_FIND_REQUIRED)
  message(FATAL_ERROR "moodycamel's readerwriterqueue.h was not found (Debian: libreaderwriterqueue-dev); "
                      "set readerwriterqueue_INCLUDE_DIR to the folder that has it")
endif()
