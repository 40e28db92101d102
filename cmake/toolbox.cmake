# Warnings, fast tools where present, and the one way a source folder becomes a library.

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # Paths count from the source tree, so that a second clone finds what the first has compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE_PROGRAM})
endif()
find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM)
  add_link_options(-fuse-ld=mold)
endif()

# A folder's files are compiled as one: what they all include is read once.
set(CMAKE_UNITY_BUILD ${MAYFLY_JUMBO})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 0)

add_compile_options(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Werror)
# Signed indices meet unsigned sizes all over Eigen and Ceres idioms; the other conversions stay checked.
add_compile_options(-Wno-sign-conversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 sees overlapping copies in std::string's operator+ (GCC bug 105329).
  add_compile_options(-Wno-restrict)
  if(MAYFLY_JUMBO)
    # To it every file but the outermost is a header, whose types must not hold what is of an anonymous namespace.
    add_compile_options(-Wno-subobject-linkage)
  endif()
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # libstdc++ 12's std::stable_sort itself uses what C++17 deprecated.
  add_compile_options(-Wno-deprecated-declarations)
endif()
if(MAYFLY_SANITIZE)
  add_compile_definitions(MAYFLY_SANITIZED)  # for tests that would take minutes
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()

# mayfly_folder(NAME LINKS ... PRIVATE_LINKS ... TEST_LINKS ... TEST_ENVIRONMENT NAME=VALUE): src/NAME/*.cpp without tests becomes mayfly_NAME; its *_test.cpp become
# NAME_test, registered with CTest case by case.
function(mayfly_folder NAME)
  cmake_parse_arguments(ARG "" "TEST_ENVIRONMENT" "LINKS;PRIVATE_LINKS;TEST_LINKS" ${ARGN})
  file(GLOB SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${NAME}/*.cpp)
  set(TESTS ${SOURCES})
  list(FILTER SOURCES EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER TESTS INCLUDE REGEX "_test\\.cpp$")
  add_library(mayfly_${NAME} STATIC ${SOURCES})
  target_include_directories(mayfly_${NAME} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(mayfly_${NAME} PUBLIC ${ARG_LINKS} PRIVATE ${ARG_PRIVATE_LINKS})
  if(TESTS AND BUILD_TESTING)
    mayfly_test(${NAME}_test SOURCES ${TESTS} LINKS mayfly_${NAME} ${ARG_TEST_LINKS} ENVIRONMENT ${ARG_TEST_ENVIRONMENT})
  endif()
endfunction()

# mayfly_test(NAME SOURCES ... LINKS ... ENVIRONMENT NAME=VALUE)
function(mayfly_test NAME)
  cmake_parse_arguments(ARG "" "ENVIRONMENT" "SOURCES;LINKS" ${ARGN})
  add_executable(${NAME} ${ARG_SOURCES})
  # Tests ask, the libraries compute: optimising the questions only makes the build longer.
  target_compile_options(${NAME} PRIVATE -O0)
  target_include_directories(${NAME} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_compile_definitions(${NAME} PRIVATE MAYFLY_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_link_libraries(${NAME} PRIVATE ${ARG_LINKS} GTest::gtest GTest::gtest_main)
  set_target_properties(${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  include(GoogleTest)
  if(ARG_ENVIRONMENT)
    gtest_discover_tests(${NAME} DISCOVERY_MODE PRE_TEST PROPERTIES ENVIRONMENT ${ARG_ENVIRONMENT})
  else()
    gtest_discover_tests(${NAME} DISCOVERY_MODE PRE_TEST)
  endif()
endfunction()
