# The tests, the header examples and the fuzz targets; included by CMakeLists.txt, paths are those of the root.
enable_testing()
set(STK_TEST_ENVIRONMENT
  "XDG_CACHE_HOME=${CMAKE_BINARY_DIR}/cache"
  "ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:allocator_may_return_null=1"
  "UBSAN_OPTIONS=print_stacktrace=1"
  "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1")

# The label `threaded` picks what is worth a run under ThreadSanitizer (make test TSAN=1).
set(STK_THREADED "queue|pool$|trace|rng|program|owners|halves|stream|thread|parallel|islands|eager|step$|placement")

# What runs programs runs a second time on the test device apart:0 (src/device/apart), with the same expectations.
set(STK_ON_APART "^(graph|layers|train|watch)$") # folders
set(STK_APART_ENVIRONMENT "STOKER_APART=1" "STOKER_DEVICE=apart:0" "STOKER_APART_LATENCY=1")

# Seconds for one test; a sanitizer on a busy machine takes many times as long. What drivers of OpenCL keep for ever is not our leak.
set(STK_TEST_SECONDS 300)
if(STOKER_SANITIZE)
  set(STK_TEST_SECONDS 1500)
  list(APPEND STK_TEST_ENVIRONMENT "LSAN_OPTIONS=print_suppressions=0:suppressions=${CMAKE_SOURCE_DIR}/test/leaks_of_others.txt")
endif()

function(stk_add_test name label)
  add_test(NAME ${name} COMMAND ${ARGN})
  if(name MATCHES "${STK_THREADED}")
    list(APPEND label threaded)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${STK_TEST_SECONDS} SKIP_RETURN_CODE 77 LABELS "${label}"
    ENVIRONMENT "${STK_TEST_ENVIRONMENT}")
endfunction()

# Where a loader of OpenCL is installed: a library in front of it that fails on order, and tests that run programs run once more
# on opencl:0. Kernels are compiled once and kept (the first run takes minutes); a driver without devices is no failure.
find_file(STK_OPENCL_LOADER libOpenCL.so.1 PATHS /usr/lib /usr/lib64
  PATH_SUFFIXES ${CMAKE_LIBRARY_ARCHITECTURE})
if(STK_OPENCL_LOADER AND NOT STOKER_SANITIZE AND NOT STOKER_FUZZ)
  add_library(stk_faulty_opencl MODULE test/device/faulty_opencl.c)
  target_link_libraries(stk_faulty_opencl PRIVATE stk_settings ${STK_OPENCL_LOADER} ${CMAKE_DL_LIBS})
  target_link_options(stk_faulty_opencl PRIVATE -Wl,--no-as-needed)
  set(STK_FAULTY "$<TARGET_FILE:stk_faulty_opencl>")
  set(STK_ON_OPENCL "^test_(eager|training|golden_models|golden_training)$")
  # A CUDA driver and compiler that are none, over the same device (test/device/fake_cuda.h): gpu:0.
  add_library(stk_fake_cuda MODULE test/device/fake_cuda.c test/device/fake_launch.c test/device/fake_nvrtc.c)
  target_link_libraries(stk_fake_cuda PRIVATE stk_settings ${CMAKE_DL_LIBS} Threads::Threads)
  set(STK_FAKE_CUDA "$<TARGET_FILE:stk_fake_cuda>")
  set(STK_CUDA_ENVIRONMENT "STOKER_CUDA=${STK_FAKE_CUDA}" "STOKER_NVRTC=${STK_FAKE_CUDA}")
  # Golden models on it: one of each kind, all of them where somebody asks (half an hour when nothing is compiled yet).
  option(STOKER_CUDA_ALL "every golden model and failing allocation on the CUDA stand-in" OFF)
  set(STK_ON_CUDA "^test_(golden_models|golden_training)$")
  if(STOKER_CUDA_ALL)
    set(STK_ON_CUDA "^test_(golden_models|golden_training|training|eager)$") # with memory that runs out everywhere
  else()
    list(APPEND STK_CUDA_GOLDEN "STK_GOLDEN_MODEL=dense_softmax,conv2d.npz,lstm_stack,transformer_block,batch_normalization.npz,optimizer_adam.npz,mixed_bfloat16_mlp,loss_mse")
  endif()
