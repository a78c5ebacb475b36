# What every target of this project shares. Included once, from the top CMakeLists.txt; CMakePresets.json sets the options.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

option(EINREL_TESTS "Build the tests" ON)
option(EINREL_FUZZ "Build the fuzzers; needs clang" OFF)
option(EINREL_BENCH "Build what bench/kernels starts; needs libdnnl-dev and libopenblas-dev" OFF)
option(EINREL_PYTHON_PACKAGE "Build the Python package; needs nanobind for the Python that is found" OFF)
# On for us; the release preset turns it off, so that a newer compiler's new warning stops no user.
option(CMAKE_COMPILE_WARNING_AS_ERROR "Warnings stop the build" ON)
set(EINREL_SANITIZE "" CACHE STRING "Sanitizers, as in -fsanitize=: address,undefined or thread")
set(EINREL_SANITIZED "" CACHE STRING "The libraries of src/ that they look at; all code where empty")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

find_program(EINREL_CCACHE ccache)
if(EINREL_CCACHE)
  # Another clone or worktree finds what this one compiled: nothing that a compiler sees says in which folder it works.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=true
      "${EINREL_CCACHE}")
  add_compile_options("-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=")
endif()

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
                    -Wdeprecated-copy-dtor)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees overlapping copies inside std::string where there are none (GCC bug 105651).
  add_compile_options(-Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # Loops are said to have independent iterations (vector_loops.h); clang takes that for a wish to vectorise all of them.
  add_compile_options(-Wno-pass-failed)
endif()
if(CMAKE_UNITY_BUILD)
  # Where sources are compiled as one, a local name may hide what another source declares, and types of anonymous
  # namespaces are in a file that seems to be a header.
  add_compile_options(-Wno-shadow $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()
if(EINREL_SANITIZE)
  # Without the three that AddressSanitizer covers or that need class hierarchies: they cost an eighth of the build.
  set(EINREL_SANITIZER_OPTIONS -fsanitize=${EINREL_SANITIZE} -fno-sanitize=null,object-size,vptr -fno-sanitize-recover=all
                               -fno-omit-frame-pointer)
  # At a fixed address: moving what describes all checks to where a program is loaded takes a third of a short run.
  add_link_options(-fsanitize=${EINREL_SANITIZE} $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
  # v[i] past the end of a vector that has spare capacity is no memory error, so no sanitizer sees it.
  set(EINREL_SANITIZER_DEFINITIONS _GLIBCXX_ASSERTIONS)
  if(NOT EINREL_SANITIZED)
    add_compile_options(${EINREL_SANITIZER_OPTIONS})
    add_compile_definitions(${EINREL_SANITIZER_DEFINITIONS})
  endif()
endif()
if(EINREL_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# einrel_runs_once(TARGET) is for code that runs once for a program, not once for an element, a task or a plan that is
# looked at: without the optimisations that take a quarter of its build, and that nobody would notice.
function(einrel_runs_once target)
  # With -O1 GCC takes an empty std::optional for one whose value is read.
  target_compile_options(${target} PRIVATE "$<$<NOT:$<CONFIG:Debug>>:-O1;-Wno-maybe-uninitialized>")
endfunction()

# einrel_library(NAME libraries...) makes einrel_NAME from every .cpp of the calling folder.
function(einrel_library name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  add_library(einrel_${name} STATIC ${sources})
  # Highway compiles these once for each instruction set, by including them again: they cannot be put together.
  foreach(source IN LISTS sources)
    file(STRINGS "${source}" again REGEX "hwy/foreach_target.h")
    if(again)
      set_source_files_properties("${source}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
  if(name IN_LIST EINREL_SANITIZED)
    # Other code is compiled as in build/check, whose objects ccache has. Where nothing touches raw memory, looking for
    # misaligned access costs a fifth of the build and finds nothing.
    target_compile_options(einrel_${name} PRIVATE ${EINREL_SANITIZER_OPTIONS} -O1 -Wno-maybe-uninitialized
                           $<$<NOT:$<IN_LIST:${name},base\;tensor\;kernel\;exec>>:-fno-sanitize=alignment>)
    target_compile_definitions(einrel_${name} PRIVATE ${EINREL_SANITIZER_DEFINITIONS})
  endif()
  target_include_directories(einrel_${name} PUBLIC "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(einrel_${name} PUBLIC ${ARGN})
endfunction()

function(einrel_has_modules result candidate)
  execute_process(COMMAND "${candidate}" -c "import numpy, torch" RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
  if(NOT status EQUAL 0)
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

# einrel_find_python() sets EINREL_PYTHON to an interpreter that has NumPy and PyTorch: the first one on the PATH, or the
# system's. The tests compare files with what NumPy reads and writes, and gradients with PyTorch's.
function(einrel_find_python)
  find_program(EINREL_PYTHON NAMES python3 python VALIDATOR einrel_has_modules
               DOC "Python interpreter that has NumPy and PyTorch")
  if(NOT EINREL_PYTHON)
    message(FATAL_ERROR "No Python interpreter with NumPy and PyTorch was found; the tests need one. Install them "
                        "(apt-get install python3-numpy python3-torch), name it (-DEINREL_PYTHON=/path/to/python3) or "
                        "build without tests (-DEINREL_TESTS=OFF).")
  endif()
  message(STATUS "Python with NumPy and PyTorch: ${EINREL_PYTHON}")
endfunction()
