/**
 * Keeps secrets out of core dumps: a process that crashes would otherwise leave all it held, keys and passwords too, in a
 * file or with a crash reporter.
 */
import { writeFileSync } from 'node:fs';

/** The kinds of memory that Linux writes into a dump of this process, and of what it starts, as bits (core(5)). */
const filter = '/proc/self/coredump_filter';

/** From now on a dump of this process says where it crashed, and has none of its memory. */
export function keepMemoryOutOfCoreDumps(): void {
  try {
    writeFileSync(filter, '0');
  } catch {
    // No Linux, or /proc is not there or read-only: docs/explanation/security.md says what else helps.
  }
}
