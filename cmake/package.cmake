# What `make install` and `make deb` install. mayfly finds mayfly-train beside itself and data in ../share/mayfly.

install(TARGETS mayfly mayfly-train RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY data/catalogs data/profiles data/traces DESTINATION ${CMAKE_INSTALL_DATADIR}/mayfly)
install(FILES data/gpus.yaml data/tariffs.yaml data/weather.yaml DESTINATION ${CMAKE_INSTALL_DATADIR}/mayfly)
install(FILES tools/completion.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME mayfly)
install(FILES tools/completion.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _mayfly)
install(FILES README.md ARCHITECTURE.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/mayfly)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/mayfly RENAME copyright)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/mayfly/docs)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/mayfly USE_SOURCE_PERMISSIONS)
install(DIRECTORY python/mayfly DESTINATION ${CMAKE_INSTALL_DATADIR}/mayfly/python PATTERN __pycache__ EXCLUDE)
# Where Debian's Python looks for packages; the folder of others must not become PYTHONPATH.
install(CODE [[
  set(PACKAGES "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib/python3/dist-packages")
  file(MAKE_DIRECTORY "${PACKAGES}")
  file(CREATE_LINK ../../../share/mayfly/python/mayfly "${PACKAGES}/mayfly" SYMBOLIC)
]])

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME mayfly)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "predictable, cheap training of neural networks on machines that may vanish")
set(CPACK_PACKAGE_CONTACT "the mayfly authors <mayfly@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Without it LibTorch computes with the reference BLAS, thirty times slower.
set(CPACK_DEBIAN_PACKAGE_DEPENDS libopenblas0-openmp)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS python3-torch)
include(CPack)
