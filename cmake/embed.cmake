# cmake -D IN=FILE -D OUT=FILE.cpp -D NAME=kPage -P embed.cmake: the file's bytes as an array of this name.
file(READ ${IN} BYTES HEX)
string(LENGTH "${BYTES}" LENGTH)
math(EXPR SIZE "${LENGTH} / 2")
string(REGEX REPLACE "(..)" "0x\\1," BYTES "${BYTES}")
file(WRITE ${OUT}
  "#include <cstddef>\nnamespace mayfly {\nextern const unsigned char ${NAME}[];\nextern const std::size_t ${NAME}Size;\n"
  "const unsigned char ${NAME}[] = {${BYTES}0};\nconst std::size_t ${NAME}Size = ${SIZE};\n}\n")
