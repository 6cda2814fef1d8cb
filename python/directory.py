# SPDX-License-Identifier: BSD-3-Clause
"""directory.py PREFIX: the directory below PREFIX where this Python looks for packages, or where others would put them."""
import os
import site
import sys
import sysconfig

prefix = os.path.abspath(sys.argv[1])
places = site.getsitepackages() + [site.getusersitepackages()]
# Not all below it: /usr/local/lib is below /usr, too.
ours = [place for place in places if os.path.abspath(place).startswith(os.path.join(prefix, "lib", ""))]
print(ours[0] if ours else os.path.join(prefix, "lib", "python" + sysconfig.get_python_version(), "site-packages"))
