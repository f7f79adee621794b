#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# 10,000 rounds of resolve, then connect at once: no pinned address is refused. A name a round, each new to the
# resolver, so that every round has a pin of its own to wait for.
. "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"
lab_start
policy '{literals: deny}'

scenario '10,000 rounds of resolve-then-connect' "$LAB_WEB"
check 'rounds' says "${LOOPS:-10000} rounds, 0 refused" guarded client python3 -B "$lab_here/rounds.py" --rounds "${LOOPS:-10000}" \
	--suffix loop.harbour.com --port 80
check 'nothing was refused' never '"deny"' lab_new audit
lab_end
