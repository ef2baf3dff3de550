# SPDX-License-Identifier: GPL-2.0-or-later
# The machine that Muster's guests are: q35 and what a guest on the host's root needs.
CONFIG_Q35=y
CONFIG_PCIE_PORT=y
CONFIG_VTD=y
CONFIG_SERIAL_ISA=y
CONFIG_VIRTIO_PCI=y
CONFIG_VIRTIO_9P=y
CONFIG_VIRTIO_SERIAL=y
CONFIG_VIRTIO_RNG=y
CONFIG_VIRTIO_NET=y
CONFIG_MUSTER=y
