# SPDX-License-Identifier: GPL-2.0-only
# Sourced by every program of the harness that runs on the host.
# shellcheck shell=bash
# shellcheck disable=SC2034 # VM_DIR and the like are for the sourcing program

set -euo pipefail
shopt -s inherit_errexit
export LC_ALL=C

VM_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

. "$VM_DIR/lib/say.sh"
. "$VM_DIR/lib/cache.sh"
. "$VM_DIR/lib/kernels.sh"
