/**
 * All real prefixes in the Fib: loading, memory, lookups beside plain reads of
 * as much memory, and answers beside a plain longest-prefix search.
 */
import { Rcu } from "../mod.ts";
import { BATCH, fib, fibFindings, measureFib } from "./_fib_experiment.ts";
import { consume } from "./_measure.ts";
import { atFullLength, count, printAtEnd, shown } from "./_report.ts";

const rcu = Rcu.create({ name: "bench" });

const { figures, lookUp } = await atFullLength(
  fib,
  (options) => measureFib(rcu, options),
);

Deno.bench({
  name: "Fib.lookup",
  group: `${count(BATCH)} addresses at random`,
  baseline: true,
  fn: () => consume(lookUp(0, BATCH)),
});

printAtEnd(() => fibFindings(figures).tables.map(shown).join("\n\n"));
