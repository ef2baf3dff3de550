# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Muster. `make help` lists the targets. Each does what it needs first, so that
# `make demo` alone and `make check` alone are enough on a fresh machine.
#
# A room's library is all .c files of its folder; <file>_test.c is a unit test,
# linked against the rooms that it may know. Nothing is listed by hand.

BUILD ?= build
# What was compiled before, in this clone or another, is not compiled again; so a clone's folder is in no
# object: a debugger that is started in the clone finds the sources.
export CCACHE_DIR ?= $(or $(MUSTER_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/muster)/ccache
CC := $(if $(shell command -v ccache),ccache )gcc
CFLAGS ?= -O2 -g
MARCH ?=
# Not empty: a warning is an error. CI sets it; another compiler's new warning stops no user.
WERROR ?=
ALL_CFLAGS = -std=gnu11 -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Wshadow \
	$(if $(WERROR),-Werror) \
	-ffp-contract=off -fno-strict-aliasing -D_GNU_SOURCE -fPIC -fno-semantic-interposition -MMD -MP \
	-fdebug-prefix-map=$(CURDIR)=. -Iuapi $(ROOMS:%=-I%) $(MARCH) $(CFLAGS)

.DEFAULT_GOAL := all
MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:

# What another make is told that is to use all CPUs, unless this one was told how many.
PARALLEL = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))

# ---- rooms -----------------------------------------------------------------

ENGINE := qemu-device/engine
WIRE   := qemu-device/wire
NIC    := qemu-device/nic
BUMP   := qemu-device/bump
SWITCH := qemu-device/switch
SCHEDULE  := userlib/schedule
BOOTSTRAP := userlib/bootstrap
LOCAL     := userlib/local
SYNTH     := userlib/synth
ROOMS  := $(ENGINE) $(WIRE) $(NIC) $(BUMP) $(SWITCH) $(SCHEDULE) $(BOOTSTRAP) $(LOCAL) $(SYNTH) userlib
# What libmuster is made of, from the top down. The synthesizer is no part of it: it alone needs Z3.
LIBRARY_ROOMS := userlib $(LOCAL) $(BOOTSTRAP) $(SCHEDULE) $(ENGINE) $(WIRE)

OTHER_ROOMS := userlib/verbs userlib/examples provider tools tools/synth selftests selftests/sweep selftests/guest \
	selftests/fuzz

# What is made is said, in a folder that is there: by make itself, as to start two programs for it takes as long as
# to find that it was compiled before.
begin = $(info $()  $(1)    $(2))$(if $(wildcard $(@D)/.),,$(shell mkdir -p $(@D)))

# Two builds of the same sources: the product, and one under sanitizers for tests. That one says lines
# where it fails, but not values of variables, of which the compiler has to tell much more. Each of the two
# sanitizers' libraries has memory that the search for leaks goes through: so one is enough.
SAN := $(BUILD)/san
# With COVERAGE they count lines instead.
$(SAN)/%: CFLAGS := $(if $(COVERAGE),-O0 -g --coverage -DCLONES=,-O2 -g1 -fsanitize=address,undefined \
	-fno-sanitize-recover=all -fno-omit-frame-pointer -static-libubsan)

# And a third, for what several threads do at once; few tests use it.
TSAN := $(BUILD)/tsan
# No functions chosen while programs are loaded: the sanitizer is not ready then.
$(TSAN)/%: CFLAGS := -O1 -g -fsanitize=thread -Wno-tsan -Wno-format-truncation -DCLONES=

# And a fourth, by clang: fuzzers, which learn from what an input reaches. Functions are not chosen
# while programs are loaded, for the same reason.
FUZZ := $(BUILD)/fuzz
FUZZ_SAN := -fsanitize=address,undefined -fno-sanitize-recover=all
FUZZ_ROOMS := $(NIC) $(SCHEDULE) $(ENGINE) $(WIRE)
FUZZERS := $(patsubst selftests/%.c,$(BUILD)/%,$(wildcard selftests/fuzz/fuzz_*.c))
$(FUZZ)/%: CFLAGS := -O1 -g $(FUZZ_SAN) -fno-omit-frame-pointer -DCLONES=

