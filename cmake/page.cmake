# The page of web/, built by Vite, and the API's description become part of the program: nothing of it is needed later.
find_program(NPM_PROGRAM npm REQUIRED)
set(WEB ${CMAKE_SOURCE_DIR}/web)
file(GLOB_RECURSE WEB_SOURCES CONFIGURE_DEPENDS ${WEB}/src/*)
list(APPEND WEB_SOURCES ${WEB}/index.html ${WEB}/vite.config.ts ${WEB}/tsconfig.json ${WEB}/package.json)

add_custom_command(OUTPUT ${WEB}/node_modules/.package-lock.json
  COMMAND ${NPM_PROGRAM} ci --no-audit --no-fund --loglevel=error
  COMMAND ${CMAKE_COMMAND} -E touch ${WEB}/node_modules/.package-lock.json
  DEPENDS ${WEB}/package-lock.json ${WEB}/package.json
  WORKING_DIRECTORY ${WEB} COMMENT "Fetching the packages of web/" VERBATIM)
set(PAGE ${CMAKE_BINARY_DIR}/page/index.html)
add_custom_command(OUTPUT ${PAGE}
  COMMAND ${NPM_PROGRAM} run --silent build -- --outDir ${CMAKE_BINARY_DIR}/page --emptyOutDir --logLevel warn
  COMMAND ${CMAKE_COMMAND} -E touch ${PAGE}
  DEPENDS ${WEB_SOURCES} ${WEB}/node_modules/.package-lock.json
  WORKING_DIRECTORY ${WEB} COMMENT "Building the page" VERBATIM)

# mayfly_embed(TARGET NAME FILE): the file's bytes as an array in a library of its own, which the target links: were it a
# source of the target, all of the target would be compiled only after everything it links.
function(mayfly_embed TARGET NAME FILE)
  set(SOURCE ${CMAKE_BINARY_DIR}/embedded/${NAME}.cpp)
  add_custom_command(OUTPUT ${SOURCE}
    COMMAND ${CMAKE_COMMAND} -D IN=${FILE} -D OUT=${SOURCE} -D NAME=${NAME} -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${FILE} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
  add_library(${NAME} STATIC ${SOURCE})
  target_link_libraries(${TARGET} PRIVATE ${NAME})
endfunction()
mayfly_embed(mayfly_report kPage ${PAGE})
