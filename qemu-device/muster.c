/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Muster NIC as a PCI device of QEMU: for now a register bar whose first
 * register reads a magic number, which proves the build and the boot.
 */
#include "qemu/osdep.h"
#include "hw/pci/pci.h"
#include "qom/object.h"

#define TYPE_MUSTER "muster"
OBJECT_DECLARE_SIMPLE_TYPE(MusterState, MUSTER)

#define MUSTER_PCI_DEVICE 0x10f0
#define MUSTER_MAGIC 0x4d555354u

struct MusterState {
    PCIDevice pci;
    MemoryRegion regs;
};

static uint64_t regs_read(void *opaque, hwaddr addr, unsigned size)
{
    return addr == 0 ? MUSTER_MAGIC : 0;
}

static void regs_write(void *opaque, hwaddr addr, uint64_t value, unsigned size)
{
}

static const MemoryRegionOps regs_ops = {
    .read = regs_read,
    .write = regs_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .impl = { .min_access_size = 4, .max_access_size = 4 },
};

static void muster_realize(PCIDevice *pci, Error **errp)
{
    MusterState *m = MUSTER(pci);

    memory_region_init_io(&m->regs, OBJECT(m), &regs_ops, m, "muster-regs", 4096);
    pci_register_bar(pci, 0, PCI_BASE_ADDRESS_MEM_TYPE_64, &m->regs);
}

static void muster_class_init(ObjectClass *klass, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    PCIDeviceClass *pc = PCI_DEVICE_CLASS(klass);

    pc->realize = muster_realize;
    pc->vendor_id = PCI_VENDOR_ID_REDHAT_QUMRANET;
    pc->device_id = MUSTER_PCI_DEVICE;
    pc->class_id = PCI_CLASS_NETWORK_OTHER;
    dc->desc = "Muster collective offload NIC";
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
}

static const TypeInfo muster_type = {
    .name = TYPE_MUSTER,
    .parent = TYPE_PCI_DEVICE,
    .instance_size = sizeof(MusterState),
    .class_init = muster_class_init,
    .interfaces = (InterfaceInfo[]) { { INTERFACE_PCIE_DEVICE }, { } },
};

static void muster_register_types(void)
{
    type_register_static(&muster_type);
}
type_init(muster_register_types)