else()
  message(STATUS "no libOpenCL.so.1: nothing is tested on OpenCL (apt-get install pocl-opencl-icd ocl-icd-libopencl1)")
  set(STK_FAULTY "none")
  set(STK_ON_OPENCL "^$")
  set(STK_FAKE_CUDA "none")
  set(STK_ON_CUDA "^$")
endif()

file(GLOB_RECURSE STK_TESTS CONFIGURE_DEPENDS test/test_*.c)
foreach(file ${STK_TESTS})
  cmake_path(GET file STEM name)
  cmake_path(GET file PARENT_PATH folder)
  cmake_path(GET folder FILENAME label)
  if(label IN_LIST STK_LEFT_OUT OR (STOKER_SANITIZE STREQUAL "thread" AND NOT name MATCHES "${STK_THREADED}"))
    continue() # would be built and not run
  endif()
  stk_inside_program(${name} ${file} test)
  stk_add_test(${name} ${label} ${name})
  # (what the doctor says about the CPU is not what it says about another device: test_doctor_devices is for those; threads are the CPU's)
  if(label MATCHES "${STK_ON_APART}" AND NOT name MATCHES "^test_(doctor|device_models|many_threads|scaling)$") # once more on a device with memory and a queue of its own
    stk_add_test(${name}_apart "${label};apart" ${name})
    set_tests_properties(${name}_apart PROPERTIES TIMEOUT 600
      ENVIRONMENT "${STK_TEST_ENVIRONMENT};${STK_APART_ENVIRONMENT}")
  endif()
  if(name MATCHES "${STK_ON_OPENCL}")
    stk_add_test(${name}_opencl "${label};opencl" ${name})
    set_tests_properties(${name}_opencl PROPERTIES TIMEOUT 1800
      ENVIRONMENT "${STK_TEST_ENVIRONMENT};STOKER_DEVICE=opencl:0")
  endif()
  if(name MATCHES "${STK_ON_CUDA}")
    stk_add_test(${name}_cuda "${label};cuda" ${name})
    set_tests_properties(${name}_cuda PROPERTIES TIMEOUT 1800
      ENVIRONMENT "${STK_TEST_ENVIRONMENT};${STK_CUDA_ENVIRONMENT};STOKER_DEVICE=gpu:0;${STK_CUDA_GOLDEN}")
  endif()
  if(name STREQUAL "test_cuda")
    target_compile_definitions(test_cuda PRIVATE STK_FAKE_CUDA="${STK_FAKE_CUDA}")
    set_tests_properties(test_cuda PROPERTIES TIMEOUT 900 LABELS "device;cuda")
  endif()
  if(name STREQUAL "test_tiles")
    target_compile_definitions(test_tiles PRIVATE STK_FAKE_CUDA="${STK_FAKE_CUDA}")
    set_tests_properties(test_tiles PROPERTIES TIMEOUT 900 LABELS "device;opencl;cuda")
    if(STOKER_SANITIZE)
      set_property(TEST test_tiles APPEND PROPERTY ENVIRONMENT "STOKER_OPENCL=")
    endif()
  endif()
  if(name STREQUAL "test_opencl")
    target_compile_definitions(test_opencl PRIVATE STK_FAULTY="${STK_FAULTY}")
    set_tests_properties(test_opencl PROPERTIES TIMEOUT 900)
  endif()
  if(name STREQUAL "test_device_models") # compiles some hundred kernels when it first runs
    set_tests_properties(${name} PROPERTIES TIMEOUT 1800 LABELS "train;opencl")
    if(STOKER_SANITIZE)
      set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "STOKER_OPENCL=")
    endif()
  endif()
  if(name STREQUAL "test_neighbours") # some 4000 small models: half a minute, several on a busy machine
    set_tests_properties(${name} ${name}_apart PROPERTIES TIMEOUT 900)
    set_property(TEST ${name}_apart APPEND PROPERTY ENVIRONMENT "STOKER_APART_LATENCY=0")
  endif()
  if(name MATCHES "^test_(doctor|stream_tune)$") # they measure: nothing may run beside them
    set_tests_properties(${name} PROPERTIES RUN_SERIAL TRUE)
  endif()
endforeach()

if(STOKER_SANITIZE STREQUAL "thread")
  return()
endif()

