# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Manual pages of their sources: what rst2man does, of many with one start of Python.
# usage: man.py FOLDER PAGE.rst...; a warning ends it.
import os
import sys

from docutils.core import publish_file

for source in sys.argv[2:]:
    page = os.path.join(sys.argv[1], os.path.basename(source)[: -len(".rst")])
    publish_file(source_path=source, destination_path=page, writer_name="manpage",
                 settings_overrides={"halt_level": 2, "traceback": False}, enable_exit_status=True)
