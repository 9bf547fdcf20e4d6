// Takes the place of what the package uses: to be imported before it.

import { install } from "./_hooks.ts";

install();
