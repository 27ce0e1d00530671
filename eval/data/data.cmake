# Every eval/data/*.json, the queries of a report's tables, and the style sheet and script of the report's page, the survey's and the selection's, becomes part of the program: data.c is generated and takes the files in with .incbin.
file(GLOB data_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.json ${CMAKE_CURRENT_LIST_DIR}/../document/*.css
     ${CMAKE_CURRENT_LIST_DIR}/../document/*.js ${CMAKE_CURRENT_LIST_DIR}/../survey/*.css ${CMAKE_CURRENT_LIST_DIR}/../survey/*.js
     ${CMAKE_CURRENT_LIST_DIR}/../intake/tables/*.sql ${CMAKE_CURRENT_LIST_DIR}/../design/*.css ${CMAKE_CURRENT_LIST_DIR}/../design/*.js)
set(data_incbin "")
set(data_entries "")
foreach(source ${data_files})
  get_filename_component(name ${source} NAME_WE)
  string(APPEND data_incbin "EMBED(${name}, \"${source}\")\n")
  string(APPEND data_entries "    {\"${name}\", lk_data_${name}, (size_t)(lk_data_${name}_end - lk_data_${name})},\n")
endforeach()
configure_file(${CMAKE_CURRENT_LIST_DIR}/data.c.in ${CMAKE_BINARY_DIR}/eval/data.c @ONLY)
set_source_files_properties(${CMAKE_BINARY_DIR}/eval/data.c PROPERTIES OBJECT_DEPENDS "${data_files}")
target_sources(lk_eval PRIVATE ${CMAKE_BINARY_DIR}/eval/data.c)
