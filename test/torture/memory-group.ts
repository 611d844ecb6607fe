/** A limit of the kernel on the memory of a process, as MemoryMax= of a systemd unit sets it. */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export type MemoryGroup = {
  /** How many processes the kernel has killed for their memory. */
  readonly kills: () => number;
  /** Call it once the process has ended. */
  readonly remove: () => void;
};

const root = '/sys/fs/cgroup';

/** The files of both versions of the interface. */
const versions = [
  { controller: join(root, 'memory'), limit: 'memory.limit_in_bytes', events: 'memory.oom_control' },
  { controller: root, limit: 'memory.max', events: 'memory.events' },
];

/** Limits a process and its threads to this many bytes. Returns the reason where this system or user cannot. */
export function limitMemory(pid: number, bytes: number): MemoryGroup | { readonly reason: string } {
  const found = versions.find(({ controller, limit }) =>
    limit === 'memory.max'
      ? existsSync(join(controller, 'cgroup.subtree_control'))
      : existsSync(join(controller, limit)),
  );
  if (found === undefined) return { reason: 'there are no control groups of memory' };
  const group = join(found.controller, `vault-test-${pid}`);
  try {
    mkdirSync(group);
    writeFileSync(join(group, found.limit), String(bytes));
    writeFileSync(join(group, 'cgroup.procs'), String(pid));
  } catch (error) {
    if (existsSync(group)) rmdirSync(group);
    return { reason: `a control group cannot be created: ${(error as Error).message}` };
  }
  return {
    kills: () =>
      Number(/^oom_kill (\d+)$/m.exec(readFileSync(join(group, found.events), 'utf8'))?.[1] ?? Number.NaN),
    remove: () => rmdirSync(group),
  };
}
