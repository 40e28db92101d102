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
  add_compile_options(-fsanitize=${MAYFLY_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${MAYFLY_SANITIZE})
endif()

# mayfly_folder(NAME LINKS ... PRIVATE_LINKS ... TEST_LINKS ... TEST_...): src/NAME/*.cpp without tests becomes mayfly_NAME; its
# *_test.cpp become NAME_test, with the TEST_... that mayfly_test knows.
function(mayfly_folder NAME)
  cmake_parse_arguments(ARG "" "TEST_ENVIRONMENT;TEST_FILTER;TEST_SHARDS" "LINKS;PRIVATE_LINKS;TEST_LINKS" ${ARGN})
  file(GLOB SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${NAME}/*.cpp)
  set(TESTS ${SOURCES})
  list(FILTER SOURCES EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER TESTS INCLUDE REGEX "_test\\.cpp$")
  add_library(mayfly_${NAME} STATIC ${SOURCES})
  target_include_directories(mayfly_${NAME} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(mayfly_${NAME} PUBLIC ${ARG_LINKS} PRIVATE ${ARG_PRIVATE_LINKS})
  if(MAYFLY_SANITIZE STREQUAL "thread")
    mayfly_keep_if_threads(TESTS ${NAME})
  endif()
  if(TESTS AND BUILD_TESTING)
    mayfly_test(${NAME}_test SOURCES ${TESTS} LINKS mayfly_${NAME} ${ARG_TEST_LINKS} ENVIRONMENT ${ARG_TEST_ENVIRONMENT}
      FILTER ${ARG_TEST_FILTER} SHARDS ${ARG_TEST_SHARDS})
  endif()
endfunction()

# mayfly_keep_if_threads(TESTS NAME): empties the list where nothing in src/NAME has to do with threads.
function(mayfly_keep_if_threads TESTS NAME)
  file(GLOB FILES ${CMAKE_SOURCE_DIR}/src/${NAME}/*.cpp ${CMAKE_SOURCE_DIR}/src/${NAME}/*.h)
  foreach(FILE ${FILES})
    file(STRINGS ${FILE} FOUND LIMIT_COUNT 1 REGEX "^#include <(atomic|condition_variable|future|mutex|shared_mutex|thread)>")
    if(FOUND)
      return()
    endif()
  endforeach()
  message(STATUS "${NAME}_test: left out, nothing in ${NAME}/ has to do with threads")
  set(${TESTS} "" PARENT_SCOPE)
endfunction()

# mayfly_test(NAME SOURCES ... LINKS ... ENVIRONMENT NAME=VALUE FILTER -Suite.* SHARDS 2): a program of Google Test, registered
# with CTest case by case. With SHARDS, for what takes long to start, and under sanitizers, where everything does, a process
# runs many cases: every so manieth.
function(mayfly_test NAME)
  cmake_parse_arguments(ARG "" "ENVIRONMENT;FILTER;SHARDS" "SOURCES;LINKS" ${ARGN})
  add_executable(${NAME} ${ARG_SOURCES})
  # Tests ask, the libraries compute: optimising the questions only makes the build longer.
  target_compile_options(${NAME} PRIVATE -O0)
  target_include_directories(${NAME} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_compile_definitions(${NAME} PRIVATE MAYFLY_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_link_libraries(${NAME} PRIVATE ${ARG_LINKS} GTest::gtest GTest::gtest_main)
  set_target_properties(${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(NOT ARG_FILTER)
    set(ARG_FILTER *)
  endif()
  if(NOT ARG_SHARDS AND NOT MAYFLY_SANITIZE)
    include(GoogleTest)
    set(PROPERTIES)
    if(ARG_ENVIRONMENT)
      set(PROPERTIES PROPERTIES ENVIRONMENT ${ARG_ENVIRONMENT})
    endif()
    gtest_discover_tests(${NAME} DISCOVERY_MODE PRE_TEST TEST_FILTER ${ARG_FILTER} ${PROPERTIES})
    return()
  endif()
  if(NOT ARG_SHARDS)
    set(ARG_SHARDS 2)
  endif()
  foreach(SHARD RANGE 1 ${ARG_SHARDS})
    math(EXPR INDEX "${SHARD} - 1")
    add_test(NAME ${NAME}.${SHARD} COMMAND ${NAME} --gtest_filter=${ARG_FILTER})
    set_tests_properties(${NAME}.${SHARD} PROPERTIES
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${INDEX};${ARG_ENVIRONMENT}")
  endforeach()
endfunction()
