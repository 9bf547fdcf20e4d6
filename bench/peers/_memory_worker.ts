/** A thread that has a map open, and nothing else. */
import { consume } from "../_measure.ts";
import { obeyInTurns } from "../_workers.ts";
import { contenderOf } from "./_contenders.ts";
import { entriesOf } from "./_entries.ts";

const { gc } = globalThis as unknown as { gc(): void };

export async function hold(
  order: { contender: string; handle: unknown },
  control: Int32Array,
): Promise<void> {
  const client = await contenderOf(order.contender).open(order.handle);
  order.handle = undefined;
  for (const [key] of entriesOf(100)) consume(client.get(key)?.weight ?? 0);
  gc();
  await obeyInTurns(control, () => 0, () => {});
  await client.close();
}
