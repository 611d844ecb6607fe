/** Scans in plain words, and the body of a new one. */
import type { Finding, Scan } from '../data/scans.ts';

/** "Running: 80 of 256 addresses and ports". */
export function stateText({ state, done, total }: Pick<Scan, 'state' | 'done' | 'total'>): string {
  if (state === 'finished') return 'Finished';
  if (state === 'waiting') return 'Waiting';
  return `Running: ${done.toLocaleString()} of ${total.toLocaleString()} addresses and ports`;
}

/** Whether it runs or is about to, so that its progress is worth a look. */
export function isActive({ state, next_run_at }: Pick<Scan, 'state' | 'next_run_at'>, now: number): boolean {
  return (
    state === 'running' || (state === 'waiting' && next_run_at !== null && Date.parse(next_run_at) <= now)
  );
}

/** "a.example, b.example, c.example and 4 more". */
export function namesText(names: readonly string[]): string {
  const more = names.length > 3 ? ` and ${names.length - 3} more` : '';
  return `${names.slice(0, 3).join(', ')}${more}`;
}

/** The body of a new scan, from the text of its fields; the vault checks it. */
export function scanBody(networks: string, ports: string, interval: string) {
  return {
    networks: wordsOf(networks),
    // Words that are no numbers stay as they are: the vault's error is about them.
    ports: wordsOf(ports).map((port) => (/^\d+$/.test(port) ? Number(port) : port)),
    ...(interval.trim() !== '' && { interval: interval.trim() }),
  };
}

/** The server name under which the vault watches a found server: its first name that is no wildcard. */
export function serverNameOf({ names }: Pick<Finding, 'names'>): string {
  return names.find((name) => !name.includes('*') && /[a-z]/i.test(name) && !name.includes(':')) ?? '';
}

function wordsOf(text: string): string[] {
  return text.split(/[\s,]+/).filter((word) => word !== '');
}
