# Front door. The build itself is CMakeLists.txt; `make help` says what there is.
JOBS  ?= $(shell nproc)
BUILD ?= build
CMAKE_FLAGS ?=

# A sanitizer run has a build of its own, so that it and the fast one do not undo each other.
ifdef SAN
BUILD := build-san
CMAKE_FLAGS += -DSTOKER_SANITIZE=address,undefined
endif
ifdef TSAN
BUILD := build-tsan
CMAKE_FLAGS += -DSTOKER_SANITIZE=thread
CTEST_FLAGS += -L threaded
endif

.PHONY: build test clean help
build: $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j $(JOBS)

$(BUILD)/build.ninja:
	@cmake -S . -B $(BUILD) -G Ninja $(CMAKE_FLAGS)

test: build
	@ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS) $(CTEST_FLAGS)

clean:
	@rm -rf build build-*
