# find_package(einrel): the target einrel::einrel. It needs no other package: the library has in it what it is made of,
# and finds the shared libraries of the system by itself.
include("${CMAKE_CURRENT_LIST_DIR}/einrelTargets.cmake")
