/**
 * What one read section costs: a pointer followed once, under every kind of
 * protection, by one thread alone, by two, and beside an updater.
 *
 * The table at the end is the measurement: contenders take turns, and ratios
 * are those of batches that ran one after the other. The rows of `deno bench`
 * show the same one after another.
 */
import { Rcu } from "../mod.ts";
import { consume, median, ratio } from "./_measure.ts";
import {
  count,
  printAtEnd,
  Progress,
  short,
  spread,
  table,
} from "./_report.ts";
import {
  BASE,
  KINDS,
  openSections,
  type ReadSideFigures,
  share,
} from "./_sections.ts";
import { inFreshWorker, Peer } from "./_workers.ts";

/** Updates a second, beside the reader. */
const RATE = 10_000;
/** Sections an iteration of `deno bench`. */
const BATCH = 10_000;

const SECTIONS = import.meta.resolve("./_sections.ts");

const figures = await (async () => {
  await using progress = new Progress("read side", 1);
  progress.step(
    `${KINDS} kinds of section: alone, by two threads, beside an updater`,
  );
  return await inFreshWorker<ReadSideFigures>(
    SECTIONS,
    "readSideFigures",
    RATE,
  );
})();

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

printAtEnd(report);
globalThis.addEventListener("unload", () => peer.stop());

function report(): string {
  const { alone, besideReader, besideUpdater } = figures;
  const header = [
    "one section, one dereference",
    ...["alone", "by two threads", `beside ${count(RATE)} updates/s`]
      .flatMap((title) => [`${title}, ns`, `× ${BASE}`]),
  ];
  const rows = Object.keys(alone).map((name) => [
    name,
    ...[alone, besideReader, besideUpdater].flatMap((series) => [
      short(median(series[name])),
      spread(ratio(series[name], series[BASE])),
    ]),
  ]);
  return `${table([header, ...rows])}

Medians of rounds in which all took turns, with the quartiles of the ratios.
By two threads: batches in which the other thread got no core are repeated or left out (${
    count((1 - figures.together) * 100)
  } %).
The updater made ${
    count(figures.rate)
  } updates/s, to each kind in turn. What those of RCU cost elsewhere: ${
    count(figures.invoked)
  } blocks freed
in ${count(figures.gracePeriods)} grace periods; ${
    count(figures.peak)
  } waited at most, ${count(figures.deferred)} bytes after the last update.`;
}
