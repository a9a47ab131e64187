# Debian's cross compiler for aarch64. SOFTSCOPE_ROOT is the folder with that architecture's Python.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SOFTSCOPE_ROOT)
# Debian's Python.h wants a header from there; -idirafter, so that libc's headers stay the compiler's own.
set(CMAKE_CXX_FLAGS_INIT "-idirafter ${SOFTSCOPE_ROOT}/usr/include")
