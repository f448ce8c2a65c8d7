# Third-party libraries, all Debian packages. Static where a package offers it, so that one executable travels.
find_package(Threads REQUIRED)
find_package(Protobuf REQUIRED)
find_path(YAML_INCLUDE yaml-cpp/yaml.h REQUIRED)
find_path(JSON_INCLUDE nlohmann/json.hpp REQUIRED)
find_path(CLI11_INCLUDE CLI/CLI.hpp REQUIRED)
find_path(EIGEN_INCLUDE Eigen/Core PATH_SUFFIXES eigen3 REQUIRED)

add_library(thrice_third_party INTERFACE)
target_link_libraries(thrice_third_party INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
foreach(name sqlite3 xxhash zstd yaml-cpp protobuf-lite z)
  find_library(LIB_${name} NAMES lib${name}.a REQUIRED)
endforeach()
target_link_libraries(thrice_third_party INTERFACE
  ${LIB_yaml-cpp} ${LIB_protobuf-lite} ${LIB_sqlite3} ${LIB_xxhash} ${LIB_zstd} ${LIB_z})
