# Front door; `make help` says what there is. The build itself is CMakeLists.txt.
JOBS        ?= $(shell nproc)
BUILD       ?= build
PREFIX      ?= /usr/local
CMAKE_FLAGS ?=
CTEST_FLAGS ?=
ROWS        ?=
RUN         :=
PYTHON_TESTS ?= 1

# A sanitizer run has a build folder of its own, so that it and the fast one leave each other alone.
ifeq ($(SAN),1)
BUILD       := $(BUILD)-san
CMAKE_FLAGS += -DSTOKER_SANITIZE=address,undefined
PYTHON_TESTS := 0
endif
# ThreadSanitizer: only tests labelled `threaded` (by name, see STK_THREADED in test/tests.cmake).
# It cannot live with some kernels' address randomisation, so that is off where it may be.
ifeq ($(TSAN),1)
BUILD       := $(BUILD)-tsan
CMAKE_FLAGS += -DSTOKER_SANITIZE=thread
PYTHON_TESTS := 0
CTEST_FLAGS += -L threaded
RUN         := $(shell setarch $$(uname -m) -R true 2>/dev/null && echo setarch $$(uname -m) -R)
endif

.DEFAULT_GOAL := build
.PHONY: python keras-test build configure demo test bench check format fuzz install clean help setup setup-check setup-test

help:
	@echo 'make                 build libstoker, the stoker command, tests and examples into build/'
	@echo 'make demo            build, draw pictures, train a network on them, show how it went'
	@echo 'make test            build and run all tests'
	@echo 'make test SAN=1      the same under AddressSanitizer and UBSan    (build-san/)'
	@echo 'make test TSAN=1     the threaded tests under ThreadSanitizer     (build-tsan/)'
	@echo 'make python          build the Python package into a venv of its own        (build/python/)'
	@echo 'make keras-test      the tests of the keras package on Stoker; FOLDERS="ops losses" picks some'
	@echo 'make bench           measure against the peers; ROWS=tiny_step,cnn_step picks some'
	@echo 'make check           format, include order, file size, symbols, static analysis'
	@echo 'make format          bring all C files into the one format'
	@echo 'make fuzz            fuzz every parser for a short while'
	@echo 'make install         into PREFIX (/usr/local)'
	@echo 'make clean           remove all build folders'
	@echo 'Settings: JOBS, BUILD, PREFIX, CMAKE_FLAGS, CTEST_FLAGS; STOKER_SETUP=off installs nothing'

setup:
	@tools/setup build

setup-check:
	@tools/setup build check

setup-test: # before the build is described: what is there is tested
	@tools/setup build opencl

# Configured once, and again when the flags change; ninja itself sees changes of CMakeLists.txt.
configure: setup
	@if ! [ -f $(BUILD)/build.ninja ] || [ "$$(cat $(BUILD)/.flags 2>/dev/null)" != "$(strip $(CMAKE_FLAGS))" ]; then \
	    cmake -S . -B $(BUILD) -G Ninja $(CMAKE_FLAGS) && echo '$(strip $(CMAKE_FLAGS))' >$(BUILD)/.flags; fi

build: configure
	@ninja -C $(BUILD) -j $(JOBS)

demo: configure # needs one program, not the tests
	@ninja -C $(BUILD) -j $(JOBS) stoker_cli
	@tools/demo $(BUILD)

# The Python package is tested, too, but not under sanitizers (PYTHON_SAN=1 tools/python) nor where it cannot be had.
test: setup-test build
	@[ '$(PYTHON_TESTS)' != 1 ] || tools/python $(BUILD) >/dev/null || echo 'make test: no Python package here; its tests are skipped'
	@$(RUN) ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS) $(CTEST_FLAGS)

# Which Python: PYTHON=python3.12 make python. After an edit of a C file the same command takes seconds.
python: setup
	@tools/python $(BUILD)

# Keras' own tests on Stoker, beside TensorFlow's numbers; FOLDERS="losses ops" picks some, tools/keras-test says more.
keras-test: python
	@$(BUILD)/python/bin/python -m pip install -q --disable-pip-version-check keras h5py scipy pandas jax pillow grain requests tensorboard orbax-checkpoint
	@tools/keras-test $(FOLDERS)

bench: build
	@bench/run --build $(BUILD) $(if $(ROWS),--rows $(ROWS))

check: setup-check build
	@tools/check --build $(BUILD)

format: setup-check
	@git ls-files -co --exclude-standard -- '*.c' '*.h' | xargs clang-format-14 -i

fuzz:
	@tools/fuzz

install: build
	@cmake --install $(BUILD) --prefix $(PREFIX)

clean:
	@rm -rf build build-*
