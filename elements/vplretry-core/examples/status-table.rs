// SPDX-License-Identifier: MPL-2.0

//! Prints the status table as `docs/vplretry-core.md` carries it.

fn main() {
    print!("{}", vplretry_core::table::status_table());
}
