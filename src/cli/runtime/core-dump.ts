/**
 * Keeps secrets out of core dumps. Otherwise a crash would write the memory of the process, with keys and passwords, to
 * a file or a crash reporter.
 */
import { writeFileSync } from 'node:fs';

/** A bit mask of the memory that Linux dumps for this process and its children (core(5)). */
const filter = '/proc/self/coredump_filter';

/** Excludes memory from core dumps of this process; a dump still shows where it crashed. */
export function keepMemoryOutOfCoreDumps(): void {
  try {
    writeFileSync(filter, '0');
  } catch {
    // Not Linux, or /proc is missing or read-only. docs/explanation/security.md lists alternatives.
  }
}
