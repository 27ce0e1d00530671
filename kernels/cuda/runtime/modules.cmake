# Every kernels/cuda/*.cu becomes a fatbin (PTX for compute_80, kept readable; machine code for sm_80 and sm_90), and all of
# them part of the program: modules.c is generated and takes the files in with .incbin. Without nvcc there are none, and
# `--device cuda` says so.
option(LIKENESS_CUDA "CUDA kernels, where nvcc is found" ON)
set(LIKENESS_PTXAS "" CACHE FILEPATH "ptxas of CUDA 12: kernels for its drivers too, R525 and newer (tools/docs/gpu.md)")
# The last place is where tools/dependencies puts the compiler.
find_program(NVCC nvcc PATHS /usr/local/cuda/bin $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin
             ${CMAKE_SOURCE_DIR}/build/cuda-compiler/nvidia/cu13/bin)
set(cuda_folder ${CMAKE_BINARY_DIR}/cuda)
set(cuda_incbin "")
set(cuda_entries "")
set(cuda_fatbins "")
set(cuda_toolkit_major 0)
if(NVCC AND LIKENESS_CUDA)
  message(STATUS "CUDA kernels: ${NVCC}")
  execute_process(COMMAND ${NVCC} --version OUTPUT_VARIABLE nvcc_version)
  string(REGEX MATCH "release ([0-9]+)\\.([0-9]+)" nvcc_version "${nvcc_version}")
  set(cuda_toolkit_major ${CMAKE_MATCH_1})
  # -fmad=false: products and sums round where they are written, as on the CPU; kernels that want fma say fmaf.
  set(NVCC_FLAGS -std=c++17 -O3 -fmad=false -lineinfo -Werror all-warnings)
  set(NVCC_CODE --no-compress -Xptxas -warn-spills -gencode arch=compute_80,code=[compute_80,sm_80] -gencode arch=compute_80,code=sm_90)
  set(older_drivers ${CMAKE_CURRENT_LIST_DIR}/older_drivers.sh)
  if(LIKENESS_PTXAS)
    execute_process(COMMAND ${LIKENESS_PTXAS} --version OUTPUT_VARIABLE ptxas_version COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCH "release ([0-9]+)\\.([0-9]+)" ptxas_version "${ptxas_version}")
    set(cuda_toolkit_major ${CMAKE_MATCH_1})
    message(STATUS "CUDA kernels: for drivers of CUDA ${cuda_toolkit_major} by ${LIKENESS_PTXAS}")
  endif()
  file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/cuda/*.cu)
  file(MAKE_DIRECTORY ${cuda_folder})
  foreach(source ${cuda_sources})
    get_filename_component(name ${source} NAME_WE)
    set(fatbin ${cuda_folder}/${name}.fatbin)
    set(flags ${NVCC_FLAGS} -I${CMAKE_SOURCE_DIR} -MD -MF ${fatbin}.d -MT ${fatbin})
    set(compile ${NVCC} ${flags} ${NVCC_CODE} -fatbin ${source} -o ${fatbin})
    if(LIKENESS_PTXAS)
      set(compile sh ${older_drivers} ${NVCC} ${LIKENESS_PTXAS} ${source} ${fatbin} ${flags})
    endif()
    add_custom_command(
      OUTPUT ${fatbin}
      COMMAND ${compile}
      DEPENDS ${source} ${older_drivers}
      DEPFILE ${fatbin}.d
      COMMENT "nvcc ${name}.cu"
      VERBATIM)
    string(APPEND cuda_incbin "EMBED(${name}, \"${fatbin}\")\n")
    string(APPEND cuda_entries "    {\"${name}\", lk_cuda_fatbin_${name}},\n")
    list(APPEND cuda_fatbins ${fatbin})
  endforeach()
else()
  message(STATUS "CUDA kernels: none, nvcc was not found or LIKENESS_CUDA is off")
endif()
# The kernels' names, from the PTX in the fatbins.
set(cuda_kernels ${cuda_folder}/kernels.inc)
add_custom_command(
  OUTPUT ${cuda_kernels}
  COMMAND ${CMAKE_COMMAND} -DOUT=${cuda_kernels} "-DFATBINS=${cuda_fatbins}" -P ${CMAKE_CURRENT_LIST_DIR}/kernels.cmake
  DEPENDS ${cuda_fatbins} ${CMAKE_CURRENT_LIST_DIR}/kernels.cmake
  VERBATIM)
configure_file(${CMAKE_CURRENT_LIST_DIR}/modules.c.in ${CMAKE_BINARY_DIR}/cuda/modules.c @ONLY)
set_source_files_properties(${CMAKE_BINARY_DIR}/cuda/modules.c PROPERTIES OBJECT_DEPENDS "${cuda_fatbins};${cuda_kernels}" COMPILE_OPTIONS "-I${CMAKE_BINARY_DIR}")
target_sources(lk_kernels PRIVATE ${CMAKE_BINARY_DIR}/cuda/modules.c)

# NVIDIA's libraries as rivals of our kernels (rivals.h): headers now, the libraries at run time.
if(NVCC AND LIKENESS_CUDA)
  get_filename_component(cuda_bin ${NVCC} REALPATH)
  get_filename_component(cuda_bin ${cuda_bin} DIRECTORY)
  find_path(CUBLASLT_INCLUDE cublasLt.h HINTS ${cuda_bin}/../include)
  find_path(CUDNN_INCLUDE cudnn.h HINTS ${cuda_bin}/../include)
endif()
foreach(rival CUBLASLT/linear_cublaslt CUDNN/conv2d_cudnn)
  get_filename_component(header ${rival} DIRECTORY)
  get_filename_component(name ${rival} NAME)
  set(source ${CMAKE_SOURCE_DIR}/kernels/cuda/runtime/${name}.c)
  if(${header}_INCLUDE)
    set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "-isystem;${${header}_INCLUDE};-isystem;${cuda_bin}/../include")
    target_compile_definitions(lk_kernels PRIVATE LIKENESS_${header})
  else()
    message(STATUS "CUDA rivals: no ${name}, its headers were not found")
    set_source_files_properties(${source} PROPERTIES HEADER_FILE_ONLY ON)
  endif()
endforeach()
