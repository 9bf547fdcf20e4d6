/** The report as one page of HTML that needs nothing else, not even a network. */
import { draw } from "./_chart.ts";
import type { Bar, Chart, Experiment, Findings, Table } from "./_experiment.ts";
import { type Content, Markup, markup } from "./_html.ts";
import { STYLE } from "./_page_style.ts";
import { count, short } from "./_report.ts";

/** What became of an experiment. */
export interface Outcome {
  experiment: Pick<Experiment, "name" | "title" | "about" | "command">;
  /** How long it took, in s. */
  seconds: number;
  /** What it found; not there if it failed. */
  findings?: Findings;
  /** Why it failed. */
  error?: string;
}

/** What it ran on. */
export interface Machine {
  cores: number;
  /** The processor's model, if it can be told. */
  cpu?: string;
  system: string;
  deno: string;
  v8: string;
}

/** All that the page shows. */
export interface Report {
  outcomes: Outcome[];
  machine: Machine;
  date: Date;
  /** How long it took in all, in s. */
  seconds: number;
  quick: boolean;
  /** The command that made it. */
  command: string;
}

/** How wide charts are, in CSS pixels: one drawing for a desk, one for a phone. */
const WIDE = 860;
const NARROW = 320;

/** Makes the page. */
export async function page(report: Report): Promise<string> {
  const { outcomes } = report;
  const sections: Markup[] = [];
  for (const outcome of outcomes) sections.push(await experiment(outcome));
  const title = "@grace/rcu, measured";
  const { text } = markup`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<style>${new Markup(STYLE)}</style>
</head>
<body>
<header>
<h1>${title}</h1>
${about(report)}
</header>
<main>
${summary(outcomes)}
${sections}
${index(outcomes)}
</main>
</body>
</html>
`;
  return text;
}

