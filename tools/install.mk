# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# make install, install-provider, install-driver, uninstall. A tool is installed if it has a manual page.
# DESTDIR: the root that all goes below, for packages; paths inside files do not have it.
# Included by the Makefile.

VERSION    := $(shell sed -n 's/.*MUSTER_VERSION "\(.*\)"/\1/p' userlib/version.h)
PREFIX     ?= /usr/local
BINDIR     ?= $(PREFIX)/bin
LIBDIR     ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DATADIR    ?= $(PREFIX)/share
MANDIR     ?= $(DATADIR)/man
# libibverbs reads driver files here alone, whatever our own prefix is.
IBVERBSDIR ?= /etc/libibverbs.d

PAGES      := $(wildcard Documentation/man/*.rst)
MAN_PAGES  := $(PAGES:Documentation/man/%.rst=$(BUILD)/man/%)
TOOL_NAMES := $(patsubst Documentation/man/%.1.rst,%,$(filter %.1.rst,$(PAGES)))
# Of direct verbs: one each, and one of all.
DV_PAGES   := $(filter $(BUILD)/man/musterdv%,$(MAN_PAGES))
DV_HEADERS := provider/musterdv.h uapi/muster_regs.h uapi/muster_qp.h uapi/muster_desc.h uapi/muster_wire.h
# What is written at installation, as it has the paths in it.
GENERATED  := $(BUILD)/install

# FROM=TO; of links what they say=where they are. usage: $(call library_files,NAME,FOLDER)
library_files = $(2)/lib$(1).so.0=$(LIBDIR)/lib$(1).so.0.$(VERSION)
library_links = lib$(1).so.0.$(VERSION)=$(LIBDIR)/lib$(1).so.0 lib$(1).so.0=$(LIBDIR)/lib$(1).so

INSTALL := $(call library_files,muster,$(BUILD)) userlib/muster.h=$(INCLUDEDIR)/muster.h \
	$(GENERATED)/muster.pc=$(LIBDIR)/pkgconfig/muster.pc \
	$(foreach t,$(TOOL_NAMES),$(BUILD)/tools/$(t)=$(BINDIR)/$(t)) \
	$(foreach p,$(filter-out $(DV_PAGES),$(MAN_PAGES)),$(p)=$(MANDIR)/man$(subst .,,$(suffix $(p)))/$(notdir $(p))) \
	$(foreach s,$(wildcard tools/schema/*.json),$(s)=$(DATADIR)/muster/schema/$(notdir $(s))) \
	tools/wireshark/muster.lua=$(DATADIR)/muster/wireshark/muster.lua \
	tools/completion.bash=$(DATADIR)/muster/completion.bash \
	$(foreach l,$(MPI_LIBS),$(l)=$(LIBDIR)/$(notdir $(l))) $(foreach c,$(COLL),$(c)=$(LIBDIR)/muster/$(notdir $(c)))
INSTALL_LINKS := $(call library_links,muster) $(foreach t,$(TOOL_NAMES), \
	../../muster/completion.bash=$(DATADIR)/bash-completion/completions/$(t))

PROVIDER := $(call library_files,musterdv,$(BUILD)/provider) $(call library_files,muster-verbs,$(BUILD)) \
	$(foreach h,$(DV_HEADERS),$(h)=$(INCLUDEDIR)/muster/$(notdir $(h))) \
	$(foreach p,$(DV_PAGES),$(p)=$(MANDIR)/man3/$(notdir $(p))) \
	$(GENERATED)/musterdv.pc=$(LIBDIR)/pkgconfig/musterdv.pc \
	$(GENERATED)/muster.driver=$(IBVERBSDIR)/muster.driver
PROVIDER_LINKS := $(call library_links,musterdv) $(call library_links,muster-verbs) \
	../libmusterdv.so.0=$(LIBDIR)/libibverbs/libmuster-rdmav34.so

# Where DKMS looks for sources, whatever our own prefix is.
DKMSDIR ?= /usr/src/muster-$(VERSION)
DRIVER  := Kbuild=$(DKMSDIR)/Kbuild $(GENERATED)/dkms.conf=$(DKMSDIR)/dkms.conf \
	$(foreach f,$(wildcard kernel/Kbuild kernel/*.[ch] uapi/*.h uapi/rdma/*.h),$(f)=$(DKMSDIR)/$(f))

.PHONY: install install-provider install-driver uninstall man pkgconfig

install: all man pkgconfig ## library, header, muster.pc, tools, manual pages [PREFIX=/usr/local DESTDIR=]
	@$(call put,$(INSTALL),$(INSTALL_LINKS))

install-provider: provider pkgconfig $(DV_PAGES) ## what programs need to use a NIC: provider, direct verbs with their pages, musterdv.pc
	@echo 'driver $(LIBDIR)/libibverbs/libmuster' >$(GENERATED)/muster.driver
	@$(call put,$(PROVIDER),$(PROVIDER_LINKS))

install-driver: ## the driver's sources, for DKMS: `dkms install muster/VERSION` builds them
	@mkdir -p $(GENERATED)
	@sed 's|@VERSION@|$(VERSION)|' kernel/dkms.conf.in >$(GENERATED)/dkms.conf
	@$(call put,$(DRIVER),)

uninstall: ## what install, install-provider and install-driver have put there
	@for pair in $(INSTALL) $(PROVIDER) $(DRIVER) $(INSTALL_LINKS) $(PROVIDER_LINKS); do \
		rm -f "$(DESTDIR)$${pair#*=}" || exit; done

man: $(MAN_PAGES)

# All of them by one program, which takes as long to start as for a dozen of them.
$(MAN_PAGES) &: $(PAGES)
	@tools/setup/setup.sh --quiet install
	@mkdir -p $(BUILD)/man
	@/usr/bin/python3 tools/man.py $(BUILD)/man $^

pkgconfig:
	@$(if $(filter /%,$(PREFIX)),,$(error PREFIX=$(PREFIX): it is a path from the root on))
	@mkdir -p $(GENERATED)
	@for file in userlib/muster.pc provider/musterdv.pc; do \
		sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@INCLUDEDIR@|$(INCLUDEDIR)|; s|@VERSION@|$(VERSION)|' \
			$$file.in >$(GENERATED)/$${file##*/} || exit; done

# usage: $(call put,FILES,LINKS)
define put
for pair in $(1); do \
		from=$${pair%%=*} mode=644; [ ! -x "$$from" ] || mode=755; \
		install -D -m $$mode "$$from" "$(DESTDIR)$${pair#*=}" || exit; done; \
	for pair in $(2); do \
		to="$(DESTDIR)$${pair#*=}"; mkdir -p "$${to%/*}" && ln -sfn "$${pair%%=*}" "$$to" || exit; done
endef
