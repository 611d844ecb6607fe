/** Generates load over persistent connections with wrk or, if it is not installed, autocannon, on its own core. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type Cores, loadCore, pinned } from './server-process.ts';

export type LoadRequest = { readonly path: string; readonly headers: Readonly<Record<string, string>> };

export type LoadPlan = {
  readonly url: string;
  /** Sent in turn, repeatedly. */
  readonly requests: readonly LoadRequest[];
  readonly seconds: number;
  /** The average wait of each connection before each request; none by default. */
  readonly pauseMs?: number;
  /** 32 by default. */
  readonly connections?: number;
  /** The cores of the load program; by default its own. */
  readonly cores?: Cores;
};

export type LoadResult = {
  readonly perSecond: number;
  readonly requests: number;
  /** The median of response times, in milliseconds. */
  readonly median: number;
  /** The 99th percentile of response times, in milliseconds. */
  readonly p99: number;
  /** Responses with a status of 400 or above. */
  readonly refused: number;
  /** Requests without a response. */
  readonly failed: number;
};

/** The usual number of connections. */
export const connections = 32;

const hasWrk = spawnSync('wrk', ['--version']).error === undefined;

/** The program that generates the load. */
export const loadProgram = hasWrk ? 'wrk' : 'autocannon';

/** Runs the load and counts the responses. */
export async function load(plan: LoadPlan): Promise<LoadResult> {
  const scratch = mkdtempSync(join(tmpdir(), 'vault-load-'));
  try {
    const result = JSON.parse(
      await run(
        hasWrk ? wrkCommand(plan, scratch) : autocannonCommand(plan, scratch),
        plan.cores ?? loadCore,
      ),
    );
    if (result.failed > 0) throw new Error(`${result.failed} requests got no response`);
    return result;
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

/** The last line of its output. */
async function run(command: readonly string[], cores: Cores): Promise<string> {
  const [program = '', ...args] = pinned(cores, command);
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  if (code !== 0) throw new Error(`${command[0]} exited with code ${code}: ${output}`);
  return output.trim().split('\n').at(-1) ?? '';
}

function autocannonCommand(plan: LoadPlan, scratch: string): string[] {
  const file = join(scratch, 'plan.json');
  writeFileSync(file, JSON.stringify({ connections, ...plan }));
  return [process.execPath, join(import.meta.dirname, 'load-autocannon.mjs'), file];
}

function wrkCommand(plan: LoadPlan, scratch: string): string[] {
  const { url, requests, seconds, pauseMs } = plan;
  const file = join(scratch, 'load.lua');
  const { host } = new URL(url);
  const texts = requests.map(({ path, headers }) => {
    const lines = Object.entries({ Host: host, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
    return JSON.stringify(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`);
  });
  // wrk only takes whole milliseconds. Choosing between two at random keeps the connections from running in step.
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
  print(string.format('{"perSecond":%f,"requests":%d,"median":%f,"p99":%f,"refused":%d,"failed":%d}',
    summary.requests / summary.duration * 1e6, summary.requests,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000,
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
    String(plan.connections ?? connections),
    '--duration',
    duration,
    '--script',
    file,
    url,
  ];
}
