# blk: `make demo` and `make test` set up everything; `make help` lists the rest.
LLVM_CONFIG ?= llvm-config-22
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
BUILD ?= build
CC ?= cc
SAN ?=
LLVM_LINK ?= $(if $(SAN),shared,static)
VERSION := 0.1.0
# How many compile at a time in the targets below that build.
JOBS ?= $(shell nproc 2>/dev/null || echo 1)
# Of the libraries' binary interface: the first number is in their names, and grows where programs must be linked again.
ABI := 1.0.0
ABI_MAJOR := $(firstword $(subst ., ,$(ABI)))

WARN := -Wall -Wextra -Werror -Wno-missing-field-initializers -Wvla -Wshadow
# gcc sees null pointers on the paths that its own checks add.
WARN += $(if $(SAN),-Wno-nonnull -Wno-format-truncation -Wno-clobbered -Wno-maybe-uninitialized -Wno-unknown-warning-option)
CFLAGS ?= -O2 -g
LLVM_VERSION = $(shell $(LLVM_CONFIG) --version)
# Asserts are for builds that look for mistakes: ASSERTS= turns them on; BLK_MEAN: see `make mean`.
ASSERTS ?= -DNDEBUG
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE -fPIC -fvisibility=hidden $(WARN) $(CFLAGS) $(ASSERTS) $(SAN) -MMD -MP -DBLK_VERSION='"$(VERSION)"' -DBLK_ABI_MAJOR='"$(ABI_MAJOR)"' -I. -Icompiler -Iruntime -I$(BUILD)/gen
ALL_LDFLAGS = $(SAN) $(LDFLAGS)
LLVM_CFLAGS := -I$(shell $(LLVM_CONFIG) --includedir 2>/dev/null)
# shared: quick to link. static: LLVM and libstdc++ inside libblkc, which then starts in half the time and runs anywhere.
LLVM_shared = $(shell $(LLVM_CONFIG) --ldflags --link-shared --libs core) -lstdc++
LLVM_static = -L$(shell $(LLVM_CONFIG) --libdir) $(shell $(LLVM_CONFIG) --link-static --libs nvptx x86 passes) \
	-static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL -Wl,--gc-sections -l:libz.a -l:libzstd.a
LINKER_static := $(or $(CXX),c++)
LINKER_shared = $(CC)

