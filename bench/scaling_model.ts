/**
 * What this machine cannot show: 1 to 1,024 processors, simulated.
 *
 * `deno run --allow-read=. bench/scaling_model.ts` prints the tables; `deno task report` draws them.
 */
import { COSTS } from "./_coherence.ts";
import type { Experiment, Findings, RunOptions } from "./_experiment.ts";
import { median } from "./_measure.ts";
import { count, Progress, short, table } from "./_report.ts";
import {
  measureReal,
  predict,
  type Prediction,
  type System,
  WORK,
} from "./_scaling.ts";

const SYSTEMS: readonly System[] = [
  { name: "scan", detector: "scan" },
  { name: "classic", detector: "classic" },
  { name: "tree", detector: "tree" },
  { name: "the fault of 2009", detector: "scan", fault: true },
  { name: "reader-writer lock", lock: true },
];
/** The largest number that real cores are there for. */
const REAL = 2;
const ROUNDS = { rounds: 11, ms: 100 };
const QUICK_ROUNDS = { rounds: 5, ms: 30 };

function processors(quick: boolean): number[] {
  return quick ? [1, 8, 64] : [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
}

/**
 * Enough that more of them would find about the same: what each processor does for
 * the first time only, as getting memory, is to be a small part. And not more than a few seconds.
 */
function operations(count: number, quick: boolean): number {
  return count * (quick ? 128 : count > 256 ? 256 : 512);
}

async function run({ quick, onStep }: RunOptions): Promise<Findings> {
  const counts = processors(quick);
  const predictions = new Map<System, Prediction[]>();
  for (const system of SYSTEMS) {
    const found: Prediction[] = [];
    predictions.set(system, found);
    for (const n of counts) {
      onStep(`${system.name}, ${n} simulated processors`);
      found.push(await predict(system, n, operations(n, quick)));
    }
  }
  const rows: string[][] = [];
  for (const system of SYSTEMS) {
    onStep(`${system.name} on real processors`);
    const real: number[] = [];
    const model: number[] = [];
    for (let n = 1; n <= REAL; n++) {
      real.push(
        median(await measureReal(system, n, quick ? QUICK_ROUNDS : ROUNDS)),
      );
      model.push((await predict(system, n, n * (quick ? 512 : 4096), 0)).cost);
    }
    rows.push([
      system.name,
      ...[...real, real[1] / real[0], ...model, model[1] / model[0]].map(short),
    ]);
  }
  return {
    bars: [],
    tables: [
      costTable(predictions, counts),
      periodTable(predictions, counts),
      {
        title: "The model beside this machine: operations without other work",
        head: [
          "ns an operation",
          "1 core",
          "2 cores",
          "2 / 1",
          "model of 1",
          "model of 2",
          "2 / 1",
        ],
        rows,
        notes:
          "The model counts accesses to memory and nothing else, so its figure for one processor is lower; what it predicts is how the cost grows.",
      },
    ],
    charts: [
      {
        title: "What an operation costs beyond its work",
        kind: "line",
        x: { title: "processors", unit: "", log: true },
        y: { title: "cost", unit: "ns", log: true },
        series: [...predictions].map(([{ name }, found]) => ({
          name,
          points: found.map((p) => [p.processors, p.cost]),
        })),
      },
      {
        title: "How long a grace period takes",
        kind: "line",
        x: { title: "processors", unit: "", log: true },
        y: { title: "mean length", unit: "µs", log: true },
        series: [...predictions].filter(([system]) => !("lock" in system)).map((
          [{ name }, found],
        ) => ({
          name,
          points: found.filter((p) => p.period > 0)
            .map((p) => [p.processors, p.period]),
        })),
      },
    ],
  };
}

function costTable(all: Map<System, Prediction[]>, counts: number[]) {
  return {
    title: "Predicted cost of an operation beyond its work, in ns",
    head: ["processors", ...counts.map(count)],
    rows: [...all].map(([{ name }, found]) => [
      name,
      ...found.map(({ cost }) => short(cost)),
    ]),
    notes:
      `An operation is a read section, ${WORK} ns of other work, and an allocation whose block is deferred (under the lock: freed). An access costs ${COSTS.hit} ns, one to a line that is elsewhere ${COSTS.transfer} ns, during ${COSTS.handover} of which nobody else gets that line; an atomic change ${COSTS.atomic} ns more.`,
  };
}

function periodTable(all: Map<System, Prediction[]>, counts: number[]) {
  return {
    title: "Predicted length of a grace period, in µs",
    head: ["processors", ...counts.map(count)],
    rows: [...all].filter(([system]) => !("lock" in system)).map((
      [{ name }, found],
    ) => [name, ...found.map(({ period }) => short(period))]),
  };
}

/** The experiment. */
export const scalingModel: Experiment = {
  name: "scaling_model",
  title: "Beyond this machine: 1 to 1,024 simulated processors",
  about:
    "The shipped detectors and the shipped enqueue path run on a simulated coherent memory, beside the fault of 2009 and the lock that RCU replaces.",
  command: "deno task report --only scaling_model",
  steps: ({ quick }) => SYSTEMS.length * (processors(quick).length + 1),
  run,
};

if (import.meta.main) {
  const quick = Deno.args.includes("--quick");
  const findings = await (async () => {
    await using progress = new Progress(
      "scaling model",
      scalingModel.steps({ quick }),
    );
    return await run({ quick, onStep: (doing) => progress.step(doing) });
  })();
  for (const { title, head, rows, notes } of findings.tables) {
    console.log(`\n${title}\n\n${table([head, ...rows])}`);
    if (notes !== undefined) console.log(`\n${notes}`);
  }
}
