/**
 * `ProgressBar` of `@std/cli/unstable-progress-bar`, less the options that
 * were renamed between its releases. The npm progress bars write to a Node.js
 * stream and keep silent where there's no terminal; this one, as the package,
 * writes its line to any `WritableStream` once a second.
 */

/** What a formatter is given for one line. */
export interface ProgressBarFormatter {
  /** Minutes and seconds since the start, `mm:ss`. */
  styledTime: string;
  /** How far it is, `0.40/97.66 KiB`. */
  styledData: (fractions?: number) => string;
  /** The bar, `###-------`. */
  progressBar: string;
  /** Milliseconds since the start. */
  time: number;
  /** `time` of the line before. */
  previousTime: number;
  /** How far it is. */
  value: number;
  /** `value` of the line before. */
  previousValue: number;
  /** How far it goes. */
  max: number;
}

/** Options of {@linkcode ProgressBar}. */
export interface ProgressBarOptions {
  /** Where lines go. @default {Deno.stderr.writable} */
  writable?: WritableStream<Uint8Array>;
  /** How far it is at the start. @default {0} */
  value?: number;
  /** How far it goes. */
  max: number;
  /** Length of the bar, in characters. @default {50} */
  barLength?: number;
  /** Character of what is done. @default {'#'} */
  fillChar?: string;
  /** Character of what is to do. @default {'-'} */
  emptyChar?: string;
  /** Whether the line is removed at the end. @default {false} */
  clear?: boolean;
  /** Makes the line. */
  formatter?: (formatter: ProgressBarFormatter) => string;
  /** Whether `writable` stays open at the end. @default {true} */
  keepOpen?: boolean;
}

const LINE_CLEAR = "\r\u001b[K";
const UNITS = ["KiB", "MiB", "GiB", "TiB", "PiB"];

function twoDigits(value: number): string {
  return String(Math.trunc(value)).padStart(2, "0");
}

function fraction(value: number, max: number, digits: number): string {
  let power = 1;
  while (power < UNITS.length && max >= 1024 ** (power + 1)) power++;
  const [done, all] = [value, max].map((bytes) =>
    (bytes / 1024 ** power).toFixed(digits)
  );
  return `${done}/${all} ${UNITS[power - 1]}`;
}

/** A line on a stream that shows how far something is. */
export class ProgressBar {
  /** How far it is. */
  value: number;
  /** How far it goes. */
  max: number;

  readonly #options: Required<Omit<ProgressBarOptions, "value" | "max">>;
  readonly #writer: WritableStreamDefaultWriter<string>;
  readonly #piped: Promise<void>;
  readonly #timer: ReturnType<typeof setInterval>;
  readonly #start = Date.now();
  #previousTime = 0;
  #previousValue: number;

  constructor(options: ProgressBarOptions) {
    this.value = this.#previousValue = options.value ?? 0;
    this.max = options.max;
    this.#options = {
      writable: Deno.stderr.writable,
      barLength: 50,
      fillChar: "#",
      emptyChar: "-",
      clear: false,
      keepOpen: true,
      formatter: (at) =>
        `[${at.styledTime}] [${at.progressBar}] [${at.styledData()}]`,
      ...options,
    };
    const { readable, writable } = new TextEncoderStream();
    this.#writer = writable.getWriter();
    this.#timer = setInterval(() => this.#print(), 1000);
    // A reader that goes away ends the display, not the program.
    this.#piped = readable
      .pipeTo(this.#options.writable, { preventClose: this.#options.keepOpen })
      .catch(() => clearInterval(this.#timer));
    this.#print();
  }

  async #write(text: string): Promise<void> {
    await this.#writer.write(text).catch(() => {});
  }

  async #print(): Promise<void> {
    const { value, max } = this;
    const { barLength, fillChar, emptyChar, formatter } = this.#options;
    const time = Date.now() - this.#start;
    const share = Math.min(Math.max(value / max, 0), 1);
    const filled = Math.trunc(share * barLength);
    const line = formatter({
      styledTime: `${twoDigits(time / 60_000)}:${twoDigits(time / 1000 % 60)}`,
      styledData: (fractions = 2) => fraction(value, max, fractions),
      progressBar: fillChar.repeat(filled) +
        emptyChar.repeat(barLength - filled),
      time,
      previousTime: this.#previousTime,
      value,
      previousValue: this.#previousValue,
      max,
    });
    this.#previousTime = time;
    this.#previousValue = value;
    await this.#write(LINE_CLEAR + line);
  }

  /** Shows the last state, or removes the line, and lets the stream go. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    if (this.#options.clear) {
      await this.#write(LINE_CLEAR);
    } else {
      await this.#print();
      await this.#write("\n");
    }
    await this.#writer.close().catch(() => {});
    await this.#piped;
  }
}