COMPILER := $(filter-out compiler/blkc.c compiler/tool/% compiler/lsp/%,$(shell find compiler -name '*.c' | sort))
RUNTIME := $(filter-out runtime/blkrun.c runtime/run/% runtime/trial/%,$(shell find runtime -name '*.c' | sort))
TOOL := $(wildcard compiler/tool/*.c)
RUN := $(wildcard runtime/run/*.c)
LSP := $(wildcard compiler/lsp/*.c)
GENERATED := $(BUILD)/gen/lexer.c $(BUILD)/gen/grammar.c $(BUILD)/gen/lib.c
COMPILER_OBJ := $(COMPILER:%.c=$(BUILD)/%.o) $(GENERATED:.c=.o) $(BUILD)/gen/page.o
RUNTIME_OBJ := $(RUNTIME:%.c=$(BUILD)/%.o)
TOOL_OBJ := $(TOOL:%.c=$(BUILD)/%.o)
RUN_OBJ := $(RUN:%.c=$(BUILD)/%.o)
SCALAR_OBJ := $(BUILD)/compiler/support/scalar.o
TARGET_OBJ := $(BUILD)/compiler/target/target.o
# What blkc and blkrun say on a terminal.
CONSOLE_OBJ := $(BUILD)/compiler/support/nearest.o $(BUILD)/compiler/tool/colour.o
# What programs and libblk share: outputs that are whole or not there; blkc and libblk: packages and signatures.
OUTPUT_OBJ := $(patsubst %,$(BUILD)/runtime/base/%.o,output overwrite new_file)
SAID_OBJ := $(patsubst %,$(BUILD)/runtime/base/%.o,said growing)
SHARED_OBJ := $(patsubst %,$(BUILD)/runtime/%.o,package/package package/signature package/defines error base/growing run/whole) $(SCALAR_OBJ) $(OUTPUT_OBJ)
# The front end alone: text to tile IR, without LLVM.
FRONT := $(filter-out %/blocks.c %/llvm_memory.c %/llvm_options.c,$(wildcard compiler/support/*.c compiler/syntax/*.c compiler/sema/*.c compiler/ir/*.c)) \
	compiler/layout/linear.c compiler/layout/families.c
LSP_OBJ := $(LSP:%.c=$(BUILD)/%.o) $(FRONT:%.c=$(BUILD)/%.o) $(GENERATED:.c=.o) $(BUILD)/gen/builtins.o
# Its library for JSON goes inside where it is there as an archive.
JANSSON := $(or $(filter /%,$(shell $(CC) -print-file-name=libjansson.a 2>/dev/null)),-ljansson)
UNIT := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(wildcard tests/unit/test_*.c))
EXAMPLES := $(patsubst examples/%/main.c,$(BUILD)/bin/examples/%,$(wildcard examples/*/main.c))
DEVICE := $(patsubst tests/device/%.c,$(BUILD)/device/%,$(wildcard tests/device/*.c))
PYTHON_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(wildcard python/src/*.c))
PYTHON_FILES := $(patsubst python/%,$(BUILD)/python/%,$(wildcard python/blk/*))
BENCH := $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(wildcard tests/bench/*.c))

all: $(BUILD)/lib/libblk.so $(BUILD)/lib/blk-trial $(BUILD)/lib/libblkc.so $(BUILD)/bin/blkc $(BUILD)/bin/blkrun $(BUILD)/bin/blk-lsp $(EXAMPLES)
tests: all $(UNIT) $(DEVICE) $(BENCH) $(BUILD)/accuracy/functions $(BUILD)/fuzz-programs $(BUILD)/mutation/mutate python-if

# The compiler: one library that holds or links LLVM; blkc is its command line.  Caches know it by its build id.
$(BUILD)/lib/libblkc.so.$(ABI_MAJOR): $(COMPILER_OBJ)
	@mkdir -p $(@D)
	$(LINKER_$(LLVM_LINK)) -shared -Wl,--build-id -Wl,-soname,$(@F) -o $@ $^ $(ALL_LDFLAGS) $(LLVM_$(LLVM_LINK)) -lm
$(BUILD)/bin/blkc: $(BUILD)/compiler/blkc.o $(TOOL_OBJ) $(SHARED_OBJ) $(BUILD)/compiler/support/nearest.o $(BUILD)/lib/libblkc.so
	@mkdir -p $(@D)
	$(CC) -o $@ $(filter %.o,$^) -L$(BUILD)/lib -lblkc -Wl,-rpath,'$$ORIGIN/../lib' $(ALL_LDFLAGS) -lpthread -lm -ldl
# The language server.
$(BUILD)/bin/blk-lsp: $(LSP_OBJ)
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(ALL_LDFLAGS) $(JANSSON) -lm

# The runtime: libc only; it opens libcuda and libblkc when they are asked for.
$(BUILD)/lib/libblk.so.$(ABI_MAJOR): $(RUNTIME_OBJ) $(SCALAR_OBJ) $(TARGET_OBJ)
	@mkdir -p $(@D)
	$(CC) -shared -Wl,-soname,$(@F) -o $@ $^ $(ALL_LDFLAGS) -ldl -lpthread -lm
# The names that -lblk and -lblkc find; what is linked asks for the one with the number.
$(BUILD)/lib/%.so: $(BUILD)/lib/%.so.$(ABI_MAJOR)
	ln -sf $(<F) $@
# The process that tunes in isolation; found beside libblk.
$(BUILD)/lib/blk-trial: $(BUILD)/runtime/trial/blk-trial.o $(RUNTIME_OBJ) $(SCALAR_OBJ) $(TARGET_OBJ)
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(ALL_LDFLAGS) -ldl -lpthread -lm
$(BUILD)/bin/blkrun: $(BUILD)/runtime/blkrun.o $(RUN_OBJ) $(OUTPUT_OBJ) $(SAID_OBJ) $(SCALAR_OBJ) $(CONSOLE_OBJ) $(BUILD)/lib/libblk.so
	@mkdir -p $(@D)
	$(CC) -o $@ $(filter %.o,$^) -L$(BUILD)/lib -lblk -Wl,-rpath,'$$ORIGIN/../lib' $(ALL_LDFLAGS) -lm
$(BUILD)/bin/examples/%: $(BUILD)/examples/%/main.o $(BUILD)/lib/libblk.so
	@mkdir -p $(@D)
	$(CC) -o $@ $< -L$(BUILD)/lib -lblk -Wl,-rpath,'$$ORIGIN/../../lib' $(ALL_LDFLAGS) -lm
$(BUILD)/bench/%: $(BUILD)/tests/bench/%.o $(BUILD)/runtime/run/plot.o $(BUILD)/runtime/run/whole.o $(OUTPUT_OBJ) $(SCALAR_OBJ) $(BUILD)/lib/libblk.so
	@mkdir -p $(@D)
	$(CC) -o $@ $(filter %.o,$^) -L$(BUILD)/lib -lblk -Wl,-rpath,'$$ORIGIN/../lib' $(ALL_LDFLAGS) -lm -ldl -lpthread

$(BUILD)/device/%: $(BUILD)/tests/device/%.o $(SCALAR_OBJ) $(BUILD)/lib/libblk.so
	@mkdir -p $(@D)
	$(CC) -o $@ $< $(SCALAR_OBJ) -L$(BUILD)/lib -lblk -Wl,-rpath,'$$ORIGIN/../lib' $(ALL_LDFLAGS) -lm

$(BUILD)/accuracy/%: $(BUILD)/tests/accuracy/%.o $(SCALAR_OBJ) $(BUILD)/lib/libblk.so
	@mkdir -p $(@D)
	$(CC) -o $@ $< $(SCALAR_OBJ) -L$(BUILD)/lib -lblk -Wl,-rpath,'$$ORIGIN/../lib' $(ALL_LDFLAGS) -lmpfr -lgmp -lm
# The errors of elementary functions over 10^7 arguments each; `make test` draws a few.  Half an hour of one core.
accuracy: $(BUILD)/accuracy/functions
	$(BUILD)/accuracy/functions --device=$(or $(DEVICE_NAME),cpu) --all

$(BUILD)/mutation/mutate: $(BUILD)/tests/mutation/mutate.o $(RUN_OBJ) $(OUTPUT_OBJ) $(SAID_OBJ) $(SCALAR_OBJ) $(CONSOLE_OBJ) $(BUILD)/lib/libblk.so
	@mkdir -p $(@D)
	$(CC) -o $@ $(filter %.o,$^) -L$(BUILD)/lib -lblk -Wl,-rpath,'$$ORIGIN/../lib' $(ALL_LDFLAGS) -lm

# The Python package: one extension module for every CPython from 3.9 on, over libblk.  In the build folder it finds libblk
# by links where a wheel has the files.  Without Python's headers the tests do without it.
PYTHON = $(or $(shell sh tools/python.sh),python3)
python: $(BUILD)/python/blk/_blk.abi3.so $(PYTHON_FILES) all
python-if: all
	@p=$$(sh tools/python.sh) || exit 0; $(MAKE) -s python PYTHON=$$p
$(BUILD)/python/src/%.o: DEFINES = -DPy_LIMITED_API=0x03090000 -isystem $(shell sh tools/python.sh --include $(PYTHON))
$(BUILD)/python/blk/_blk.abi3.so: $(PYTHON_OBJ) $(SCALAR_OBJ) $(BUILD)/lib/libblk.so
	@mkdir -p $(@D)
	@ln -sfn ../../lib $(@D)/lib && ln -sfn ../../bin $(@D)/bin
	$(CC) -shared -o $@ $(filter %.o,$^) -L$(BUILD)/lib -lblk -Wl,-rpath,'$$ORIGIN/lib' $(ALL_LDFLAGS) -ldl -lm
$(BUILD)/python/blk/%: python/blk/%
	@mkdir -p $(@D)
	@cp $< $@

# Unit tests see the insides: they link the objects.
INSIDE := $(COMPILER_OBJ) $(TOOL_OBJ) $(RUNTIME_OBJ) $(RUN_OBJ)
$(BUILD)/tests/%: $(BUILD)/tests/unit/%.o $(INSIDE)
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(WRAP) $(ALL_LDFLAGS) $(LLVM_shared) -lcmocka -ldl -lpthread -lm

# The system calls of libblk that can fail, each of which test_system_faults makes fail; tests/run/calls.sh holds the list complete.
SYSTEM_CALLS := open openat fopen opendir read pread write pwrite fsync ftruncate fchmod fchown fstat stat lstat fstatat access rename unlink unlinkat \
	mkdir flock fcntl futimens mmap mprotect posix_memalign aligned_alloc pthread_create memfd_create posix_fallocate pipe2 poll \
	posix_spawn_file_actions_init posix_spawnattr_init posix_spawn getrandom sched_getaffinity close
$(BUILD)/tests/test_system_faults: WRAP = $(SYSTEM_CALLS:%=-Wl,--wrap=%)
# Of those, and of others, what fails only around the process that tunes in isolation.
ISOLATED_CALLS := fcntl mmap poll waitpid posix_spawn_file_actions_adddup2 posix_spawn_file_actions_addopen nanosleep
$(BUILD)/tests/test_isolated: WRAP = $(ISOLATED_CALLS:%=-Wl,--wrap=%)
# How many threads compile, of how many cores.
CHOICE_CALLS := pthread_create pthread_join sched_getaffinity
$(BUILD)/tests/test_choice: WRAP = $(CHOICE_CALLS:%=-Wl,--wrap=%)
RECORD_CALLS := flock pwrite ftruncate unlink
$(BUILD)/tests/test_records: WRAP = $(RECORD_CALLS:%=-Wl,--wrap=%)
TOOL_CALLS := read write poll waitpid pipe2 mkostemp posix_spawn_file_actions_init posix_spawn_file_actions_adddup2
$(BUILD)/tests/test_tool: WRAP = $(TOOL_CALLS:%=-Wl,--wrap=%)
PACK_CALLS := blkc_compile blkc_result_free pthread_create sched_getaffinity
$(BUILD)/tests/test_pack: WRAP = $(PACK_CALLS:%=-Wl,--wrap=%)
# What blkrun prints, of a libblk that is played.
REPORT_CALLS := blk_bench blk_cache_clear blk_cache_folder blk_cache_list blk_device_bandwidth blk_device_query blk_kernel_cost \
	blk_kernel_parameters blk_kernel_tune blk_sim_count blk_tune_export blk_tune_import clock_gettime isatty localtime_r
$(BUILD)/tests/test_run_reports: WRAP = $(REPORT_CALLS:%=-Wl,--wrap=%)
$(BUILD)/tests/test_npy: WRAP = -Wl,--wrap=read
$(BUILD)/tests/test_whole: WRAP = -Wl,--wrap=raise
PLOT_CALLS := open_memstream tmpfile waitpid
$(BUILD)/tests/test_plot: WRAP = $(PLOT_CALLS:%=-Wl,--wrap=%)
OUTPUT_CALLS := fcntl fstat ftruncate lstat open pread write
$(BUILD)/tests/test_new_file: WRAP = $(OUTPUT_CALLS:%=-Wl,--wrap=%)
IMAGE_CALLS := dlinfo dlopen fopen pread
$(BUILD)/tests/test_image: WRAP = $(IMAGE_CALLS:%=-Wl,--wrap=%)
# What fails in turn of a whole blkrun.
RUN_CALLS := blk_bench blk_buffer_create blk_buffer_read blk_buffer_write blk_cache_clear blk_cache_list blk_device_bandwidth blk_device_open \
	blk_device_query blk_device_sync blk_event_create blk_event_elapsed blk_event_record blk_kernel_cost blk_kernel_find blk_kernel_grid \
	blk_kernel_info blk_kernel_parameters blk_kernel_tune blk_launch blk_module_open blk_sim_configure blk_sim_count blk_tune_export \
	blk_tune_import close fclose fstat fsync lseek open open_memstream posix_spawn_file_actions_adddup2 posix_spawn_file_actions_init \
	posix_spawnp read rename setenv tmpfile waitpid write
$(BUILD)/tests/test_run_faults: WRAP = $(RUN_CALLS:%=-Wl,--wrap=%)
$(BUILD)/tests/test_sim_memory: WRAP = -Wl,--wrap=pthread_create
# What the cpu device asks of the system, and how a process takes its faults.
CPU_CALLS := fopen getrlimit pthread_cond_destroy pthread_cond_init pthread_mutex_destroy pthread_mutex_init raise sched_getaffinity sigaction \
	sysconf uname
$(BUILD)/tests/test_cpu_faults: WRAP = $(CPU_CALLS:%=-Wl,--wrap=%)
LOAD_CALLS := open fstat read realpath stat
$(BUILD)/tests/test_load: WRAP = $(LOAD_CALLS:%=-Wl,--wrap=%)

$(BUILD)/%.o: %.c | $(GENERATED)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(DEFINES) $(LLVM_CFLAGS) -c -o $@ $<
$(BUILD)/compiler/driver.o: DEFINES = -DBLK_LLVM_VERSION='"$(LLVM_VERSION)"'
$(BUILD)/gen/%.o: $(BUILD)/gen/%.c
	$(CC) $(ALL_CFLAGS) -Wno-unused-parameter -Wno-unused-variable -Wno-shadow -Wno-type-limits -Icompiler/syntax -c -o $@ $<
$(BUILD)/gen/lexer.c: compiler/syntax/lexer.re | $(BUILD)/gen/grammar.c
	re2c -W --no-debug-info -o $@ $<
$(BUILD)/gen/grammar.c: compiler/syntax/grammar.y
	@mkdir -p $(@D)
	lemon -q -l -d$(@D) $<
$(BUILD)/gen/lib.c: tools/embed.sh $(wildcard compiler/lib/*.blk compiler/lib/*/*.blk)
	@mkdir -p $(@D)
	sh tools/embed.sh lib compiler/lib $(sort $(wildcard compiler/lib/*.blk compiler/lib/*/*.blk)) >$@
PAGE := $(addprefix compiler/explain/page.,html css js)
$(BUILD)/gen/page.c: tools/embed.sh $(PAGE)
	@mkdir -p $(@D)
	sh tools/embed.sh page compiler/explain $(PAGE) >$@
$(BUILD)/gen/builtins.c: tools/builtins.sh docs/language.md
	@mkdir -p $(@D)
	sh tools/builtins.sh docs/language.md >$@

# ---- what people type ----
demo:
	@sh tools/setup.sh build
	@echo "building into $(BUILD)/"
	@$(MAKE) -s -j$(JOBS) all
	@$(BUILD)/bin/blkc examples/vector_add/vector_add.blk -o $(BUILD)/vector_add.ptx
	@$(BUILD)/bin/examples/vector_add
	@echo "PTX: $(BUILD)/vector_add.ptx"
test:
	@sh tools/setup.sh test
	@echo "building into $(BUILD)/"
	@$(MAKE) -s -j$(JOBS) tests
	@sh tests/run.sh $(BUILD)
check: tests
	@sh tests/run.sh $(BUILD) quick
test-sanitized:
	@sh tools/setup.sh test
	@$(MAKE) -s -j$(JOBS) tests BUILD=build-san ASSERTS=-DBLK_MEAN CFLAGS="-O1 -g" SAN="-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
	@sh tests/run.sh build-san sanitized
# The quick tests where mistakes hurt: asserts, the IR verified after each pass, memory that is poisoned when it is new, when
# it has been freed and when it has grown, and moves as it grows.
mean:
	@sh tools/setup.sh test
	@$(MAKE) -s -j$(JOBS) tests BUILD=build-mean ASSERTS=-DBLK_MEAN SAN=-fno-omit-frame-pointer CFLAGS="-O1 -g -include tests/mean.h"
	@MALLOC_PERTURB_=165 ONLY_COMPILE=1 sh tests/run.sh build-mean quick
# Lines and branches that the tests reach, by folder; fails below tools/coverage.floors.  See docs/proof.md.
# Each branch once, as it is written: without early inlining. Atomic counters: what threads lose makes gcov's sums wrong.
COVERAGE := BUILD=build-cov CC=gcc SAN="--coverage -fprofile-update=atomic" \
	CFLAGS="-O1 -g1 -fno-early-inlining -Wno-maybe-uninitialized -include tests/coverage.h"
coverage:
	@sh tools/setup.sh test
	@$(MAKE) -s -j$(JOBS) tests $(COVERAGE)
	@find build-cov -name '*.gcda' -delete
	@sh tests/run.sh build-cov coverage
	@python3 tools/coverage.py build-cov
# Does a test fail where one operator, bound or condition of the source is another?  See docs/proof.md.
MUTANTS ?= 2000
MUTATED := BUILD=build CFLAGS="-O1 -w"
mutate-build: $(GENERATED)
	@sh tools/setup.sh test
	@python3 tools/mutate/prepare.py --out=build-mutate --mutants=$(MUTANTS) --seed=$(SEED) -- $(filter-out -MMD -MP,$(ALL_CFLAGS)) -DBLK_LLVM_VERSION='"$(LLVM_VERSION)"' $(LLVM_CFLAGS)
	@$(MAKE) -s -j$(JOBS) -C build-mutate/tree tests $(MUTATED)
mutate-source: mutate-build
	@python3 tools/mutate/run.py build-mutate --jobs=$$(nproc)
# What threads share, under ThreadSanitizer: which tests, and why not the others, is in tests/threads.sh.
test-threads:
	@sh tools/setup.sh test
	@$(MAKE) -s -j$(JOBS) $(addprefix build-tsan/,$(THREAD_TESTS)) BUILD=build-tsan ASSERTS= CFLAGS="-O1 -g" SAN="-fsanitize=thread -fno-omit-frame-pointer"
	@sh tests/threads.sh build-tsan
THREAD_TESTS := $(addprefix tests/,test_threads test_runtime test_cache test_cpu_run test_computed test_distance) lib/libblkc.so lib/blk-trial
# libFuzzer on one reader each, from the seeds in the tree and what earlier runs found, for FUZZ_SECONDS.  Each run takes
# a seed of its own, which it prints: `make fuzz-ptx FUZZ_SEED=N` takes that one again.
FUZZ_SECONDS ?= 120
FUZZ_SEED := $(or $(FUZZ_SEED),$(shell od -An -N4 -tu4 /dev/urandom | tr -d ' '))
FUZZERS := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/*.c))
FUZZ_FLAGS := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
fuzz: $(FUZZERS:%=fuzz-%)
fuzz-%: $(BUILD)/fuzz/%
	@mkdir -p $<.found && echo "$*: $(FUZZ_SECONDS) s, FUZZ_SEED=$(FUZZ_SEED)" && $< -max_total_time=$(FUZZ_SECONDS) -seed=$(FUZZ_SEED) -max_len=8192 -timeout=60 -rss_limit_mb=4096 \
		-artifact_prefix=$<- -verbosity=0 -print_final_stats=1 $<.found tests/fuzz/$*
FUZZ_front := $(FRONT) $(GENERATED)
FUZZ_OF_source := $(FUZZ_front)
FUZZ_OF_ir := $(FUZZ_front)
FUZZ_OF_ptx := $(filter-out %/device.c %/launch.c %/lines.c,$(wildcard runtime/sim/*.c)) runtime/base/growing.c compiler/support/scalar.c
FUZZ_OF_cache := runtime/cache/cache.c runtime/base/new_file.c runtime/tune/record.c runtime/tune/key.c runtime/package/signature.c runtime/base/growing.c runtime/error.c compiler/support/scalar.c
FUZZ_OF_package := runtime/package/package.c
fuzz_objects = $(patsubst %.c,$(BUILD)/fuzz/obj/%.o,$(patsubst $(BUILD)/%,%,$(1)))
.SECONDEXPANSION:
$(BUILD)/fuzz/%: $(BUILD)/fuzz/obj/tests/fuzz/%.o $$(call fuzz_objects,$$(FUZZ_OF_$$*))
	clang $(FUZZ_FLAGS) -fsanitize=fuzzer -o $@ $^ -lpthread -lm -ldl
$(BUILD)/fuzz/obj/gen/%.o: $(BUILD)/gen/%.c
	@mkdir -p $(@D)
	clang $(FUZZ_CFLAGS) -Wno-everything -Icompiler/syntax -c -o $@ $<
$(BUILD)/fuzz/obj/%.o: %.c | $(GENERATED)
	@mkdir -p $(@D)
	clang $(FUZZ_CFLAGS) $(WARN) -c -o $@ $<
FUZZ_CFLAGS = -std=c11 -D_GNU_SOURCE -O1 -g $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -MMD -MP -DBLK_VERSION='"$(VERSION)"' -I. -Icompiler -Iruntime -I$(BUILD)/gen

# Random programs on every device, compared bit by bit; see docs/fuzzing.md.
FUZZ_PROGRAMS ?= 1000
SEED ?= 1
PROGRAMS_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/fuzz/programs/*.c))
$(BUILD)/fuzz-programs: $(PROGRAMS_OBJ) $(SCALAR_OBJ) $(BUILD)/lib/libblk.so $(BUILD)/lib/libblkc.so
	$(CC) -o $@ $(filter %.o,$^) -L$(BUILD)/lib -lblk -Wl,-rpath,'$$ORIGIN/lib' $(ALL_LDFLAGS) -lm
fuzz-programs: $(BUILD)/fuzz-programs
	$< --programs=$(FUZZ_PROGRAMS) --seed=$(SEED) --jobs=$$(nproc) --out=$(BUILD)/fuzz-found
clang:
	@$(MAKE) -s -j$(JOBS) tests BUILD=build-clang CC=clang CFLAGS=-O0 LLVM_LINK=shared
	@echo "clang: no warnings"
format:
	clang-format -i $(FORMATTED)
format-check:
	@sh tools/columns.sh 120 $(FORMATTED)
	@case "$$(clang-format --version)" in *"version 14."*) clang-format --dry-run -Werror $(FORMATTED) && echo "format: clean";; *) echo "format: skipped, the check is for clang-format 14";; esac
FORMATTED = $(shell find compiler runtime python tests examples -name '*.[ch]' -o -name '*.[ch]pp')
lint: $(GENERATED)
	clang-tidy --quiet $(shell find compiler runtime -name '*.c') -- $(ALL_CFLAGS) -DBLK_LLVM_VERSION='"$(LLVM_VERSION)"' $(LLVM_CFLAGS)
clean:
	rm -rf build build-mean build-san build-tsan build-clang build-device build-cov build-mutate

# A folder that runs on another x86-64 Linux with glibc 2.36 or newer and no LLVM: LLVM static, once, inside libblkc.
device:
	@sh tools/setup.sh test
	@$(MAKE) -s -j$(JOBS) tests BUILD=build-device CFLAGS=-O2
	@sh tools/device.sh build-device
# A wheel that needs nothing: libblk, the compiler with LLVM inside, blkc and blkrun.  WHEEL_BUILD=build LLVM_LINK=shared is quick.
WHEEL_BUILD ?= build-device
wheel:
	@sh tools/setup.sh test
	@$(MAKE) -s -j$(JOBS) python BUILD=$(WHEEL_BUILD) CFLAGS=-O2
	@python3 tools/wheel.py $(WHEEL_BUILD) $(VERSION)
INSTALLED = DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' LIBDIR='$(LIBDIR)' sh tools/install.sh
install: all
	@$(INSTALLED) install $(BUILD)
uninstall:
	@$(INSTALLED) uninstall $(BUILD)
# A package for Debian: BUILD/deb/blk_VERSION_ARCHITECTURE.deb.
deb: all
	@sh tools/deb.sh $(BUILD)
help:
	@echo "make demo            set up, build, compile examples/vector_add to PTX, run it on the best device, check it"
	@echo "make test            set up, build, run every test that this machine can run"
	@echo "make check           build, run the tests that end in seconds"
	@echo "make [LLVM_LINK=shared]   build/bin/blkc, build/bin/blkrun, build/lib, build/bin/examples"
	@echo "make install [PREFIX=/usr/local LIBDIR=PREFIX/lib DESTDIR=]    make uninstall    make deb    make device    make clean"
	@echo "make python          build/python/blk, the Python package in place    make wheel    a wheel with all that it needs"
	@echo "make coverage        the share of lines and branches that tests reach; fails below tools/coverage.floors"
	@echo "make mutate-source [MUTANTS=2000 SEED=1]   changes of the source that no test notices"
	@echo "make mean     the quick tests with asserts, poisoned memory and the IR verified after each pass"
	@echo "make test-sanitized test-threads clang fuzz fuzz-programs format format-check lint"

.PHONY: all tests python python-if wheel accuracy demo test check mean coverage mutate-build mutate-source test-sanitized test-threads fuzz fuzz-programs clang format format-check lint clean device install uninstall deb help
.SECONDARY:
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
