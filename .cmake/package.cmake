# cmake --install, and what find_package(weir COMPONENTS …) finds afterwards. A component has the same name in
# both, in WEIR_COMPONENTS and in cmake --install --component.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weir)

# require_built(NAME TARGETS...): cmake --install says which command builds what the component lacks.
function(require_built name)
  list(JOIN ARGN " " targets)
  foreach(target ${ARGN})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "INTERFACE_LIBRARY")
      continue()
    endif()
    install(CODE "
      if(NOT EXISTS \"$<TARGET_FILE:${target}>\")
        message(FATAL_ERROR \"the component '${name}' is not built yet; this builds it:\\n\"
                            \"  cmake --build ${PROJECT_BINARY_DIR} --target ${targets}\")
      endif()" COMPONENT ${name})
  endforeach()
endfunction()

# install_component(NAME TARGETS...)
function(install_component name)
  require_built(${name} ${ARGN})
  install(TARGETS ${ARGN} EXPORT weir-${name} COMPONENT ${name})
  install(EXPORT weir-${name} NAMESPACE weir:: DESTINATION ${package_dir} COMPONENT ${name})
endfunction()

install_component(runtime weir_runtime)
install(DIRECTORY actors/runtime/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weir COMPONENT runtime
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

# The libraries are static: a program that links one links its dependencies too.
set(weir_engine_dependencies "")
if(WEIR_ENGINE)
  set(parts weir_kernels weir_core weir_actors weir_engine)
  if(TARGET weir_cuda)
    list(APPEND parts weir_cuda)
    string(APPEND weir_engine_dependencies "  find_dependency(CUDAToolkit)\n")
  endif()
  install_component(engine ${parts})
  install(FILES net/embed/weir/engine.hpp net/embed/weir/saved_handler.hpp
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weir COMPONENT engine)
endif()
if(WEIR_SERVER)
  install_component(server weir_net weir_server)
  install(FILES net/embed/weir/server.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weir COMPONENT server)
endif()
if(WEIR_COMMAND)
  require_built(command weir)
  install(TARGETS weir COMPONENT command)
  install(DIRECTORY models/rill DESTINATION ${CMAKE_INSTALL_DATADIR}/weir/models COMPONENT command)
endif()

configure_file(.cmake/weir-config.cmake.in ${PROJECT_BINARY_DIR}/weir-config.cmake @ONLY)
# Until 1.0 a minor version may change names.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weir-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weir-config.cmake ${PROJECT_BINARY_DIR}/weir-config-version.cmake
              .cmake/Findreaderwriterqueue.cmake
        DESTINATION ${package_dir} COMPONENT runtime)
