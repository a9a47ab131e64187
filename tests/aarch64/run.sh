#!/bin/sh
# Cross-compiles the engine for aarch64 and runs the kernels' tests under qemu: sh tests/aarch64/run.sh [pytest's arguments]
# Everything it makes is in build/aarch64. The first time it fetches 30 MB of Debian's packages and 250 MB from PyPI.
set -eu
cd "$(dirname "$0")/../.."
BUILD=$PWD/build/aarch64
ROOT=$BUILD/root
SITE=$BUILD/site
HOST=$PWD/.venv/bin

needs() {
  command -v "$1" >/dev/null || { echo "Missing: $1. On Debian and Ubuntu: apt install $2" >&2; exit 1; }
}
needs aarch64-linux-gnu-g++ g++-aarch64-linux-gnu
needs qemu-aarch64-static qemu-user-static
needs apt-get apt
needs dpkg-deb dpkg
[ -x "$HOST/cmake" ] || { echo "Missing: .venv. Run: make aarch64" >&2; exit 1; }

quietly() {  # what a command says is shown only if it fails
  "$@" >"$BUILD/log" 2>&1 || { cat "$BUILD/log" >&2; exit 1; }
}

# Python for aarch64 with its libraries and headers. apt keeps its books in a folder of ours, so that the machine's own
# packages stay as they are.
if [ ! -e "$ROOT/.complete" ]; then
  echo "Fetching Python for aarch64 from Debian."
  APT=$BUILD/apt
  rm -rf "$ROOT" "$APT"
  mkdir -p "$ROOT" "$APT/state/lists/partial" "$APT/cache/archives/partial"
  : >"$APT/status"
  apt() {
    quietly apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User= \
      -o Dir::State="$APT/state" -o Dir::State::status="$APT/status" -o Dir::Cache="$APT/cache" -o Debug::NoLocking=1 "$@"
  }
  apt update
  apt install --download-only -y --no-install-recommends python3 libpython3-dev libstdc++6
  for package in "$APT"/cache/archives/*.deb; do dpkg-deb -x "$package" "$ROOT"; done
  rm -rf "$APT"
  touch "$ROOT/.complete"
fi
VERSION=$(basename "$(readlink "$ROOT/usr/bin/python3")")  # such as python3.11

# pip runs on this machine and asks it, not the other one, what torch depends on: hence --no-deps and the list. 2.10 is a
# build without CUDA, of which 2.13's for aarch64 would need gigabytes.
if [ ! -e "$SITE/.complete" ]; then
  echo "Fetching NumPy, PyTorch and the tests' packages for aarch64 from PyPI."
  rm -rf "$SITE"
  fetch() {
    quietly "$HOST/python" -m pip --disable-pip-version-check install --no-compile --upgrade --target "$SITE" \
      --only-binary=:all: --python-version "${VERSION#python}" --platform manylinux_2_28_aarch64 \
      --platform manylinux_2_27_aarch64 --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64 "$@"
  }
  fetch --no-deps torch==2.10.0
  fetch numpy scipy ml_dtypes mpmath hypothesis 'pytest>=8.0,<9.2' pytest-xdist \
    sympy networkx jinja2 filelock fsspec typing_extensions
  touch "$SITE/.complete"
fi

echo "Compiling the engine for aarch64."
PATH=$HOST:$PATH
quietly cmake -G Ninja -S . -B "$BUILD/tree" --toolchain "$PWD/tests/aarch64/toolchain.cmake" \
  -DSOFTSCOPE_ROOT="$ROOT" -DPython_EXECUTABLE="$HOST/python" -DPython_INCLUDE_DIR="$ROOT/usr/include/$VERSION" \
  -DSKBUILD_SOABI="cpython-$(echo "${VERSION#python}" | tr -d .)-aarch64-linux-gnu" \
  -DCMAKE_INSTALL_PREFIX="$BUILD/package"
quietly ninja -C "$BUILD/tree" -j 2
rm -rf "$BUILD/package"
mkdir -p "$BUILD/package"
cp -R src/softscope "$BUILD/package"
rm -f "$BUILD"/package/softscope/*.so
quietly cmake --install "$BUILD/tree"

# A program that starts sys.executable must start this one: the kernel here cannot run the other machine's.
cat >"$BUILD/python" <<END
#!/bin/sh
PYTHONHOME=$ROOT/usr PYTHONPATH=$BUILD/package:$SITE exec qemu-aarch64-static -L $ROOT -0 $BUILD/python $ROOT/usr/bin/$VERSION "\$@"
END
chmod +x "$BUILD/python"

# Left out, and why: the child of a fork hangs inside qemu where the parent has several threads. Forks do not depend on the
# processor, and `make test` tests them.
FORKS=tests/engine/test_kernels.py::test_a_child
[ $# -gt 0 ] || set -- tests/engine tests/exactness tests/fuzz
echo "Running the kernels' tests under qemu."
SOFTSCOPE_FUZZ_SECONDS=${SOFTSCOPE_FUZZ_SECONDS:-120} "$BUILD/python" -m pytest -q -p no:cacheprovider -n 2 \
  --deselect ${FORKS}_computes_after_a_fork --deselect ${FORKS}_that_imports_the_engine_after_the_fork_computes "$@"
