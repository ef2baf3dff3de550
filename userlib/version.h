/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The version of library, tools and muster.pc: the makefile reads it here, too. */
#ifndef MUSTER_VERSION_H
#define MUSTER_VERSION_H

#define MUSTER_VERSION "0.1"

#endif /* MUSTER_VERSION_H */
