/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Where resolver and gate are: the installed folder when this program is the installed one, else
 * the folders of the build tree in which it lies. Parted by ':', for struct parent_options. Static
 * storage.
 */
const char *libexec_folders(void);