# Examples are programs of users: their include path has the public headers only.
file(GLOB STK_EXAMPLES CONFIGURE_DEPENDS examples/*.c)
foreach(file ${STK_EXAMPLES})
  cmake_path(GET file STEM name)
  add_executable(example_${name} ${file})
  set_target_properties(example_${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/examples)
  target_compile_options(example_${name} PRIVATE ${STK_WARNINGS})
  target_link_libraries(example_${name} PRIVATE stoker_static m)
  stk_add_test(example_${name} examples example_${name})
endforeach()

# Fuzz targets. Without libFuzzer each gets a main that replays its seeds, as one more test.
file(GLOB STK_FUZZ CONFIGURE_DEPENDS test/fuzz/fuzz_*.c)
if("fuzz" IN_LIST STK_LEFT_OUT)
  set(STK_FUZZ "")
endif()
foreach(file ${STK_FUZZ})
  cmake_path(GET file STEM name)
  stk_inside_program(${name} ${file} fuzz)
  if(STOKER_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${name} PRIVATE test/fuzz/replay.c)
    string(REGEX REPLACE "^fuzz_" "" seeds ${name})
    stk_add_test(${name}_seeds fuzz ${name} ${CMAKE_SOURCE_DIR}/test/fuzz/seeds/${seeds})
  endif()
endforeach()

if(STOKER_SANITIZE OR STOKER_FUZZ OR CMAKE_CROSSCOMPILING)
  return()
endif()

# The Python package: one test per file of test/python, in the venv that tools/python makes. 77: there is none here.
file(GLOB STK_PYTHON_TESTS CONFIGURE_DEPENDS test/python/test_*.py)
if("python" IN_LIST STK_LEFT_OUT)
  set(STK_PYTHON_TESTS "")
endif()
foreach(file ${STK_PYTHON_TESTS})
  cmake_path(GET file STEM name)
  string(REGEX REPLACE "^test_" "python_" name ${name})
  add_test(NAME ${name} COMMAND ${CMAKE_SOURCE_DIR}/tools/python-test ${CMAKE_BINARY_DIR} ${file})
  set_tests_properties(${name} PROPERTIES TIMEOUT 600 LABELS python SKIP_RETURN_CODE 77)
endforeach()

# Public headers: each stands alone as C11 and as C++, and the example it opens with compiles.
find_program(STOKER_PYTHON python3 REQUIRED)
check_language(CXX)
if(CMAKE_CXX_COMPILER)
  enable_language(CXX)
  set(STK_HEADER_LANGUAGES c cpp)
else()
  set(STK_HEADER_LANGUAGES c)
endif()
file(GLOB STK_HEADERS CONFIGURE_DEPENDS include/stoker/*.h)
if("headers" IN_LIST STK_LEFT_OUT)
  set(STK_HEADERS "")
endif()
set(STK_HEADER_SOURCES "")
set(STK_HEADER_EXAMPLES "")
foreach(file ${STK_HEADERS})
  cmake_path(GET file STEM name)
  foreach(language ${STK_HEADER_LANGUAGES})
    set(alone ${CMAKE_BINARY_DIR}/headers/alone_${name}.${language})
    # Twice, so that a missing include guard shows.
    file(CONFIGURE OUTPUT ${alone} CONTENT
      "#include \"stoker/${name}.h\"\n#include \"stoker/${name}.h\"\n")
    list(APPEND STK_HEADER_SOURCES ${alone})
  endforeach()
  set(example ${CMAKE_BINARY_DIR}/headers/example_${name}.c)
  add_custom_command(OUTPUT ${example}
    COMMAND ${STOKER_PYTHON} tools/header_example.py include/stoker/${name}.h ${example}
    DEPENDS ${file} tools/header_example.py WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} VERBATIM)
  list(APPEND STK_HEADER_EXAMPLES ${example})
endforeach()
# These open files that their reader has: compiled, not run.
set(STK_NEEDS_FILES "example_(csv|data|files|picture|records|watch)[.]c$")
if(STK_HEADER_SOURCES)
  add_library(stk_headers OBJECT ${STK_HEADER_SOURCES})
  set_target_properties(stk_headers PROPERTIES C_EXTENSIONS OFF CXX_STANDARD 11 CXX_EXTENSIONS OFF)
  target_include_directories(stk_headers PRIVATE include)
  target_compile_options(stk_headers PRIVATE -Wall -Wextra -Wpedantic -Werror)
endif()
# Examples may leave a status unread, for brevity; anything else that warns is an error.
set(STK_EXAMPLE_WARNINGS -Wall -Werror -Wno-unused-result)
set(STK_COMPILED_EXAMPLES "")
foreach(file ${STK_HEADER_EXAMPLES})
  if(NOT STOKER_RUN_HEADER_EXAMPLES OR file MATCHES "${STK_NEEDS_FILES}")
    list(APPEND STK_COMPILED_EXAMPLES ${file})
    continue()
  endif()
  cmake_path(GET file STEM name)
  add_executable(header_${name} ${file})
  set_target_properties(header_${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/headers)
  target_compile_options(header_${name} PRIVATE ${STK_EXAMPLE_WARNINGS})
  target_link_libraries(header_${name} PRIVATE stoker_static m)
  stk_add_test(header_${name} headers header_${name})
endforeach()
if(STK_COMPILED_EXAMPLES)
  add_library(stk_header_examples OBJECT ${STK_COMPILED_EXAMPLES})
  target_include_directories(stk_header_examples PRIVATE include)
  target_compile_options(stk_header_examples PRIVATE ${STK_EXAMPLE_WARNINGS})
endif()

# The command, from outside.
if(STK_CLI_SOURCES)
  add_test(NAME cli COMMAND ${STOKER_PYTHON} -B ${CMAKE_SOURCE_DIR}/test/cli/cli_test.py
    $<TARGET_FILE:stoker_cli> ${CMAKE_SOURCE_DIR})
  add_test(NAME cli_data COMMAND ${STOKER_PYTHON} -B ${CMAKE_SOURCE_DIR}/test/cli/data_test.py
    $<TARGET_FILE:stoker_cli> ${CMAKE_SOURCE_DIR}/test/data/golden)
  add_test(NAME cli_files COMMAND ${STOKER_PYTHON} -B ${CMAKE_SOURCE_DIR}/test/cli/files_test.py
    $<TARGET_FILE:stoker_cli> ${CMAKE_SOURCE_DIR})
  add_test(NAME cli_paradox COMMAND ${STOKER_PYTHON} -B ${CMAKE_SOURCE_DIR}/test/cli/paradox_test.py
    $<TARGET_FILE:stoker_cli>)
  set_tests_properties(cli cli_data cli_files cli_paradox PROPERTIES TIMEOUT 300 LABELS cli
    ENVIRONMENT "${STK_TEST_ENVIRONMENT}")
  add_test(NAME cli_apart COMMAND ${STOKER_PYTHON} -B ${CMAKE_SOURCE_DIR}/test/cli/cli_test.py
    $<TARGET_FILE:stoker_cli> ${CMAKE_SOURCE_DIR})
  set_tests_properties(cli_apart PROPERTIES TIMEOUT 600 LABELS "cli;apart"
    ENVIRONMENT "${STK_TEST_ENVIRONMENT};${STK_APART_ENVIRONMENT}")
  # Kernel text of OpenCL is CUDA C as well, where the toolkit is there to say so.
  add_test(NAME cuda_text COMMAND ${STOKER_PYTHON} -B ${CMAKE_SOURCE_DIR}/test/device/cuda_text_test.py
    ${CMAKE_SOURCE_DIR} 75 120)
  set_tests_properties(cuda_text PROPERTIES TIMEOUT 1800 LABELS "device;cuda" SKIP_RETURN_CODE 77)
  # And every kernel of opencl:0, where there is one. The first run compiles some 600 programs.
  if(STK_OPENCL_LOADER AND NOT STOKER_SANITIZE AND NOT STOKER_FUZZ)
    add_test(NAME selftest_opencl COMMAND stoker_cli selftest --device opencl:0)
    set_tests_properties(selftest_opencl PROPERTIES TIMEOUT 1800 LABELS "device;opencl"
      ENVIRONMENT "${STK_TEST_ENVIRONMENT}" SKIP_REGULAR_EXPRESSION "no device .opencl:0.")
    # The host's side of CUDA with all of them; and a card that is newer than its compiler.
    add_test(NAME selftest_cuda COMMAND stoker_cli selftest --small --device gpu:0)
    add_test(NAME selftest_cuda_newer COMMAND stoker_cli selftest iota --device gpu:0)
    set_tests_properties(selftest_cuda selftest_cuda_newer PROPERTIES TIMEOUT 1800 LABELS "device;cuda"
      ENVIRONMENT "${STK_TEST_ENVIRONMENT};${STK_CUDA_ENVIRONMENT}" SKIP_REGULAR_EXPRESSION "no device .gpu:0.")
    add_test(NAME cuda_outside COMMAND ${STOKER_PYTHON} -B ${CMAKE_SOURCE_DIR}/test/device/cuda_outside_test.py
      $<TARGET_FILE:stoker_cli> ${STK_FAKE_CUDA})
    set_tests_properties(cuda_outside PROPERTIES TIMEOUT 900 LABELS "device;cuda" SKIP_RETURN_CODE 77
      ENVIRONMENT "${STK_TEST_ENVIRONMENT}")
    set_property(TEST selftest_cuda_newer APPEND PROPERTY ENVIRONMENT "STK_FAKE_CUDA_SM=130")
  endif()
  # One test per instruction set: what this machine has not got is listed as skipped.
  foreach(isa ${STK_ISAS})
    add_test(NAME selftest_${isa} COMMAND stoker_cli selftest --set ${isa})
    set_tests_properties(selftest_${isa} PROPERTIES TIMEOUT 300 LABELS device
      ENVIRONMENT "${STK_TEST_ENVIRONMENT}" SKIP_REGULAR_EXPRESSION "NOT RUN: ${isa}")
  endforeach()
  # Products of tiles, by instructions where the processor has them, and in plain C.
  add_test(NAME test_gemm_tiles COMMAND test_gemm)
  set_tests_properties(test_gemm_tiles PROPERTIES TIMEOUT 600 LABELS device
    ENVIRONMENT "${STK_TEST_ENVIRONMENT};STOKER_ISA=amx-emulated")
  foreach(isa amx amx-emulated)
    add_test(NAME selftest_${isa} COMMAND stoker_cli selftest --set ${isa})
    set_tests_properties(selftest_${isa} PROPERTIES TIMEOUT 300 LABELS device
      ENVIRONMENT "${STK_TEST_ENVIRONMENT}" SKIP_REGULAR_EXPRESSION "NOT RUN: ${isa} ")
  endforeach()
endif()
# The checker has a test of its own: planted violations, each of which it has to name.
add_test(NAME tools_check COMMAND ${STOKER_PYTHON} ${CMAKE_SOURCE_DIR}/test/tools/check_test.py)
set_tests_properties(tools_check PROPERTIES TIMEOUT 300 LABELS tools)
# Event files are read by TensorBoard itself, where it is installed.
add_test(NAME watch_tensorboard COMMAND ${STOKER_PYTHON}
  ${CMAKE_SOURCE_DIR}/test/watch/tensorboard_test.py $<TARGET_FILE:stoker>)
set_tests_properties(watch_tensorboard PROPERTIES TIMEOUT 300 LABELS watch SKIP_RETURN_CODE 77)
if(TARGET stoker_cli) # and reports are drawn by a browser, where there is one
  add_test(NAME watch_html COMMAND ${STOKER_PYTHON}
    ${CMAKE_SOURCE_DIR}/test/watch/html_test.py $<TARGET_FILE:stoker_cli>)
  set_tests_properties(watch_html PROPERTIES TIMEOUT 300 LABELS watch SKIP_RETURN_CODE 77
    ENVIRONMENT "${STK_TEST_ENVIRONMENT}")
endif()
# So has the benchmark: its arithmetic, its protocol and its harness, not its figures.
add_test(NAME tools_bench COMMAND ${STOKER_PYTHON} ${CMAKE_SOURCE_DIR}/test/tools/bench_test.py)
set_tests_properties(tools_bench PROPERTIES TIMEOUT 300 LABELS tools)
# Files and memory shared with numpy; where numpy is missing only the archives are judged. The shared
# library of a sanitizer build cannot be loaded by an ordinary Python.
if(NOT STOKER_SANITIZE AND NOT STOKER_FUZZ)
  add_test(NAME numpy_both_ways COMMAND ${STOKER_PYTHON} -B ${CMAKE_SOURCE_DIR}/test/base/numpy_test.py
    $<TARGET_FILE:stoker> ${CMAKE_BINARY_DIR})
  set_tests_properties(numpy_both_ways PROPERTIES TIMEOUT 300 LABELS base)
endif()
