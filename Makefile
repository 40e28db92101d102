# The two commands of the README, and what contributors need. Everything else is CMake (see CMakePresets.json).
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)

.PHONY: run test soak build check format install wheel deb deps deps-dev bench clean

run: build
	@examples/04-survive/run.sh build/mayfly

test: deps-dev
	cmake --preset release > /dev/null
	cmake --build --preset release -j $(JOBS)
	ctest --preset release -j $(JOBS)

# What `make test` leaves out for its time: random weather, big broken files, fuzzing for longer than seconds, every file compiled
# by itself. Fuzzing counts what earlier calls have done.
SOAK_MINUTES ?= 60
FUZZ_MINUTES ?= 2
soak: deps-dev
	cmake --preset edit > /dev/null
	cmake --build --preset edit -j $(JOBS)
	cmake --preset clang > /dev/null
	cmake --build --preset clang -j $(JOBS)
	tests/fuzz/fuzz.py build-clang --cpu-minutes $(FUZZ_MINUTES) --jobs $(JOBS)
	tests/broken/run.sh build-edit/mayfly
	tests/chaos/chaos.py build-edit/mayfly
	tests/chaos/soak.py build-edit/mayfly --minutes $(SOAK_MINUTES)

build: deps
	cmake --preset release -DBUILD_TESTING=OFF > /dev/null
	cmake --build --preset release -j $(JOBS) --target mayfly mayfly-train

# The fast checks of CI: format, layers, sizes, headers.
check:
	tools/check_format
	tools/check_layers

format:
	tools/check_format --fix

install: build
	cmake --install build --prefix $(PREFIX)

# The Python package, for pip: dist/mayfly-VERSION-py3-none-any.whl.
wheel: deps-dev
	@tools/build_wheel dist

# build/mayfly_VERSION_ARCH.deb
deb: build
	cd build && cpack -G DEB

# Installs with apt what tools/packages lists and is missing; asks for sudo only then.
deps:
	@tools/install_packages build
deps-dev:
	@tools/install_packages build test

bench: deps-dev
	cmake --preset release > /dev/null
	cmake --build --preset release -j $(JOBS) --target all benches
	build/bench/accuracy
	build/bench/predict
	build/bench/plan
	build/bench/forecast data/traces
	build/bench/liveput
	build/bench/replay
	build/bench/risk generator
	bench/train_speed.py build
	bench/recovery.py build
	bench/python_overhead.py build

clean:
	rm -rf build build-edit build-debug build-clang build-tidy build-tsan
