/** How the page of the report looks, in light and in dark. */

/** Colours by the names that the style and the charts use. */
export interface Palette {
  background: string;
  surface: string;
  text: string;
  muted: string;
  link: string;
  yes: string;
  no: string;
  axis: string;
  grid: string;
  /** Those of the series of charts. */
  series: readonly string[];
}

/** On paper white. */
export const LIGHT: Palette = {
  background: "#ffffff",
  surface: "#f4f6f8",
  text: "#1b1f24",
  muted: "#545d68",
  link: "#0b57c2",
  yes: "#14703c",
  no: "#b3261e",
  axis: "#7a838d",
  grid: "#dfe3e7",
  series: [
    "#2563c9",
    "#b4520b",
    "#1a7f4b",
    "#7d3fc8",
    "#b8266f",
    "#0b7285",
    "#6b6400",
    "#57606a",
  ],
};

/** On a dark screen. */
export const DARK: Palette = {
  background: "#14171c",
  surface: "#1f242b",
  text: "#e8eaed",
  muted: "#a9b2bc",
  link: "#8ab8ff",
  yes: "#6fd694",
  no: "#ff9a91",
  axis: "#8b949e",
  grid: "#343b44",
  series: [
    "#6ea8ff",
    "#f0a35e",
    "#5fcf94",
    "#c2a2ff",
    "#f58cb8",
    "#5ccbe0",
    "#d3c75f",
    "#aeb8c2",
  ],
};

function variables({ series, ...others }: Palette): string {
  return [
    ...Object.entries(others).map(([name, color]) => `--${name}: ${color};`),
    ...series.map((color, n) => `--series-${n + 1}: ${color};`),
  ].join(" ");
}

/** The style sheet. */
export const STYLE: string = `
:root { color-scheme: light dark; ${variables(LIGHT)} }
@media (prefers-color-scheme: dark) { :root { ${variables(DARK)} } }
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 62rem;
  background: var(--background); color: var(--text);
  font: 1rem/1.5 system-ui, sans-serif;
}
h1 { margin: 0 0 1rem; font-size: 1.9rem; line-height: 1.2; }
h2 { margin: 3rem 0 0.5rem; font-size: 1.4rem; line-height: 1.25; }
header + main h2:first-child { margin-top: 2rem; }
p { margin: 0.5rem 0; max-width: 70ch; }
a { color: var(--link); }
code, pre { font-family: ui-monospace, monospace; font-size: 0.875rem; }
code { overflow-wrap: anywhere; }
dl { display: grid; gap: 0.25rem; margin: 0; }
dl div { display: grid; grid-template-columns: 6rem 1fr; }
dt { color: var(--muted); }
dd { margin: 0; }
.note, pre {
  padding: 0.6rem 0.9rem; border-left: 4px solid var(--axis);
  background: var(--surface);
}
pre { margin: 0.5rem 0; overflow-x: auto; border-left-color: var(--no); }
.command, .notes, .state { color: var(--muted); }
.notes { font-size: 0.9rem; }
.yes { color: var(--yes); white-space: nowrap; }
.no { color: var(--no); }
strong.no { white-space: nowrap; }
.skipped { color: var(--muted); }
.experiments { padding-left: 1.25rem; }
.experiments li { margin: 0.35rem 0; }
.scroll { overflow-x: auto; margin: 1.5rem 0 0.5rem; }
table { border-collapse: collapse; font-size: 0.9rem; line-height: 1.35; }
caption {
  padding: 0 0 0.5rem; text-align: left; font-size: 1rem; font-weight: 600;
}
caption span { display: inline-block; max-width: calc(100vw - 2rem); }
th, td {
  padding: 0.35rem 0.75rem; border-bottom: 1px solid var(--grid);
  text-align: left; vertical-align: top;
}
th:first-child, thead td:first-child { padding-left: 0.25rem; }
thead th, thead td { border-bottom: 2px solid var(--axis); vertical-align: bottom; }
tbody th { min-width: 11rem; font-weight: 400; }
th.part { padding-left: 1.5rem; }
th.group { padding-top: 0.75rem; font-weight: 600; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr.missed { background: var(--surface); }
figure { margin: 1.75rem 0 0.5rem; }
figcaption { margin-bottom: 0.5rem; font-weight: 600; }
figure svg { display: block; max-width: 100%; height: auto; }
.narrow { display: none; }
@media (max-width: 48rem) {
  .wide { display: none; }
  .narrow { display: block; }
}
details { margin: 0.5rem 0; }
summary { width: fit-content; color: var(--link); cursor: pointer; }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
`;
