/** The report's command line, page and charts; nothing is measured here. */
import {
  assert,
  assertEquals,
  assertFalse,
  assertGreaterOrEqual,
  assertMatch,
  assertNotMatch,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { axisTitle, COLORS, draw } from "../bench/_chart.ts";
import type {
  Chart,
  Experiment,
  Findings,
  RunOptions,
} from "../bench/_experiment.ts";
import { EXPERIMENTS } from "../bench/_experiments.ts";
import { markup } from "../bench/_html.ts";
import { duration, type Outcome, page } from "../bench/_page.ts";
import { DARK, LIGHT } from "../bench/_page_style.ts";
import { runAll, runInThread } from "../bench/_run.ts";
import { anyFailed, help, readOptions } from "../bench/report.ts";

function experiment(
  name: string,
  run: (options: RunOptions) => Promise<Findings> = () =>
    Promise.resolve({ bars: [], tables: [], charts: [] }),
): Experiment {
  return {
    name,
    title: `The experiment ${name}`,
    about: "What it does.",
    command: `deno task bench bench/${name}_bench.ts`,
    steps: () => 2,
    run,
  };
}

const THREE = ["one", "two", "three"].map((name) => experiment(name));

/** The page of some outcomes. */
function pageOf(outcomes: Outcome[]): Promise<string> {
  return page({
    outcomes,
    machine: { cores: 2, system: "here", deno: "2.9.6", v8: "15.0" },
    date: new Date(0),
    seconds: 61,
    quick: false,
    command: "deno task report",
  });
}

function found(findings: Partial<Findings>): Outcome {
  const nothing = { bars: [], tables: [], charts: [] };
  return {
    experiment: experiment("one"),
    seconds: 1,
    findings: { ...nothing, ...findings },
  };
}

const LINES: Chart = {
  title: "Closing files",
  kind: "line",
  x: { title: "threads", unit: "" },
  y: { title: "time of a call", unit: "µs", log: true },
  series: [
    { name: "classic", points: [[1, 2], [4, 30], [64, 5000]] },
    { name: "tree", points: [[1, 2], [4, 3], [64, 0]] },
  ],
};
const BARS: Chart = {
  title: "Sections",
  kind: "bar",
  x: { title: "kind of section", unit: "" },
  y: { title: "share of the time", unit: "" },
  series: [{ name: "share", points: [["a cell", 0.5], ["a lock", NaN]] }],
};

/** What a drawing says, without its markup. */
function wordsOf(svg: string): string {
  return svg.replace(/<[^>]*>/g, "\n");
}

// The command line

Deno.test("readOptions() chooses all experiments unless some are named", () => {
  assertEquals(readOptions([], THREE), {
    help: false,
    quick: false,
    output: "bench/report.html",
    experiments: THREE,
  });
  const args = ["--quick", "--only", "three,one", "--output", "a.html", "-h"];
  assertEquals(readOptions(args, THREE), {
    help: true,
    quick: true,
    output: "a.html",
    experiments: [THREE[0], THREE[2]],
  });
});

Deno.test("readOptions() names unknown arguments and says what there is", () => {
  assertThrows(
    () => readOptions(["more", "--quik", "--only=one", "7", "-x"], THREE),
    RangeError,
    "must be --quick, --only, --output or --help: received more --quik 7 -x",
  );
  assertThrows(() => readOptions(["--", "--quick"], THREE), RangeError);
});

Deno.test("readOptions() names unknown experiments and says which there are", () => {
  assertThrows(
    () => readOptions(["--only=one,four,"], THREE),
    RangeError,
    "some of one, two, three: received four, nothing",
  );
  assertThrows(() => readOptions(["--output="], THREE), RangeError);
  assertThrows(() => readOptions(["--only"], THREE), RangeError);
});

Deno.test("help() lists every option and every experiment", () => {
  const text = help(THREE);
  for (const option of ["--quick", "--only", "--output", "--help"]) {
    assertStringIncludes(text, option);
  }
  for (const { name, title } of THREE) {
    assertMatch(text, new RegExp(`${name} +${title}`));
  }
});

Deno.test("every experiment has a name and anchor of its own, and a command", () => {
  const names = EXPERIMENTS.map(({ name }) => name);
  assertEquals(new Set(names).size, names.length);
  for (const { name, title, about, command, steps } of EXPERIMENTS) {
    assertMatch(name, /^[a-z][a-z0-9_]*$/);
    assert(title !== "" && about !== "" && command !== "");
    for (const quick of [false, true]) {
      assertGreaterOrEqual(steps({ quick }), 1);
    }
  }
});

// Running

Deno.test("runAll() goes on after an experiment that fails", async () => {
  const steps: string[] = [];
  const ends: number[] = [];
  const outcomes = await runAll(
    THREE,
    true,
    { step: (doing) => steps.push(doing), skipTo: (at) => ends.push(at) },
    async ({ name }, { quick, onStep }) => {
      assert(quick);
      onStep("starting");
      if (name === "two") throw new Error("no core left");
      return await Promise.resolve({ bars: [], tables: [], charts: [] });
    },
  );
  assertEquals(steps, [
    "1/3 one: starting",
    "2/3 two: starting",
    "3/3 three: starting",
  ]);
  assertEquals(ends, [2, 4, 6]);
  assertEquals(outcomes.map(({ error }) => error !== undefined), [
    false,
    true,
    false,
  ]);
  assertStringIncludes(outcomes[1].error ?? "", "no core left");
  assertEquals(outcomes[1].findings, undefined);
  assert(anyFailed(outcomes));
  assertFalse(anyFailed([outcomes[0], outcomes[2]]));
});

Deno.test("runInThread() rejects with what an experiment threw", async () => {
  const options = { quick: true, onStep: () => {} };
  const error = await assertRejects(() =>
    runInThread(experiment("unheard_of"), options)
  );
  assertStringIncludes(String(error), "No experiment unheard_of");
});

// The page

Deno.test("markup`` escapes what is put in, at any depth", () => {
  const inner = markup`<i>${"<"}</i>`;
  assertEquals(
    markup`<p title="${`"&'`}">${["a<b", [inner, 1], undefined]}</p>`.text,
    '<p title="&quot;&amp;&#39;">a&lt;b<i>&lt;</i>1</p>',
  );
});

Deno.test("page() escapes HTML in every name and value", async () => {
  const evil = (where: string) => `<b>"${where}'</b>&`;
  const chart: Chart = {
    title: evil("chart"),
    kind: "bar",
    x: { title: evil("x"), unit: "" },
    y: { title: evil("y"), unit: evil("unit") },
    series: [
      { name: evil("series"), points: [[evil("point"), 1]] },
      { name: evil("other"), points: [[evil("point"), 2]] },
    ],
  };
  const lines: Chart = { ...LINES, series: chart.series };
  const outcome = found({
    bars: [{
      what: evil("what"),
      bar: evil("bar"),
      measured: evil("measured"),
      met: true,
    }],
    tables: [{
      title: evil("table"),
      head: [evil("head"), evil("column")],
      rows: [[evil("row"), evil("cell")]],
      notes: evil("notes"),
    }],
    charts: [chart, { ...lines, y: chart.y }],
    skipped: evil("skipped"),
  });
  const text = await pageOf([
    {
      ...outcome,
      experiment: {
        name: "one",
        title: evil("title"),
        about: evil("about"),
        command: evil("command"),
      },
    },
    { experiment: experiment("two"), seconds: 1, error: evil("error") },
  ]);
  assertNotMatch(text, /<b>|<\/b>/);
  for (
    const where of [
      ...["chart", "x", "y", "unit", "series", "point", "what", "bar"],
      ...["measured", "table", "head", "column", "row", "cell", "notes"],
      ...["skipped", "title", "about", "command", "error"],
    ]
  ) assertStringIncludes(text, `&quot;${where}&#39;&lt;/b&gt;&amp;`);
});

Deno.test("page() marks the bars that are not met, in words", async () => {
  const bar = { what: "a get", bar: "≤ 1", measured: "0.5", met: true };
  const text = await pageOf([
    found({
      bars: [bar, { ...bar, what: "a set", measured: "2", met: false }],
      tables: [{
        title: "The same",
        head: ["what", ""],
        rows: [["a get", "met"], ["a set", "NOT MET"]],
      }],
    }),
  ]);
  assertStringIncludes(text, "Bars: 1 of 2 met");
  const row = (what: string) =>
    text.match(new RegExp(`<tr[^>]*>\\s*<th[^>]*>${what}</th>.*?</tr>`, "gs"))!;
  assertEquals(row("a set").length, 2);
  for (const missed of row("a set")) assertStringIncludes(missed, "✗ NOT MET");
  for (const met of row("a get")) {
    assertStringIncludes(met, "✓ met");
    assertNotMatch(met, /NOT/);
  }
});

Deno.test("page() shows why one failed, and how to get what a skipped one needs", async () => {
  const text = await pageOf([
    { experiment: experiment("two"), seconds: 1, error: "Error: no memory" },
    found({ skipped: "There is no C compiler: apt-get install gcc" }),
  ]);
  assertMatch(text, /✗ failed.*It failed with:.*Error: no memory/s);
  assertMatch(text, /– skipped.*Skipped: There is no C compiler: apt-get/s);
});

Deno.test("page() needs nothing from outside and runs nothing", async () => {
  const text = await pageOf([found({ charts: [LINES, BARS] })]);
  assertNotMatch(text, /\s(?:src|srcset|data|action)="|href="(?!#)/);
  assertNotMatch(text, /url\((?!#)/);
  assertNotMatch(text, /<script|<link|@import|@font-face/);
  // Every address that it refers to is in it.
  for (const [, id] of text.matchAll(/href="#([^"]+)"/g)) {
    assertStringIncludes(text, `id="${id}"`);
  }
  const ids = [...text.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id);
  assertEquals(new Set(ids).size, ids.length);
});

Deno.test("page() gives every table a caption and lets the keyboard scroll it", async () => {
  const table = { title: "Times", head: ["a", "b"], rows: [["x", "1"]] };
  const text = await pageOf([found({ tables: [table], charts: [BARS] })]);
  const tables = text.match(/<table>/g) ?? [];
  assertEquals(tables.length, 4);
  assertEquals(
    text.match(
      /role="region" aria-labelledby="[^"]+" tabindex="0">\s*<table><caption/g,
    )?.length,
    tables.length,
  );
  assertEquals(text.match(/role="img" aria-label="[^"]+"/g)?.length, 1);
});

Deno.test("page() has an empty name share the row's name above, and a lone one head rows", async () => {
  const text = await pageOf([found({
    tables: [{
      title: "Times",
      head: ["a", "b"],
      rows: [["alone", ""], ["  part", "1"], ["both", "2"], ["", "3"]],
    }],
  })]);
  assertStringIncludes(text, 'colspan="2" class="group">alone</th>');
  assertStringIncludes(text, '<th scope="row" class="part">part</th>');
  assertStringIncludes(text, '<th scope="rowgroup" rowspan="2">both</th>');
  assertStringIncludes(text, '<tr><td class="number">3</td></tr>');
});

Deno.test("duration() tells minutes from a minute on", () => {
  assertEquals([0.4, 59.4, 59.6, 125].map(duration), [
    "0 s",
    "59 s",
    "1 min 0 s",
    "2 min 5 s",
  ]);
});

// Charts

Deno.test("every axis of a chart has its title and its unit, or says that it has none", async () => {
  assertEquals(axisTitle(LINES.x), "threads (no unit)");
  assertEquals(axisTitle(LINES.y), "time of a call (µs, logarithmic)");
  const lines = wordsOf(await draw(LINES, 860));
  assertStringIncludes(lines, "threads (no unit)");
  assertStringIncludes(lines, "time of a call (µs, logarithmic)");
  const bars = wordsOf(await draw(BARS, 860));
  assertStringIncludes(bars, "kind of section");
  assertStringIncludes(bars, "share of the time (no unit)");
});

Deno.test("a chart names its bars and lines, and says what was not measured", async () => {
  const lines = wordsOf(await draw(LINES, 860));
  for (const name of ["classic", "tree"]) assertStringIncludes(lines, name);
  for (const width of [320, 860]) {
    const bars = wordsOf(await draw(BARS, width));
    for (const text of ["a cell", "a lock", "0.50", "not measured"]) {
      assertStringIncludes(bars, text);
    }
  }
  const grouped = wordsOf(
    await draw({
      ...BARS,
      series: [...BARS.series, { name: "again", points: [["a cell", 3]] }],
    }, 860),
  );
  for (const name of ["share", "again", "a cell"]) {
    assertStringIncludes(grouped, name);
  }
});

Deno.test("a chart of nothing, of zeros, or of many lines is drawn all the same", async () => {
  const many = Array.from({ length: 2 * COLORS + 1 }, (_, n) => ({
    name: `line ${n}`,
    points: [[n, n], [n + 1, 0]] as [number, number][],
  }));
  const empty = [{ name: "none", points: [] }];
  const zero = [{ name: "zero", points: [["x", 0]] as [string, number][] }];
  const charts: Chart[] = [
    { ...LINES, series: [] },
    { ...LINES, series: empty },
    { ...LINES, series: many },
    { ...LINES, y: BARS.y, series: many },
    { ...BARS, series: [] },
    { ...BARS, series: empty },
    { ...BARS, series: zero },
    { ...BARS, y: LINES.y, series: zero },
    { ...BARS, y: LINES.y, series: [...zero, ...empty] },
  ];
  for (const chart of charts) {
    for (const width of [320, 860]) {
      const svg = await draw(chart, width);
      assertMatch(svg, /^<svg /);
      assertNotMatch(svg, /NaN|Infinity|undefined/);
    }
  }
});

/** How far two colours are apart, by the rule of the WCAG. */
function contrast(...colors: [string, string]): number {
  const [darker, lighter] = colors.map((color) => {
    const [r, g, b] = [1, 3, 5].map((at) => {
      const value = parseInt(color.slice(at, at + 2), 16) / 255;
      return value <= 0.04045
        ? value / 12.92
        : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }).sort((a, b) => a - b);
  return (lighter + 0.05) / (darker + 0.05);
}

Deno.test("text and charts stand out from the page, in light and in dark", () => {
  assertEquals(Math.round(contrast("#000000", "#ffffff")), 21);
  for (const palette of [LIGHT, DARK]) {
    const { background, surface, text, muted, link, yes, no } = palette;
    for (const color of [text, muted, link, yes, no]) {
      assertGreaterOrEqual(contrast(color, background), 4.5);
      assertGreaterOrEqual(contrast(color, surface), 4.5);
    }
    assertEquals(palette.series.length, COLORS);
    for (const color of [palette.axis, ...palette.series]) {
      assertGreaterOrEqual(contrast(color, background), 3);
    }
  }
});
