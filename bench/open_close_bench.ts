/**
 * The experiment of 2009: `close(open(path))` by 1 to 8 workers, and what
 * deferring the freeing of files takes of the processors.
 *
 * The tables at the end are the measurement. The rows of `deno bench` show the
 * core figure in one thread.
 */
import { openClose, variants } from "./_open_close.ts";
import { PathCache } from "./_open_close_cache.ts";
import { OpenFiles } from "./_open_close_files.ts";
import { createCache } from "./_open_close_lab.ts";
import { consume } from "./_measure.ts";
import { count, printAtEnd, Progress, table } from "./_report.ts";

const findings = await (async () => {
  const options = { quick: false };
  await using progress = new Progress("open close", openClose.steps(options));
  return await openClose.run({
    ...options,
    onStep: (doing) => progress.step(doing),
  });
})();

/** Operations of an iteration. */
const BATCH = 1000;

for (const variant of variants()) {
  const { name, detector } = variant;
  // Nothing waits long enough in one thread for the others to differ.
  if (name !== detector) continue;
  const { rcu, head, paths } = createCache(variant);
  const files = new OpenFiles(rcu, new PathCache(rcu, head, 1));
  let i = 0;
  Deno.bench({
    name,
    group: `${count(BATCH)} close(open(path)), one thread`,
    fn: () => {
      let fds = 0;
      for (let n = 0; n < BATCH; n++) {
        i = i + 1 < paths.length ? i + 1 : 0;
        const fd = files.open(paths[i]);
        files.close(fd);
        fds += fd;
      }
      consume(fds);
    },
  });
}

printAtEnd(() => {
  const { bars, tables } = findings;
  const met = bars.map(({ what, bar, measured, met }) => [
    what,
    measured,
    bar,
    met ? "met" : "NOT MET",
  ]);
  return [
    table([[openClose.title, "", "bar", ""], ...met]),
    ...tables.map(({ title, head, rows, notes }) =>
      `${title}\n\n${table([head, ...rows])}\n\n${notes}`
    ),
  ].join("\n\n");
});
