/**
 * What one read section costs: a pointer followed once, under every kind of
 * protection, by one thread alone, by two, and beside an updater.
 *
 * The table at the end is the measurement: contenders take turns, and ratios
 * are those of batches that ran one after the other. The rows of `deno bench`
 * show the same one after another.
 */
import { Rcu } from "../mod.ts";
import { consume } from "./_measure.ts";
import { readSide } from "./_read_side_experiment.ts";
import { atFullLength, printAtEnd, shown } from "./_report.ts";
import { BASE, openSections, share } from "./_sections.ts";
import { Peer } from "./_workers.ts";

/** Sections an iteration of `deno bench`. */
const BATCH = 10_000;

const SECTIONS = import.meta.resolve("./_sections.ts");

const { tables } = await atFullLength(readSide, readSide.run);

const rcu = Rcu.create({ name: "bench", capacity: 8 * 2 ** 20 });
const places = share(rcu);
const sections = openSections(rcu, { ...places, thread: 0 });
const peer = await Peer.start(SECTIONS, "readingPeer", {
  ...places,
  thread: 1,
});

for (const [threads, idle] of [["alone", true], ["by two threads", false]]) {
  for (const [n, { name, read }] of sections.entries()) {
    Deno.bench({
      name,
      group: `10,000 sections, ${threads}`,
      baseline: name === BASE,
      fn: () => {
        peer.select(idle ? 0 : n + 1);
        consume(read(BATCH));
      },
    });
  }
}

printAtEnd(() => tables.map(shown).join("\n\n"));
globalThis.addEventListener("unload", () => peer.stop());
