# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Muster. `make help` lists the targets. Each does what it needs first, so that
# `make demo` alone and `make check` alone are enough on a fresh machine.
#
# A room's library is all .c files of its folder; <file>_test.c is a unit test,
# linked against the rooms that it may know. Nothing is listed by hand.

BUILD ?= build
CC := gcc
CFLAGS ?= -O2 -g
MARCH ?=
ALL_CFLAGS = -std=gnu11 -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Wshadow -Werror \
	-ffp-contract=off -fno-strict-aliasing -D_GNU_SOURCE -fPIC -MMD -MP \
	-Iuapi -Iqemu-device/engine -Iqemu-device/wire -Iuserlib $(MARCH) $(CFLAGS)

.DEFAULT_GOAL := all
MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:

# ---- rooms -----------------------------------------------------------------

sources = $(filter-out %_test.c,$(wildcard $(1)/*.c))
objects = $(patsubst %.c,$(2)/%.o,$(call sources,$(1)))
tests   = $(patsubst %.c,%,$(wildcard $(1)/*_test.c))

ENGINE  := qemu-device/engine
WIRE    := qemu-device/wire
ROOMS   := $(ENGINE) $(WIRE) userlib

# Two builds of the same sources: the product, and one under sanitizers for tests.
SAN := $(BUILD)/san
$(SAN)/%: CFLAGS := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all \
	-fno-omit-frame-pointer

define room
$(1)/$(2)/lib.a: $$(call objects,$(2),$(1))
	@rm -f $$@ && ar rcs $$@ $$^
endef
$(foreach r,$(ROOMS),$(eval $(call room,$(BUILD),$(r)))$(eval $(call room,$(SAN),$(r))))

$(SAN)/%.o: %.c | tools-core
	@mkdir -p $(@D)
	@echo "  CC    $< (sanitized)"
	@$(CC) $(ALL_CFLAGS) -c -o $@ $<

$(BUILD)/%.o: %.c | tools-core
	@mkdir -p $(@D)
	@echo "  CC    $<"
	@$(CC) $(ALL_CFLAGS) -c -o $@ $<

libs = $(1)/userlib/lib.a $(1)/$(ENGINE)/lib.a $(1)/$(WIRE)/lib.a

$(BUILD)/libmuster.so: $(call libs,$(BUILD))
	@echo "  LD    $@"
	@$(CC) -shared -Wl,-soname,libmuster.so.0 -Wl,--version-script=userlib/libmuster.map \
		-o $@ -Wl,--whole-archive $^ -Wl,--no-whole-archive

# ---- programs --------------------------------------------------------------

TOOLS    := $(patsubst tools/%.c,$(BUILD)/tools/%,$(shell grep -ls '^int main' tools/*.c))
EXAMPLES := $(patsubst userlib/examples/%.c,$(BUILD)/examples/%,$(wildcard userlib/examples/*.c))

$(BUILD)/tools/%: $(BUILD)/tools/%.o $(call libs,$(BUILD))
	@echo "  LD    $@"
	@$(CC) $(CFLAGS) -o $@ $(filter %.o,$^) $(call libs,$(BUILD)) -lm

$(BUILD)/examples/%: $(BUILD)/userlib/examples/%.o $(call libs,$(BUILD))
	@mkdir -p $(@D)
	@echo "  LD    $@"
	@$(CC) $(CFLAGS) -o $@ $< $(call libs,$(BUILD)) -lm

$(SAN)/%_test: $(SAN)/%_test.o $(call libs,$(SAN))
	@echo "  LD    $@"
	@$(CC) $(CFLAGS) -o $@ $^ -lcmocka -lm

.SECONDARY:
