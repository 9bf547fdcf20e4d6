// What has become of the mutants.

/** A place in a file, both counted from 1. */
interface Position {
  readonly line: number;
  readonly column: number;
}

/** A change that was tried. */
interface Mutant {
  readonly mutatorName: string;
  readonly replacement: string;
  readonly status: string;
  readonly location: { readonly start: Position; readonly end: Position };
}

/** What StrykerJS writes, as far as it is read here: schema 2 of mutation-testing-elements. */
export interface MutationReport {
  readonly files: Readonly<
    Record<
      string,
      { readonly source: string; readonly mutants: readonly Mutant[] }
    >
  >;
}

/** A test has failed, or has not come to an end. */
const DETECTED = ["Killed", "Timeout"];

const SURVIVED = ["Survived", "NoCoverage"];

function count(report: MutationReport, ...statuses: string[]): number {
  let count = 0;
  for (const { mutants } of Object.values(report.files)) {
    for (const { status } of mutants) if (statuses.includes(status)) count++;
  }
  return count;
}

/**
 * A line about a folder.
 *
 * @param folder Its name.
 * @param report What was found.
 * @returns How many there were and what became of them.
 */
export function summary(folder: string, report: MutationReport): string {
  const detected = count(report, ...DETECTED);
  const survived = count(report, ...SURVIVED);
  const score = 100 * detected / (detected + survived);
  return `${folder}: ${
    detected + survived
  } mutants, ${survived} survived, score ${score.toFixed(1)} %`;
}

/**
 * The mutants that no test noticed.
 *
 * @param report What was found.
 * @returns A line for each.
 */
export function survivors(report: MutationReport): string {
  const lines: string[] = [];
  for (const [name, { source, mutants }] of Object.entries(report.files)) {
    for (const mutant of mutants) {
      if (!SURVIVED.includes(mutant.status)) continue;
      lines.push(describe(name, source, mutant));
    }
  }
  return lines.join("\n");
}

function describe(
  name: string,
  source: string,
  { mutatorName, replacement, location }: Mutant,
): string {
  const { start, end } = location;
  const lines = source.split("\n").slice(start.line - 1, end.line);
  lines[lines.length - 1] = lines[lines.length - 1].slice(0, end.column - 1);
  lines[0] = lines[0].slice(start.column - 1);
  return `${name}:${start.line} ${mutatorName}: ${
    onOneLine(lines.join("\n"))
  } -> ${onOneLine(replacement)}`;
}

function onOneLine(code: string): string {
  const line = code.replaceAll(/\s+/g, " ");
  return line.length > 100 ? `${line.slice(0, 97)}...` : line;
}
