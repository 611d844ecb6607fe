/** The name of the process in ps, top and pgrep. Node calls its main thread `node-MainThread`. */
import { writeFileSync } from 'node:fs';

/** Unlike `process.title`, writing this file (proc_pid_comm(5)) leaves the arguments in the list of processes. */
const nameFile = '/proc/self/comm';

/** Names this process. The kernel keeps the first 15 characters. */
export function nameProcess(name: string): void {
  try {
    writeFileSync(nameFile, name);
  } catch {
    // Not Linux, or /proc is missing or read-only: the process is called as its executable or as Node names it.
  }
}
