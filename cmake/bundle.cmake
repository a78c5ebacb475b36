# bundle(FOLDER SYSTEM FILES...): copies into a folder of what is installed what these files need beside the libraries whose
# names begin so, such as "libstdc\\+\\+", and the C library, which no program can bring.
function(bundle folder system)
  file(GET_RUNTIME_DEPENDENCIES LIBRARIES ${ARGN} RESOLVED_DEPENDENCIES_VAR found
       PRE_EXCLUDE_REGEXES "^libeinrel\\." "^ld-linux" "^lib(c|m|mvec|dl|rt|pthread|resolv|util|anl)\\.so" ${system})
  set(libs "${CMAKE_INSTALL_PREFIX}/${folder}")
  file(MAKE_DIRECTORY "${libs}")
  foreach(library IN LISTS found)
    cmake_path(GET library FILENAME name)
    file(REAL_PATH "${library}" file)
    file(COPY_FILE "${file}" "${libs}/${name}")
    # One with a path of its own looks nowhere else for what it needs.
    set(path "")
    file(READ_ELF "${libs}/${name}" RUNPATH path CAPTURE_ERROR ignored)
    if(path AND NOT path STREQUAL "$ORIGIN")
      file(RPATH_CHANGE FILE "${libs}/${name}" OLD_RPATH "${path}" NEW_RPATH "$ORIGIN")
    endif()
  endforeach()
endfunction()
