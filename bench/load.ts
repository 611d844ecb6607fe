/** The load: 32 connections that are kept, made by wrk or, where it is not installed, by autocannon, on a core of its own. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { loadCore, pinned } from './server-process.ts';

export type LoadRequest = { readonly path: string; readonly headers: Readonly<Record<string, string>> };

export type LoadPlan = {
  readonly url: string;
  /** Sent in turn, over and over. */
  readonly requests: readonly LoadRequest[];
  readonly seconds: number;
  /** How long each connection waits before each request, on average; it does not without. */
  readonly pauseMs?: number;
};

export type LoadResult = {
  readonly perSecond: number;
  readonly requests: number;
  /** Milliseconds in which 99 of 100 requests were answered. */
  readonly p99: number;
  /** Answers of 400 and more. */
  readonly refused: number;
  /** Requests that got no answer. */
  readonly failed: number;
};

export const connections = 32;

const hasWrk = spawnSync('wrk', ['--version']).error === undefined;

/** What makes the load. */
export const loadProgram = hasWrk ? 'wrk' : 'autocannon';

/** Sends the requests for so long, and counts the answers. */
export async function load(plan: LoadPlan): Promise<LoadResult> {
  const scratch = mkdtempSync(join(tmpdir(), 'vault-load-'));
  try {
    const result = JSON.parse(
      await run(hasWrk ? wrkCommand(plan, scratch) : autocannonCommand(plan, scratch)),
    );
    if (result.failed > 0) throw new Error(`${result.failed} requests got no answer`);
    return result;
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

/** The last line of what it prints. */
async function run(command: readonly string[]): Promise<string> {
  const [program = '', ...args] = pinned(loadCore, command);
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  if (code !== 0) throw new Error(`${command[0]} ended with ${code}: ${output}`);
  return output.trim().split('\n').at(-1) ?? '';
}

function autocannonCommand(plan: LoadPlan, scratch: string): string[] {
  const file = join(scratch, 'plan.json');
  writeFileSync(file, JSON.stringify({ ...plan, connections }));
  return [process.execPath, join(import.meta.dirname, 'load-autocannon.mjs'), file];
}

function wrkCommand({ url, requests, seconds, pauseMs }: LoadPlan, scratch: string): string[] {
  const file = join(scratch, 'load.lua');
  const { host } = new URL(url);
  const texts = requests.map(({ path, headers }) => {
    const lines = Object.entries({ Host: host, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
    return JSON.stringify(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`);
  });
  // wrk takes whole milliseconds; the chance between them keeps the connections from going in step.
  const pause =
    pauseMs === undefined ? '' : `function delay() return math.random(0, ${Math.round(2 * pauseMs)}) end`;
  writeFileSync(
    file,
    `local texts = {\n${texts.join(',\n')}\n}
local at = 0
function request()
  at = at % #texts + 1
  return texts[at]
end
${pause}
function done(summary, latency)
  local e = summary.errors
  print(string.format('{"perSecond":%f,"requests":%d,"p99":%f,"refused":%d,"failed":%d}',
    summary.requests / summary.duration * 1e6, summary.requests, latency:percentile(99) / 1000,
    e.status, e.connect + e.read + e.write + e.timeout))
end
`,
  );
  const duration = `${Math.max(1, Math.round(seconds))}s`;
  return [
    'wrk',
    '--threads',
    '1',
    '--connections',
    String(connections),
    '--duration',
    duration,
    '--script',
    file,
    url,
  ];
}
