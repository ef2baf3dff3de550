/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The version that every tool prints. */
#ifndef MUSTER_VERSION_H
#define MUSTER_VERSION_H

#define MUSTER_VERSION "0.1"

#endif /* MUSTER_VERSION_H */
