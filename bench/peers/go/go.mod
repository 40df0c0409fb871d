// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
module peers

go 1.19
