/** Scans in plain words, and the body of a new one. */
import type { Finding, Scan } from '../data/scans.ts';

/** "Running, 31 %". */
export function stateText({ state, done, total }: Pick<Scan, 'state' | 'done' | 'total'>): string {
  if (state === 'finished') return 'Finished';
  if (state === 'waiting') return 'Waiting';
  return `Running, ${total === 0 ? 0 : Math.floor((100 * done) / total)} %`;
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