/** A duration in words. */
export function duration(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

function about(
  { machine, date, seconds, quick, command, outcomes }: Report,
): Markup {
  const { cores, cpu, system, deno, v8 } = machine;
  const rows: [string, Content][] = [
    [
      "Processor",
      `${count(cores)} cores${cpu === undefined ? "" : `, ${cpu}`}`,
    ],
    ["Runtime", `Deno ${deno}, V8 ${v8}, ${system}`],
    [
      "Date",
      markup`<time datetime="${date.toISOString()}">${
        date.toISOString().slice(0, 16).replace("T", " ")
      } UTC</time>`,
    ],
    ["Took", `${duration(seconds)}, ${count(outcomes.length)} experiments`],
    ["Made by", markup`<code>${command}</code>`],
  ];
  const look = markup`<p class="note"><strong>A quick look:</strong> few rounds
and short ones, so the figures are rough. The commands measure at full length.</p>`;
  return markup`<dl>${
    rows.map(([name, value]) =>
      markup`<div><dt>${name}</dt><dd>${value}</dd></div>`
    )
  }</dl>
${quick ? look : undefined}`;
}

// The bars, and what became of the experiments

function stateOf({ findings, error }: Outcome): Markup {
  if (findings === undefined || error !== undefined) {
    return markup`<strong class="no">✗ failed</strong>`;
  }
  if (findings.skipped !== undefined) {
    return markup`<strong class="skipped">– skipped</strong>`;
  }
  return markup`<span class="yes">✓ measured</span>`;
}

function verdict(met: boolean): Markup {
  return met
    ? markup`<span class="yes">✓ met</span>`
    : markup`<strong class="no">✗ NOT MET</strong>`;
}

function summary(outcomes: Outcome[]): Markup {
  const bars = outcomes.flatMap(({ experiment, findings }) =>
    (findings?.bars ?? []).map((bar) => ({ experiment, bar }))
  );
  const reached = bars.filter(({ bar }) => bar.met).length;
  const row = (name: string, { what, bar, measured, met }: Bar) =>
    markup`<tr${met ? undefined : markup` class="missed"`}>
<th scope="row">${what}</th><td>${bar}</td><td>${measured}</td>
<td>${verdict(met)}</td><td><a href="#${name}">${name}</a></td></tr>
`;
  return markup`<section aria-labelledby="bars">
<h2 id="bars">Bars: ${count(reached)} of ${count(bars.length)} met</h2>
${
    scrolling(
      "bars-table",
      "What has to be reached, and what came out",
      markup`<thead><tr><th scope="col">What</th><th scope="col">Bar</th>
<th scope="col">Measured</th><th scope="col">Met</th>
<th scope="col">Experiment</th></tr></thead>
<tbody>${bars.map(({ experiment, bar }) => row(experiment.name, bar))}</tbody>`,
    )
  }
<h2 id="experiments">Experiments</h2>
<ul class="experiments">${
    outcomes.map((outcome) => {
      const { name, title } = outcome.experiment;
      return markup`<li><a href="#${name}">${title}</a>
<span class="state">${stateOf(outcome)}, ${
        duration(outcome.seconds)
      }</span></li>
`;
    })
  }</ul>
</section>`;
}

// An experiment

async function experiment(outcome: Outcome): Promise<Markup> {
  const { experiment, findings, seconds, error } = outcome;
  const { name, title, about, command } = experiment;
  const charts: Markup[] = [];
  for (const [n, chart] of (findings?.charts ?? []).entries()) {
    charts.push(await figure(chart, chartId(name, n), command));
  }
  return markup`<section aria-labelledby="${name}">
<h2 id="${name}">${title}</h2>
<p>${about}</p>
<p class="command">${stateOf(outcome)} in ${duration(seconds)}. Reproduce with
<code>${command}</code></p>
${
    error === undefined
      ? undefined
      : markup`<p>It failed with:</p><pre tabindex="0">${error}</pre>`
  }
${
    findings?.skipped === undefined
      ? undefined
      : markup`<p class="note">Skipped: ${findings.skipped}</p>`
  }
${charts}
${(findings?.tables ?? []).map((table, n) => tableOf(table, tableId(name, n)))}
</section>`;
}

function chartId(name: string, n: number): string {
  return `${name}-chart-${n + 1}`;
}

function tableId(name: string, n: number): string {
  return `${name}-table-${n + 1}`;
}

async function figure(
  chart: Chart,
  id: string,
  command: string,
): Promise<Markup> {
  const { title, kind, x, y, series } = chart;
  const label = `${kind === "line" ? "Line" : "Bar"} chart: ${title}. ` +
    `${y.title} by ${x.title}. Its figures are in the table below it.`;
  // Drawn by Vega, which escapes what it is given.
  const wide = new Markup(await draw(chart, WIDE));
  const narrow = new Markup(await draw(chart, NARROW));
  const points = series.flatMap(({ name, points }) =>
    points.map(([x, y]) => [
      ...(series.length > 1 ? [name] : []),
      typeof x === "number" ? count(x) : x,
      short(y),
    ])
  );
  const head = [
    ...(series.length > 1 ? ["series"] : []),
    withUnit(x.title, x.unit),
    withUnit(y.title, y.unit),
  ];
  return markup`<figure id="${id}">
<figcaption>${title}</figcaption>
<div role="img" aria-label="${label}">
<div class="wide">${wide}</div>
<div class="narrow">${narrow}</div>
</div>
<details><summary>Figures of this chart</summary>
${
    scrolling(
      `${id}-figures`,
      markup`${title}, reproduced by <code>${command}</code>`,
      rowsOf(head, points),
    )
  }
</details>
</figure>
`;
}

function withUnit(title: string, unit: string): string {
  return unit === "" ? title : `${title}, ${unit}`;
}

// Tables

/** A table in a box of its own, which scrolls where the page is too narrow. */
function scrolling(id: string, caption: Content, body: Markup): Markup {
  return markup`<div class="scroll" role="region" aria-labelledby="${id}" tabindex="0">
<table><caption id="${id}"><span>${caption}</span></caption>
${body}</table></div>`;
}

function tableOf({ title, head, rows, notes }: Table, id: string): Markup {
  return markup`${scrolling(id, title, rowsOf(head, rows))}
${notes === undefined ? undefined : markup`<p class="notes">${notes}</p>`}
`;
}

const NUMBER = /^[-+–≤≥<>×~(]*\s*\d|^–$/;

/** Columns of numbers stand on the right. */
function isNumeric(rows: string[][], column: number): boolean {
  const cells = rows.map((row) => row[column]).filter((cell) => cell);
  return cells.length > 0 && cells.every((cell) => NUMBER.test(cell));
}

function rowsOf(head: string[], rows: string[][]): Markup {
  const numeric = head.map((_, column) => isNumeric(rows, column));
  const side = (column: number) =>
    numeric[column] ? markup` class="number"` : undefined;
  const heading = (title: string, column: number) =>
    title === ""
      ? markup`<td></td>`
      : markup`<th scope="col"${side(column)}>${title}</th>`;
  const cells = (row: string[]) =>
    row.slice(1).map((cell, i) =>
      markup`<td${side(i + 1)}>${cellOf(cell)}</td>`
    );
  return markup`<thead><tr>${head.map(heading)}</tr></thead>
<tbody>${
    rows.map((row, n) =>
      markup`<tr>${nameOf(rows, n, head.length, cells(row))}</tr>
`
    )
  }</tbody>`;
}

function cellOf(cell: string): Content {
  return cell === "met" || cell === "NOT MET" ? verdict(cell === "met") : cell;
}

/**
 * The name of a row and its other cells. One that stands alone is a heading of
 * the rows below it; one that is empty is that of the row above; spaces in
 * front of it make it a part of what is above.
 */
function nameOf(
  rows: string[][],
  n: number,
  columns: number,
  rest: Markup[],
): Content {
  const [name, ...cells] = rows[n];
  if (cells.every((cell) => cell === "")) {
    return markup`<th scope="colgroup" colspan="${columns}" class="group">${name}</th>`;
  }
  if (name === "" && n > 0) return rest;
  let span = 1;
  while (rows[n + span]?.[0] === "") span++;
  if (span > 1) {
    return [markup`<th scope="rowgroup" rowspan="${span}">${name}</th>`, rest];
  }
  const part = name.startsWith(" ") ? markup` class="part"` : undefined;
  return [markup`<th scope="row"${part}>${name.trim()}</th>`, rest];
}

// Where everything is

function index(outcomes: Outcome[]): Markup {
  const rows = outcomes.flatMap(({ experiment, findings }) => {
    const { name, command } = experiment;
    const row = (id: string, title: string, kind: string) =>
      markup`<tr><th scope="row"><a href="#${id}">${title}</a></th>
<td>${kind}</td><td>${name}</td><td><code>${command}</code></td></tr>
`;
    return [
      ...(findings?.charts ?? []).map(({ title }, n) =>
        row(chartId(name, n), title, "chart")
      ),
      ...(findings?.tables ?? []).map(({ title }, n) =>
        row(tableId(name, n), title, "table")
      ),
    ];
  });
  return markup`<section aria-labelledby="figures">
<h2 id="figures">Every figure</h2>
${
    scrolling(
      "figures-table",
      "Charts and tables, each with the command that reproduces it",
      markup`<thead><tr><th scope="col">Figure</th><th scope="col">Kind</th>
<th scope="col">Experiment</th><th scope="col">Command</th></tr></thead>
<tbody>${rows}</tbody>`,
    )
  }
</section>`;
}