sources  = $(filter-out %_test.c,$(wildcard $(1)/*.c))
objects  = $(patsubst %.c,$(1)/%.o,$(call sources,$(2)))
programs = $(patsubst %.c,$(1)/%,$(shell grep -ls '^int main\>' $(2)/*.c))
room_lib = $(1)/$(2)/lib.a: $$(call objects,$(1),$(2))
libs     = $(LIBRARY_ROOMS:%=$(1)/%/lib.a)

$(foreach r,$(ROOMS),$(eval $(call room_lib,$(BUILD),$(r)))$(eval $(call room_lib,$(SAN),$(r))))
$(foreach r,$(LIBRARY_ROOMS),$(eval $(call room_lib,$(TSAN),$(r))))
$(foreach r,$(FUZZ_ROOMS),$(eval $(call room_lib,$(FUZZ),$(r))))

%/lib.a:
	@rm -f $@ && $(AR) rcs $@ $^

$(SAN)/%.o: %.c | setup-core
	$(call begin,CC,$< ($(if $(COVERAGE),counted,sanitized)))
	@$(CC) $(ALL_CFLAGS) -c -o $@ $<

$(TSAN)/%.o: %.c | setup-core
	$(call begin,CC,$< (threads watched))
	@$(CC) $(ALL_CFLAGS) -c -o $@ $<

$(FUZZ)/%.o: %.c | setup-core
	$(call begin,CC,$< (fuzzed))
	@clang $(ALL_CFLAGS) -fsanitize=fuzzer-no-link -c -o $@ $<

$(BUILD)/%.o: %.c | setup-core
	$(call begin,CC,$<)
	@$(CC) $(ALL_CFLAGS) -c -o $@ $<

# Linked whole, so that a program sees the library as a user of the .so would.
LINK = $(call begin,LD,$@)$(CC) $(CFLAGS) $(LINKER) -o $@ $^
# The quickest that is there: programs are many.
LINKER := $(firstword $(foreach l,mold lld gold,$(if $(shell command -v ld.$(l)),-fuse-ld=$(l))))

$(BUILD)/libmuster.so.0: userlib/libmuster.map $(call libs,$(BUILD))
	$(call begin,LD,$@)
	@$(CC) -shared -Wl,-soname,libmuster.so.0 -Wl,--version-script=$< -o $@ \
		-Wl,--whole-archive $(filter %.a,$^) -Wl,--no-whole-archive
	@ln -sf libmuster.so.0 $(BUILD)/libmuster.so

# Where a tool finds the library's device on a NIC: in the build folder, or installed.
TOOL_RPATH := -Wl,-rpath,'$$ORIGIN/..:$$ORIGIN/../lib'

# ---- programs --------------------------------------------------------------

TOOLS     := $(filter-out %_test,$(call programs,$(BUILD),tools))
TOOL_LIB  := $(BUILD)/tools/lib.a
KEEP      := $(BUILD)/tools/keep
EXAMPLES  := $(call programs,$(BUILD),userlib/examples)
EXAMPLE_LIB := $(filter-out $(EXAMPLES:=.o),$(call objects,$(BUILD),userlib/examples))
# Folders of them whose files all may use.
SELFTEST_ROOMS := selftests selftests/dst selftests/sweep
SELFTESTS := $(foreach b,$(BUILD) $(SAN),$(foreach r,$(SELFTEST_ROOMS),$(call programs,$(b),$(r))))
UNITS     := $(foreach r,$(ROOMS),$(patsubst %.c,$(SAN)/%,$(wildcard $(r)/*_test.c)))
# A switch as its process has it: the simulated world has it so, too.
selftest_parts = $(filter-out $(SELFTESTS:=.o),$(foreach r,$(SELFTEST_ROOMS),$(call objects,$(1),$(r)))) \
	$(1)/tools/switch_box.o

$(TOOL_LIB): $(filter-out $(TOOLS:=.o),$(call objects,$(BUILD),tools))

$(TOOLS): %: %.o $(TOOL_LIB) $(BUILD)/$(BUMP)/lib.a $(BUILD)/$(SWITCH)/lib.a $(BUILD)/$(SYNTH)/lib.a \
		$(call libs,$(BUILD))
	@$(LINK) -ljansson -lm $(TOOL_RPATH)

# The synthesizer: the only program that needs Z3.
SYNTH_TOOL := $(BUILD)/tools/muster-synth

$(SYNTH_TOOL): $(call objects,$(BUILD),tools/synth) $(BUILD)/$(SYNTH)/lib.a $(BUILD)/$(SCHEDULE)/lib.a \
		$(BUILD)/$(ENGINE)/lib.a
	@$(LINK) -lz3 -ljansson -lm

$(EXAMPLES): %: %.o $(EXAMPLE_LIB) $(call libs,$(BUILD))
	@$(LINK) -lm

# A room's unit tests are linked against that room and those below it.
define unit_rule
$(patsubst %.c,$(SAN)/%,$(wildcard $(1)/*_test.c)): %: %.o $(foreach r,$(2),$(SAN)/$(r)/lib.a)
	@$$(LINK) -lcmocka $(3) -lm
endef
$(eval $(call unit_rule,$(ENGINE),$(ENGINE)))
$(eval $(call unit_rule,$(WIRE),$(WIRE)))
$(eval $(call unit_rule,$(NIC),$(NIC) $(ENGINE) $(WIRE)))
$(eval $(call unit_rule,$(BUMP),$(BUMP) $(ENGINE)))
$(eval $(call unit_rule,$(SWITCH),$(SWITCH) $(ENGINE)))
$(eval $(call unit_rule,$(SCHEDULE),$(SCHEDULE) $(ENGINE)))
$(eval $(call unit_rule,$(BOOTSTRAP),$(BOOTSTRAP)))
$(eval $(call unit_rule,$(LOCAL),$(LOCAL) $(BOOTSTRAP) $(ENGINE) $(WIRE)))
$(eval $(call unit_rule,userlib,$(LIBRARY_ROOMS)))
# Of a tool alone what is tested.
TRACE_FILE_TEST := $(SAN)/tools/trace_file_test
UNITS += $(TRACE_FILE_TEST)
$(TRACE_FILE_TEST): %: %.o $(SAN)/tools/trace_file.o $(SAN)/$(SCHEDULE)/lib.a
	@$(LINK) -lcmocka -ljansson

# It decides which allocation fails.
$(SAN)/userlib/nomem_test: LINK += -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
# It counts how often.
$(SAN)/userlib/progress_test: LINK += -Wl,--wrap=clock_gettime
$(eval $(call unit_rule,$(SYNTH),$(SYNTH) $(SCHEDULE) $(ENGINE),-lz3 -ljansson))

$(filter $(BUILD)/selftests/%,$(SELFTESTS)): %: %.o $(call selftest_parts,$(BUILD)) $(BUILD)/$(BUMP)/lib.a \
		$(BUILD)/$(SWITCH)/lib.a $(BUILD)/$(NIC)/lib.a $(call libs,$(BUILD))
	@$(LINK) -lm

$(filter $(SAN)/selftests/%,$(SELFTESTS)): %: %.o $(call selftest_parts,$(SAN)) $(SAN)/$(BUMP)/lib.a \
		$(SAN)/$(SWITCH)/lib.a $(SAN)/$(NIC)/lib.a $(call libs,$(SAN))
	@$(LINK) -lm

# It drives a NIC as its unit tests do.
%/selftests/nic_bench: LINK += -lcmocka

$(FUZZERS): $(BUILD)/fuzz/%: $(FUZZ)/selftests/fuzz/%.o $(FUZZ_ROOMS:%=$(FUZZ)/%/lib.a)
	$(call begin,LD,$@)
	@clang $(FUZZ_SAN) -fsanitize=fuzzer -o $@ $^ -lcmocka -lm

# The same without an engine: what they have found is tried again, and changed by chance.
REPLAYS := $(patsubst %.c,$(SAN)/%,$(wildcard selftests/fuzz/fuzz_*.c))

$(REPLAYS): %: %.o $(SAN)/selftests/fuzz/replay.o $(FUZZ_ROOMS:%=$(SAN)/%/lib.a)
	@$(LINK) -lcmocka -lm

# A NIC whose engines are stepped by threads.
NIC_THREADS := $(TSAN)/$(NIC)/nic_engines_test
$(eval $(call room_lib,$(TSAN),$(NIC)))

$(NIC_THREADS): %: %.o $(foreach r,$(NIC) $(ENGINE) $(WIRE),$(TSAN)/$(r)/lib.a)
	@$(LINK) -lcmocka -lm

$(TSAN)/selftests/threads: %: %.o $(call libs,$(TSAN))
	@$(LINK) -lm

# ---- driver and provider -------------------------------------------------------

# Which kernel the driver is built for.
KERNEL ?= 6.1

# The library of direct verbs; libibverbs loads it under its other name, by a link, as provider.
DV := $(BUILD)/provider/libmusterdv.so.0
RDMA_CORE := build/rdma-core/include

$(RDMA_CORE):
	@tools/setup/rdma-core.sh

# Commands to the kernel are the core's part, which ends in an empty array, and ours behind it.
$(BUILD)/provider/%.o: ALL_CFLAGS += -Iprovider -isystem $(RDMA_CORE) \
	-Wno-gnu-variable-sized-type-not-at-end
$(call objects,$(BUILD),provider): | $(RDMA_CORE)

$(DV): provider/libmusterdv.map $(call objects,$(BUILD),provider)
	$(call begin,LD,$@)
	@$(CC) -shared -Wl,-soname,$(@F) -Wl,--version-script=$< -Wl,-z,defs -o $@ \
		$(filter %.o,$^) -libverbs
	@ln -sf $(@F) $(@D)/libmusterdv.so
	@ln -sf $(@F) $(@D)/libmuster-rdmav34.so

# What runs in guests knows the direct verbs and nothing else.
GUEST_TESTS := $(call programs,$(BUILD),selftests/guest)
guest_parts = $(filter-out $(GUEST_TESTS:=.o),$(call objects,$(BUILD),selftests/guest))

# The kernel's answers end with flexible arrays, and lie in front of the driver's own.
$(BUILD)/selftests/guest/%.o: ALL_CFLAGS += -Iprovider -Wno-gnu-variable-sized-type-not-at-end

# Those that speak netlink, by libnl.
NETLINK := $(BUILD)/selftests/guest/family $(BUILD)/tools/muster_stat

$(BUILD)/selftests/guest/family.o $(BUILD)/tools/stat_taken.o: \
	ALL_CFLAGS += $(patsubst -I%,-isystem %,$(shell pkg-config --cflags libnl-genl-3.0 2>/dev/null))
$(NETLINK): LINK += -lnl-genl-3 -lnl-3

$(GUEST_TESTS): %: %.o $(guest_parts) $(DV)
	@$(LINK) -libverbs -lcmocka -Wl,-rpath,'$$ORIGIN/../../provider'

# ---- guests ----------------------------------------------------------------------

# What the library loads for MUSTER_DEVICE=verbs; it finds the direct verbs beside itself.
VERBS := $(BUILD)/libmuster-verbs.so.0

$(BUILD)/userlib/verbs/%.o: ALL_CFLAGS += -Iprovider

$(VERBS): userlib/verbs/libmuster-verbs.map $(call objects,$(BUILD),userlib/verbs) $(BUILD)/userlib/sysfs.o $(DV)
	$(call begin,LD,$@)
	@$(CC) -shared -Wl,-soname,$(@F) -Wl,--version-script=$< -Wl,-z,defs -o $@ \
		$(filter-out $<,$^) -libverbs -Wl,-rpath,'$$ORIGIN/provider:$$ORIGIN'

# ---- MPI ---------------------------------------------------------------------------

# One library for each MPI that is installed, of the same source.
MPIS := $(if $(shell pkg-config --exists ompi-c 2>/dev/null && echo yes),openmpi) \
	$(if $(shell pkg-config --exists mpich 2>/dev/null && echo yes),mpich)
MPI_PC_openmpi := ompi-c
MPI_PC_mpich := mpich
MPI_LINK_openmpi := -lmpi
MPI_LINK_mpich := -lmpich
MPI_LIBS := $(MPIS:%=$(BUILD)/libmuster-mpi-%.so.0)
mpi_objects = $(patsubst userlib/mpi/%.c,$(BUILD)/mpi/$(1)/%.o,$(wildcard userlib/mpi/*.c))
# MPI programs that know nothing of Muster, built for each MPI.
MPI_TESTS := $(foreach m,$(MPIS),$(patsubst %.c,$(BUILD)/%.$(m),$(wildcard selftests/mpi/*.c)))
# Examples whose library is no matter to them: as plain MPI, too.
MPI_EXAMPLES := $(foreach m,$(MPIS),$(addsuffix .$(m),$(filter $(EXAMPLES), \
	$(patsubst %.c,$(BUILD)/%,$(shell grep -l '"ranks.h"' userlib/examples/*.c)))))

# usage: $(call mpi_headers,MPI), as a system's; $(call mpi_flags,MPI): and its libraries.
mpi_headers = $(patsubst -I%,-isystem %,$(shell pkg-config --cflags $(MPI_PC_$(1))))
mpi_flags = $(call mpi_headers,$(1)) $(shell pkg-config --libs-only-L $(MPI_PC_$(1))) $(MPI_LINK_$(1))

define mpi_rules
$(BUILD)/mpi/$(1)/%.o: userlib/mpi/%.c
	$$(call begin,CC,$$< ($(1)))
	@$$(CC) $$(ALL_CFLAGS) $$(call mpi_headers,$(1)) -c -o $$@ $$<

$(BUILD)/libmuster-mpi-$(1).so.0: userlib/mpi/libmuster-mpi.map \
		$(call mpi_objects,$(1)) $(BUILD)/libmuster.so.0
	$$(call begin,LD,$$@)
	@$$(CC) -shared -Wl,-soname,$$(@F) -Wl,--version-script=$$< -Wl,-z,defs -o $$@ \
		$$(filter %.o,$$^) $(BUILD)/libmuster.so.0 $$(call mpi_flags,$(1)) \
		-Wl,-rpath,'$$$$ORIGIN'

$(BUILD)/selftests/mpi/%.$(1).o: selftests/mpi/%.c selftests/mpi/must.h
	$$(call begin,CC,$$< ($(1)))
	@$$(CC) -std=gnu11 -Wall -Wextra $$(if $$(WERROR),-Werror) -D_GNU_SOURCE $$(CFLAGS) \
		$$(call mpi_headers,$(1)) -c -o $$@ $$<

$(BUILD)/selftests/mpi/%.$(1): $(BUILD)/selftests/mpi/%.$(1).o
	@$$(LINK) $$(call mpi_flags,$(1)) -ldl -lpthread

$(BUILD)/mpi/$(1)/examples/%.o: userlib/examples/%.c
	$$(call begin,CC,$$< ($(1)))
	@$$(CC) $$(ALL_CFLAGS) -Iuserlib/examples $$(call mpi_headers,$(1)) -c -o $$@ $$<

$(BUILD)/userlib/examples/%.$(1): $(patsubst %,$(BUILD)/mpi/$(1)/examples/%.o,% report dpkg_graph mpi/ranks)
	@mkdir -p $$(@D)
	@$$(LINK) $$(call mpi_flags,$(1)) -lm
endef
$(foreach m,$(MPIS),$(eval $(call mpi_rules,$(m))))

# A component of Open MPI's own, of the same objects, but for what stands before that library.
COLL := $(if $(filter openmpi,$(MPIS)),$(BUILD)/openmpi/mca_coll_muster.so)
COLL_OBJECTS := $(filter-out $(patsubst %,$(BUILD)/mpi/openmpi/%.o,again beneath nonblocking persistent program), \
	$(call mpi_objects,openmpi)) $(BUILD)/mpi/openmpi/coll/coll_muster.o

$(BUILD)/openmpi/mca_coll_muster.so: userlib/mpi/coll/coll_muster.map $(COLL_OBJECTS) $(BUILD)/libmuster.so.0
	$(call begin,LD,$@)
	@$(CC) -shared -Wl,--version-script=$< -Wl,-z,defs -o $@ $(filter %.o,$^) $(BUILD)/libmuster.so.0 \
		$(call mpi_flags,openmpi) -lopen-pal -Wl,-rpath,'$$ORIGIN/..'

# The runner with real guests; and the device behind QEMU's test protocol, without any.
VM_UNITS := $(BUILD)/qemu-device/muster_test $(BUILD)/tools/vm_test

$(BUILD)/qemu-device/muster_test: %: %.o
	@$(LINK) -lcmocka

$(BUILD)/tools/vm_test: %: %.o $(TOOL_LIB) $(call libs,$(BUILD))
	@$(LINK) -lcmocka

# A provider as of the next ABI version, to see it refused.
NEXT_ABI := $(BUILD)/selftests/guest/abi/libmuster-rdmav34.so

$(NEXT_ABI): provider/libmusterdv.map $(wildcard provider/*.[ch]) uapi/rdma/muster-abi.h | $(RDMA_CORE)
	@mkdir -p $(@D)/rdma
	@awk '$$2 == "MUSTER_ABI_VERSION" { $$0 = $$1 " " $$2 " " $$3 + 1 } { print }' uapi/rdma/muster-abi.h >$(@D)/rdma/muster-abi.h
	@$(CC) -I$(@D) $(filter-out -MMD -MP,$(ALL_CFLAGS)) -Iprovider -isystem $(RDMA_CORE) -shared \
		-Wl,--version-script=$< -o $@ provider/*.c -libverbs

include tools/install.mk

.SECONDARY:
-include $(shell test -d $(BUILD) && find $(BUILD) -name '*.d')

# ---- targets -----------------------------------------------------------------

.PHONY: all setup setup-core demo demo-local check bench bench-mpi bench-parts dst dst-planted model clean help
.PHONY: built kernel guest-kernel headers looks provider guest-tests check-guest check-kernel check-local setup-guest guests
.PHONY: stress-kernel fuzz-kernel faults-kernel planted-kernel tenants-kernel check-pyverbs
.PHONY: bench-programs bench-try bench-guest bench-verbs bench-bump bench-arith bench-engine bench-model bench-match bench-switch bench-look bench-idle check-synth \
	synth-tables torus-tables
.PHONY: check-all check-compilers check-aarch64 check-image compile compilers
.PHONY: check-threads check-diagnosis check-scale check-bump check-switch chaos-switch fuzz-switch
.PHONY: check-engine check-wire check-nic check-userlib check-selftests check-sweep check-faults-coll
.PHONY: check-mpi check-mpi-all check-mpi-suite mpi fuzz coverage counted

all: $(BUILD)/libmuster.so.0 $(MPI_LIBS) $(COLL) $(TOOLS) $(SYNTH_TOOL) $(EXAMPLES) ## build library, tools and examples

setup: ## install what is missing (says what, first)
	@tools/setup/setup.sh core

setup-core:
	@tools/setup/setup.sh --quiet core

demo: guests ## PageRank in 4 virtual machines and on the local device, both paths, side by side
	@tools/demo.sh $(abspath $(BUILD))

demo-local: all ## PageRank on 4 local ranks: NIC path beside host path
	@$(BUILD)/tools/muster-run -n 4 $(BUILD)/userlib/examples/pagerank

kernel: ## build the driver: build/kernel/muster.ko; KERNEL=6.12, debug: for that kernel
	+@KERNEL=$(KERNEL) tools/setup/kernel.sh

guest-tests: $(GUEST_TESTS) $(NEXT_ABI) ## build the programs that guests run as tests

provider: $(DV) $(VERBS) ## build provider, direct verbs, and the library's device on them

setup-guest: setup-core ## fetch and build what guests need: QEMU with the device, kernel, headers
	@tools/setup/setup.sh --quiet guest
	@tools/setup/qemu.sh
	@tools/setup/guest-kernel.sh
	@tools/setup/rdma-core.sh

guests: all ## everything that runs ranks in guests (muster-run --vm)
	@$(MAKE) --no-print-directory setup-guest
	+@$(MAKE) --no-print-directory $(PARALLEL) kernel provider guest-tests

# The longest first.
DRIVER_CHECKS := selftests/driver_life_test.sh selftests/driver_test.sh
GUEST_CHECKS := $(DRIVER_CHECKS) selftests/guests_test.sh selftests/guests_diagnosis_test.sh \
	selftests/boot_test.sh

# Other kernels than the usual one have folders of their own. The one that watches is slow and
# takes its time; what is repeated is repeated less often.
KERNEL_6.12 := MUSTER_VM_DIR=$(abspath build/vm-6.12) MUSTER_MODULE=$(abspath build/kernel-6.12/muster.ko)
KERNEL_debug := MUSTER_VM_DIR=$(abspath build/vm-debug) MUSTER_PATIENCE=100 TIMES=$(or $(TIMES),2) \
	MUSTER_TEST_TIMEOUT=200000 MUSTER_MODULE=$(abspath build/kernel-debug/muster.ko)

# The newer kernel itself, after its driver; the debug kernel comes with its driver.
guest-kernel: guests
	@$(if $(filter 6.12,$(KERNEL)),tools/setup/newer-kernel.sh $(KERNEL))

check-kernel: export MUSTER_REST := yes
check-kernel: guest-kernel ## the driver in guests; KERNEL=6.12, or debug: under KASAN, lockdep, kmemleak
	$(if $(filter 6.1 6.12 debug,$(KERNEL)),,$(error guests run under KERNEL=6.1, 6.12 or debug))
	@MUSTER_BUILD=$(abspath $(BUILD)) $(KERNEL_$(KERNEL)) exec \
		selftests/run.sh $(DRIVER_CHECKS)

# What takes hours. KERNEL says under which kernel.
LONG_KERNEL = MUSTER_BUILD=$(abspath $(BUILD)) MUSTER_TEST_TIMEOUT=200000 $(KERNEL_$(KERNEL))

stress-kernel: guest-kernel ## the device goes away 1,500 times under 16 processes; UNBINDS, RELOADS, UNPLUGS, RESETS=n; KERNEL=
	@$(LONG_KERNEL) exec selftests/run.sh selftests/stress_kernel.sh

fuzz-kernel: guest-kernel ## a million calls to the driver that make no sense; CALLS=n SEED=n [REPLAY=file] KERNEL=debug
	@$(LONG_KERNEL) exec selftests/run.sh selftests/fuzz_kernel.sh

faults-kernel: guest-kernel ## for each verb, bind and unbind: its n-th allocation fails, for all n; STEPS=names KERNEL=debug
	@$(LONG_KERNEL) exec selftests/run.sh selftests/faults_kernel.sh

planted-kernel: ## bugs planted in the driver, one after the other: the kernel that watches says so; ONLY=names
	@$(MAKE) --no-print-directory guest-kernel KERNEL=debug
	@MUSTER_BUILD=$(abspath $(BUILD)) $(KERNEL_debug) exec selftests/run.sh selftests/planted_kernel.sh

tenants-kernel: guest-kernel ## a million tries of one tenant to get at what is another's; TRIES=n; KERNEL=
	@$(LONG_KERNEL) exec selftests/run.sh selftests/tenants_kernel.sh

check-pyverbs: guest-kernel ## rdma-core's own Python tests in a guest, which it installs
	@tools/setup/setup.sh --quiet pyverbs
	@$(LONG_KERNEL) exec selftests/run.sh selftests/pyverbs.sh

SLOW_CHECKS := selftests/compilers_test.sh selftests/aarch64_test.sh selftests/image_test.sh
LOCAL_CHECKS := $(filter-out $(GUEST_CHECKS) $(SLOW_CHECKS),$(wildcard selftests/*_test.sh))

# Without guests; the longest first, so that none is left over at the end.
LONG_LOCAL := $(addprefix selftests/,dst_test.sh bump_library_test.sh kbuild_test.sh switchd_test.sh faults_test.sh) \
	$(addprefix $(SAN)/userlib/,synth/synth_test synth/mutant_test schedule/lower_machine_test schedule/generate_test) \
	$(addprefix selftests/,mpi_behave_test.sh perf_test.sh synth_test.sh diagnosis_test.sh bits_test.sh \
		bump_hosts_test.sh)
LOCAL_TESTS := $(LONG_LOCAL) $(filter-out $(LONG_LOCAL),$(LOCAL_CHECKS) $(UNITS))

# What tests look at results with; what cannot be had is skipped and says so.
looks:
	-@tools/setup/setup.sh --quiet install check

# What MPI programs run with; without an MPI its tests are skipped and say so.
mpi: ## libmuster-mpi for Debian's Open MPI and MPICH, which it installs
	-@tools/setup/setup.sh --quiet core mpi
	+@$(MAKE) --no-print-directory $(PARALLEL) mpi-parts

.PHONY: mpi-parts
mpi-parts: $(MPI_LIBS) $(COLL) $(MPI_TESTS) $(MPI_EXAMPLES) $(BUILD)/tools/muster-mpi

# A newer kernel's headers; where they cannot be had its test is skipped and says so.
headers:
	-@tools/setup/kernel-headers.sh 6.12

# What tests run, compiled by all CPUs at once.
built: setup-core
	+@$(MAKE) --no-print-directory $(PARALLEL) all $(UNITS) $(SELFTESTS) $(REPLAYS) $(VM_UNITS)

check: built guests headers looks mpi ## every test; ends with "N passed, N failed, N skipped"
	@MUSTER_BUILD=$(abspath $(BUILD)) exec selftests/run.sh $(GUEST_CHECKS) $(VM_UNITS) $(LOCAL_TESTS)

check-all: export MUSTER_REST := yes
check-all: check check-compilers check-aarch64 check-threads check-sweep check-faults-coll ## every test, and those that take long

check-faults-coll: all $(SELFTESTS) | $(KEEP) ## every collective on both paths: a rank that calls something else, dies, leaves or stops is named
	@MUSTER_FAULTS_ALL=yes MUSTER_BUILD=$(abspath $(BUILD)) $(KEEP) -t 7200 selftests/faults_test.sh

check-sweep: all $(SELFTESTS) | $(KEEP) ## every collective, form, type, operation, algorithm and length, for 1 to 17, 32 and 64 ranks
	@MUSTER_SWEEP_ALL=yes MUSTER_BUILD=$(abspath $(BUILD)) $(KEEP) -t 14400 selftests/sweep_test.sh

# Debian 13's gcc beside the machine's own; where it cannot be had its test is skipped and says so.
compilers: setup-core
	@tools/setup/setup.sh --quiet guest compilers
	-@tools/setup/compiler.sh 14 trixie

check-compilers: compilers $(RDMA_CORE) | $(KEEP) ## gcc 12 and 14, clang, -O0 to -O3: everything compiles without a warning
	@MUSTER_TEST_TIMEOUT=7200 MUSTER_BUILD=$(abspath $(BUILD)) exec selftests/run.sh selftests/compilers_test.sh

check-aarch64: all $(BUILD)/selftests/ranks ## cross-compiled ranks under qemu-aarch64: the same bits
	@tools/setup/setup.sh --quiet aarch64
	@MUSTER_BUILD=$(abspath $(BUILD)) exec selftests/run.sh selftests/aarch64_test.sh

check-image: guests ## somebody else's machine: a stock Debian 12 disk, DKMS, an ordinary user
	@tools/setup/image.sh
	@MUSTER_TEST_TIMEOUT=7200 MUSTER_BUILD=$(abspath $(BUILD)) exec selftests/run.sh selftests/image_test.sh

# All that is compiled for this machine, linked or not; for compilers_test.sh.
compile: $(patsubst %.c,$(BUILD)/%.o,$(wildcard $(addsuffix /*.c,$(ROOMS) $(OTHER_ROOMS)))) \
	$(foreach m,$(MPIS),$(call mpi_objects,$(m)))

check-local: built looks mpi ## the tests that need no virtual machine
	@MUSTER_BUILD=$(abspath $(BUILD)) exec selftests/run.sh $(LOCAL_TESTS)

# The units of the synthesizer, and what runs its schedules.
SYNTH_UNITS := $(filter $(SAN)/$(SYNTH)/%,$(UNITS))

check-synth: export MUSTER_REST := yes
check-synth: all $(SYNTH_UNITS) $(BUILD)/selftests/scheduled | $(KEEP) ## the synthesizer: unit tests, command, its schedules run
	@MUSTER_BUILD=$(abspath $(BUILD)) exec selftests/run.sh $(SYNTH_UNITS) selftests/synth_test.sh

# What a comparison of hours has measured is kept until it ends, for the next run if this one does not.
COMPARED := $(BUILD)/synth-compared

synth-tables: $(SYNTH_TOOL) ## tables 4 and 5 of the SCCL paper: found, checked, labels proved [COMPARE=1]
	@[ $(COMPARED) -nt $< ] || rm -rf $(COMPARED)
	@$< tables $(if $(COMPARE),--compare --seeds 3 --cache $(COMPARED)) --cpu 120
	@rm -rf $(COMPARED)

torus-tables: $(SYNTH_TOOL) ## the torus allgather: sizes by step, buffers, efficiency
	@for shape in 6x6x6x6x6x6 2.6x2.6x2.6 2.10x2.10x2.10; do \
		for how in "" --balanced; do echo "$$shape $$how"; $< torus $$shape $$how || exit; done; done

check-scale: all $(SELFTESTS) | $(KEEP) ## 1,024 local ranks start, add up and end, every schedule of 4,096 ranks is proved, 4,096 communicators of 16, and of 64 simulated ones, two million operations over 64, 2,048 ports to look at; with figures
	@MUSTER_SCALE=1024 MUSTER_SCALE_S=60 MUSTER_PROVED=4096 MUSTER_BUILD=$(abspath $(BUILD)) \
		$(KEEP) -t 900 selftests/scale_test.sh
	@MUSTER_COMMS=4096 MUSTER_RANKS=16 MUSTER_OPERATIONS=2000000 MUSTER_SIMULATED=4096 \
		MUSTER_SIMULATED_RANKS=64 MUSTER_SIMULATED_SEED=2 MUSTER_BUILD=$(abspath $(BUILD)) \
		$(KEEP) -t 5400 selftests/comms_test.sh
	@MUSTER_PORTS=2048 MUSTER_BUILD=$(abspath $(BUILD)) $(KEEP) -t 900 selftests/ports_test.sh

check-diagnosis: export MUSTER_REST := yes
check-diagnosis: guests $(SELFTESTS) | $(KEEP) ## 200 hangs made on purpose, and 90 in guests, each explained; ends with the figures; HANGS=n
	@export MUSTER_BUILD=$(abspath $(BUILD)) MUSTER_FIGURES=$(abspath $(BUILD))/diagnosis.txt; \
	rm -f "$$MUSTER_FIGURES"; failed=0; \
	MUSTER_HANGS=$(or $(HANGS),16) $(KEEP) -t 7200 selftests/diagnosis_test.sh || failed=1; \
	MUSTER_HANGS=$(or $(HANGS),10) MUSTER_TEST_TIMEOUT=7200 \
		selftests/run.sh selftests/guests_diagnosis_test.sh || failed=1; \
	cat "$$MUSTER_FIGURES"; exit $$failed

check-threads: all $(TSAN)/selftests/threads $(NIC_THREADS) | $(KEEP) ## several threads of each rank, and of a NIC, under ThreadSanitizer
	@MUSTER_THREADS=$(abspath $(TSAN)/selftests/threads) MUSTER_BUILD=$(abspath $(BUILD)) exec \
		selftests/run.sh selftests/threads_test.sh $(NIC_THREADS)

check-engine: $(filter $(SAN)/$(ENGINE)/%,$(UNITS)) | $(KEEP) ## unit tests of the engine
	@MUSTER_BUILD=$(abspath $(BUILD)) exec selftests/run.sh $^

fuzz: ## fuzzers of descriptors and packets, frames, the NIC, rings, schedules; SECONDS=n each [ONLY=name]
	-@tools/setup/setup.sh --quiet guest compilers
	@$(MAKE) --no-print-directory $(FUZZERS)
	@MUSTER_BUILD=$(abspath $(BUILD)) selftests/fuzz/run.sh $(or $(SECONDS),60) $(ONLY)

# The programs that count; in a build folder of their own.
COUNTED := $(filter $(foreach r,$(ENGINE) $(WIRE) $(NIC) $(SWITCH) $(LOCAL),$(SAN)/$(r)/%),$(UNITS)) $(SAN)/selftests/dst/dst $(REPLAYS)

counted: $(COUNTED)
	@selftests/coverage.sh $(abspath $(SAN)) $(ENGINE) $(WIRE) $(NIC) -- $(abspath $(COUNTED))

coverage: setup-core ## lines of engine, wire and NIC that unit tests, simulated world and kept inputs reach
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/coverage COVERAGE=1 counted

check-wire: $(filter $(SAN)/$(WIRE)/%,$(UNITS)) | $(KEEP) ## unit tests of the wire
	@MUSTER_BUILD=$(abspath $(BUILD)) exec selftests/run.sh $^

check-nic: $(filter $(SAN)/$(NIC)/%,$(UNITS)) | $(KEEP) ## unit tests of the NIC's queues
	@MUSTER_BUILD=$(abspath $(BUILD)) exec selftests/run.sh $^

check-bump: all $(filter $(SAN)/$(BUMP)/%,$(UNITS)) $(SELFTESTS) | $(KEEP) ## the bump in the wire: unit tests, simulated networks
	@MUSTER_BUILD=$(abspath $(BUILD)) exec selftests/run.sh $(filter $(SAN)/$(BUMP)/%,$^) $(wildcard selftests/bump*_test.sh)

check-switch: all $(filter $(SAN)/$(SWITCH)/%,$(UNITS)) $(SELFTESTS) | $(KEEP) ## the reduction switch: unit tests, networks, ranks at real switches
	@MUSTER_SWEEP=1048576 MUSTER_BUILD=$(abspath $(BUILD)) exec \
		selftests/run.sh $(filter $(SAN)/$(SWITCH)/%,$^) selftests/fabric_test.sh selftests/switchd_test.sh \
		selftests/locks_test.sh selftests/rails_test.sh selftests/switch_model_test.sh

chaos-switch: all $(SELFTESTS) | $(KEEP) ## a member, all switches, a link, the manager, a leaf and a spine lost in the middle of 16 MiB allreduces, each switch replaced, and spines drained; N=20 times each
	@MUSTER_CHAOS=$(or $(N),20) MUSTER_BUILD=$(abspath $(BUILD)) $(KEEP) -t 3600 selftests/chaos_switch.sh

fuzz-switch: $(BUILD)/selftests/switch_fuzz ## wrong messages of trees at a switch that runs operations meanwhile; N=10000000 [SEED=1]
	@$< $(or $(N),10000000) $(or $(SEED),1)

check-userlib: $(filter $(SAN)/userlib/%,$(UNITS)) | $(KEEP) ## unit tests of the library
	@MUSTER_BUILD=$(abspath $(BUILD)) exec selftests/run.sh $^

check-selftests: all mpi $(SELFTESTS) $(REPLAYS) | $(KEEP) ## behaviour tests with real processes
	@MUSTER_BUILD=$(abspath $(BUILD)) exec selftests/run.sh $(LOCAL_CHECKS)

check-mpi: all mpi | $(KEEP) ## MPI programs as they are, on Muster: Open MPI and MPICH
	-@tools/setup/setup.sh --quiet mpi-programs
	@MUSTER_MPI_FULL=yes MUSTER_BUILD=$(abspath $(BUILD)) exec selftests/run.sh $(wildcard selftests/mpi*_test.sh)

check-mpi-suite: all mpi | $(KEEP) ## MPICH's own tests of MPI, with both MPIs: what passes without Muster passes with it
	@tools/setup/mpi-suite.sh
	@MUSTER_BUILD=$(abspath $(BUILD)) $(KEEP) -t 40000 selftests/mpi_suite.sh

# What takes long says how far it is, and what is held by then.
check-mpi-all: check-mpi check-mpi-suite ## the same, more programs, random ones; 100,000 communicators, 10,000 operations under way, threads for a minute
	-@tools/setup/setup.sh --quiet mpi-all
	@MUSTER_MPI_ALL=yes MUSTER_BUILD=$(abspath $(BUILD)) $(KEEP) -t 7200 selftests/mpi_programs_test.sh
	@MUSTER_MPI_ALL=yes MUSTER_BUILD=$(abspath $(BUILD)) $(KEEP) -t 7200 selftests/mpi_differ_test.sh
	@MUSTER_MPI_ALL=yes MUSTER_BUILD=$(abspath $(BUILD)) $(KEEP) -t 80000 selftests/mpi_endure_test.sh

check-guest: guest-kernel $(BUILD)/selftests/ranks $(BUILD)/selftests/scheduled $(VM_UNITS) ## device, driver, provider and jobs in guests; KERNEL=6.12
	$(if $(filter 6.1 6.12,$(KERNEL)),,$(error guests with jobs run under KERNEL=6.1 or 6.12))
	@MUSTER_BUILD=$(abspath $(BUILD)) $(KERNEL_$(KERNEL)) exec selftests/run.sh $(GUEST_CHECKS) $(VM_UNITS)

bench: all ## NIC path, host path and the machine's limits in one run; writes build/bench/
	@MUSTER_BUILD=$(abspath $(BUILD)) tools/bench.sh

bench-mpi: all ## Muster beside Debian's Open MPI and MPICH, which it installs
	@tools/setup/setup.sh --quiet core mpi
	@MUSTER_BUILD=$(abspath $(BUILD)) tools/bench_mpi.sh

bench-programs: all mpi ## the examples on Muster, on Open MPI and on MPICH: time, and time in collectives
	@MUSTER_BUILD=$(abspath $(BUILD)) tools/bench-programs.sh

bench-try: all ## what the path that is taken costs beside the other one: every collective, by size, 21 times in turn
	@MUSTER_BUILD=$(abspath $(BUILD)) tools/bench-try.sh

bench-bump: all $(BUILD)/selftests/bump_hosts $(BUILD)/selftests/bump_model ## the bump in the wire beside Open MPI over TCP, and a plain forwarder
	@tools/setup/setup.sh --quiet bump
	@MUSTER_BUILD=$(abspath $(BUILD)) tools/bench-bump.sh $(PART)

bench-switch: $(BUILD)/selftests/switch_bench $(BUILD)/selftests/switch_model ## the SHARP paper's figures in modelled time: tables and picture in build/bench/; one thread's reduction beside memcpy
	@MUSTER_BUILD=$(abspath $(BUILD)) tools/bench-switch.sh

bench-look: $(BUILD)/selftests/look_bench ## what the looking page and trace records cost in an 8-byte allreduce: instructions
	@tools/setup/setup.sh --quiet valgrind
	@MUSTER_BUILD=$(abspath $(BUILD)) tools/bench-look.sh

bench-idle: $(BUILD)/selftests/look_bench $(BUILD)/selftests/nic_bench ## what 4,000 open contexts and 2,046 open ports cost an 8-byte allreduce of others: instructions
	@tools/setup/setup.sh --quiet valgrind
	@MUSTER_BUILD=$(abspath $(BUILD)) tools/bench-idle.sh

bench-parts: $(BUILD)/tools/muster_parts ## what a rank's own part of a schedule costs among 65,536
	@$<

bench-arith: $(BUILD)/tools/muster_arith ## what types and operations, eight sources and exact sums cost
	@$<

bench-match: $(BUILD)/tools/muster_match ## 8-byte packets that come shuffled, matched and added: beside a bare hash table
	@$<

bench-engine: $(BUILD)/selftests/engine_bench ## the Tianhe paper's figures in modelled time: table and picture in build/bench/
	@MUSTER_BUILD=$(abspath $(BUILD)) tools/bench-engine.sh engine

bench-model: $(BUILD)/selftests/engine_bench ## engines with fewer units, less buffer, a smaller window: table and picture in build/bench/
	@MUSTER_BUILD=$(abspath $(BUILD)) tools/bench-engine.sh model

bench-guest: guests ## what offload saves in 4 guests, counted: doorbells, interrupts, DMA, instructions
	@$(BUILD)/tools/muster-run -n 4 --vm --count --no-prefix $(BUILD)/tools/muster_count

bench-verbs: guests looks ## a message between two guests on muster0 and on rdma_rxe, counted
	@MUSTER_BUILD=$(abspath $(BUILD)) tools/bench-verbs.sh

dst: $(SAN)/selftests/dst/dst ## simulated seeds, on all CPUs: make dst SEED=n [COUNT=n] [TRACE=1] [LIBRARY=1 | TREES=1] [LIMITS=list]
	@$< $(if $(TRACE),--trace,--jobs $(shell nproc)) $(if $(LIBRARY),--library) $(if $(TREES),--trees) \
		$(if $(LIMITS),--limits $(LIMITS)) --seeds $(or $(SEED),1) $(or $(COUNT),$(if $(SEED),1,2000))

# Its parts again, of which one is exchanged for the same with a bug.
PLANTED := $(BUILD)/selftests/dst/dst

dst-planted: $(PLANTED) ## 44 bugs, planted one after the other: within how many seeds each is found [COUNT=n] [ONLY=names]
	@COMPILE='$(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS))' LINK='$(CC)' \
		PARTS='$(PLANTED).o $(call selftest_parts,$(BUILD)) $(addprefix $(BUILD)/,$(BUMP:=/lib.a) $(SWITCH:=/lib.a)) $(call libs,$(BUILD))' \
		MUSTER_BUILD=$(abspath $(BUILD)) selftests/dst/planted.sh $(or $(COUNT),20000) $(ONLY)

model: ## search the grant and window rules for deadlocks with spin
	@tools/setup/setup.sh --quiet core
	@Documentation/model/run.sh

clean: ## remove the build folder
	rm -rf $(BUILD)

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18
