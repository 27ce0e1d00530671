# What `cmake --install` puts in place: the program with its manual page and completions, the library of everything below
# the command line and the audit (liblikeness.a, liblikeness.so, headers, likeness.pc), and the Python package, which loads
# the shared library. likeness.pc links the archive: a program should carry the kernels that its results were made with.
# The shared library's name has the version, since its structs may change with each.
set(documents ${CMAKE_BINARY_DIR}/completions)

add_library(liblikeness STATIC $<TARGET_OBJECTS:lk_engine> $<TARGET_OBJECTS:lk_kernels> $<TARGET_OBJECTS:lk_weights>
                               $<TARGET_OBJECTS:lk_models>)
set_target_properties(liblikeness PROPERTIES OUTPUT_NAME likeness LINKER_LANGUAGE C)
add_library(liblikeness_shared SHARED $<TARGET_OBJECTS:lk_engine> $<TARGET_OBJECTS:lk_kernels>
                                      $<TARGET_OBJECTS:lk_weights> $<TARGET_OBJECTS:lk_models>)
set(exports ${CMAKE_CURRENT_LIST_DIR}/likeness.map)
set_target_properties(liblikeness_shared PROPERTIES OUTPUT_NAME likeness LINKER_LANGUAGE C VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION} LINK_DEPENDS ${exports})
# By name: the program's OpenMP, and with LIKENESS_STATIC all else, are archives that a shared object cannot take. An RPATH,
# unlike a RUNPATH, is searched for what these libraries need too.
target_link_options(liblikeness_shared PRIVATE -fopenmp -Wl,--version-script=${exports} -Wl,--disable-new-dtags)
target_link_libraries(liblikeness_shared PRIVATE jpeg png16 z webpdemux webp lcms2 cjson crypto utf8proc pcre2-8 Threads::Threads
                                                 ${CMAKE_DL_LIBS} m)
set_target_properties(liblikeness_shared PROPERTIES INSTALL_RPATH "$ORIGIN/likeness" BUILD_WITH_INSTALL_RPATH ON)

# The header that a user includes, likeness.h, and those that it includes.
set(headers models/likeness.h)
set(at 0)
list(LENGTH headers n)
while(at LESS n)
  list(GET headers ${at} header)
  file(STRINGS ${CMAKE_SOURCE_DIR}/${header} included REGEX "^#include \"")
  list(TRANSFORM included REPLACE "^#include \"(.*)\".*" "\\1")
  list(APPEND headers ${included})
  list(REMOVE_DUPLICATES headers)
  list(LENGTH headers n)
  math(EXPR at "${at} + 1")
endwhile()

set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${headers}) # they may include others
configure_file(${CMAKE_CURRENT_LIST_DIR}/likeness.pc.in ${CMAKE_BINARY_DIR}/likeness.pc @ONLY)
install(TARGETS likeness RUNTIME DESTINATION bin)
if(LIKENESS_STATIC) # Debian has no static cJSON and LittleCMS: they go along
  list(GET CJSON_LINK_LIBRARIES 0 cjson)
  list(GET LCMS_LINK_LIBRARIES 0 lcms)
  file(REAL_PATH ${cjson} cjson)
  file(REAL_PATH ${lcms} lcms)
  install(FILES ${cjson} DESTINATION lib/likeness RENAME libcjson.so.1)
  install(FILES ${lcms} DESTINATION lib/likeness RENAME liblcms2.so.2)
  set_target_properties(likeness PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/likeness")
endif()
install(TARGETS liblikeness ARCHIVE DESTINATION lib)
if(NOT LIKENESS_STATIC) # there it is in the wheel, with what it needs
  install(TARGETS liblikeness_shared LIBRARY DESTINATION lib)
  install(DIRECTORY tools/python/likeness DESTINATION lib/likeness/python FILES_MATCHING PATTERN "*.py" PATTERN "py.typed")
endif()
foreach(header ${headers})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION include/likeness/${folder})
endforeach()
install(FILES models/likeness.h DESTINATION include/likeness)
install(FILES ${CMAKE_BINARY_DIR}/likeness.pc DESTINATION lib/pkgconfig)
install(FILES ${documents}/likeness.1 DESTINATION share/man/man1)
install(FILES ${documents}/likeness.bash DESTINATION share/bash-completion/completions RENAME likeness)
install(FILES ${documents}/likeness.zsh DESTINATION share/zsh/site-functions RENAME _likeness)
install(FILES ${documents}/likeness.fish DESTINATION share/fish/vendor_completions.d)
install(FILES tools/examples/edit.c DESTINATION share/doc/likeness/examples)
install(DIRECTORY tools/python/examples/ DESTINATION share/doc/likeness/examples FILES_MATCHING PATTERN "*.ipynb")
install(FILES LICENSE README.md CITATION.cff CHANGELOG.md DESTINATION share/doc/likeness)

# Packages: `cpack -G TGZ` makes an archive that runs from any folder, `cpack -G DEB` a Debian package. tools/package builds
# both, and a wheel, with what can be linked statically.
set(CPACK_PACKAGE_NAME likeness)
set(CPACK_PACKAGE_VENDOR likeness)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Instruction-based image editing, and its audit")
set(CPACK_PACKAGE_FILE_NAME "likeness-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON) # tests are not packed
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "the likeness developers <likeness@localhost>")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# What commands open when they need it: judges over the network, the survey's server, drawings as PNG.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libcurl3-gnutls | libcurl4, libmicrohttpd12, librsvg2-2")
include(CPack)
