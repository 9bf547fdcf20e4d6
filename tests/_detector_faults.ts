// Detectors with faults: what the cases must notice.

import type {
  Detector,
  DetectorParts,
} from "../src/grace_periods/_detector.ts";
import {
  CLASSIC,
  openDetector,
  SCAN,
} from "../src/grace_periods/_detectors.ts";
import { nodeWords } from "../src/grace_periods/_mask_nodes.ts";
import { LINE } from "../src/memory/_size_classes.ts";
import { ReaderTable } from "../src/readers/_slots.ts";
import { type Variant, VARIANTS } from "./_detector_world.ts";

type Table = new (
  ...of: ConstructorParameters<typeof ReaderTable>
) => ReaderTable;

class ForgetsOne extends ReaderTable {
  override slot(index: number): number {
    return super.slot(index === 1 ? 0 : index);
  }
}

class ForgetsTheLast extends ReaderTable {
  override get count(): number {
    return Math.max(1, super.count - 1);
  }
}

class NeverCountsAgain extends ReaderTable {
  readonly #first = super.count;
  override get count(): number {
    return this.#first;
  }
}

class WaitsForTheIdle extends ReaderTable {
  override slot(index: number): number {
    // Any word that is never 0 and never moves.
    return index === 2 ? super.slot(index) + LINE + 1 : super.slot(index);
  }
}

/** A detector that looks at another table than there is. */
function withTable(kind: number, table: Table) {
  return (parts: DetectorParts): Detector => {
    const { words, maxReaders } = parts;
    const base = parts.readers.slot(0) - LINE;
    const readers = new table(words, base, maxReaders);
    return openDetector(kind, { ...parts, readers });
  };
}

/** A detector that does something else before it is asked or told. */
function withBefore(
  kind: number,
  before: (inner: Detector, sequence: number, parts: DetectorParts) => void,
) {
  return (parts: DetectorParts): Detector => {
    const inner = openDetector(kind, parts);
    return {
      passed: (sequence) => {
        before(inner, sequence, parts);
        return inner.passed(sequence);
      },
      report: (sequence) => {
        before(inner, sequence, parts);
        inner.report(sequence);
      },
      blocking: (sequence, visit) => inner.blocking(sequence, visit),
    };
  };
}

/** Makes the masks of all nodes ones about a period, and clears none. */
function keepMasks(kind: number) {
  return (_: Detector, period: number, parts: DetectorParts): void => {
    const { words, base, maxReaders, sequence } = parts;
    if (sequence.current() !== period) return;
    const step = nodeWords(kind === CLASSIC ? maxReaders : kind);
    for (let node = base + LINE; node < words.length; node += step) {
      Atomics.store(words, node + 1, period);
    }
  };
}

/** Reports without looking whether the thread is in a section. */
function reportTooSoon(inner: Detector, sequence: number): void {
  inner.report(sequence);
}

/** Every detector with every fault that it can have. */
export const FAULTY: Variant[] = VARIANTS.flatMap(({ name, kind }) => {
  const faults: [string, Variant["make"]][] = [
    ["forgets one reader", withTable(kind, ForgetsOne)],
    ["forgets the last reader", withTable(kind, ForgetsTheLast)],
    ["never counts again", withTable(kind, NeverCountsAgain)],
    ["waits for an idle reader", withTable(kind, WaitsForTheIdle)],
  ];
  if (kind !== SCAN) {
    faults.push(
      ["keeps stale masks", withBefore(kind, keepMasks(kind))],
      ["reports too soon", withBefore(kind, reportTooSoon)],
    );
  }
  return faults.map(([fault, make]) => ({
    name: `${name} that ${fault}`,
    kind,
    make: make!,
  }));
});
