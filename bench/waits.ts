/** Wait times of people and the command line, and the memory of the server afterwards. */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { type Figure, median } from './figure.ts';
import type { Pace } from './pace.ts';
import { leaveServerCore, pinned, type ServerProcess, serverCore } from './server-process.ts';

const administrator = { name: 'bench', password: 'correct horse battery bench' };

/** Creates the administrator who signs in below. */
export function createAdministrator(program: string, dataDir: string): void {
  const { name, password } = administrator;
  const command = [program, 'admin', 'create', '--name', name, '--password-stdin', '--data-dir', dataDir];
  output(command, password);
}

/** The figures of this server after load; `program` is the command line for the same vault. */
export async function measureWaits(
  program: string,
  server: ServerProcess,
  dataDir: string,
  { rounds, turn }: Pace,
): Promise<Figure[]> {
  const body = JSON.stringify(administrator);
  const origin = { Origin: server.url, 'Content-Type': 'application/json' };
  const signIn = async () => {
    const response = await fetch(`${server.url}/api/v1/session`, { method: 'POST', headers: origin, body });
    if (response.status !== 201) throw new Error(`sign-in responded with status ${response.status}`);
    return response.headers.getSetCookie()[0]?.split(';', 1)[0] ?? '';
  };
  const cookie = await signIn();
  const agent = new Agent({ keepAlive: true });
  const page = (path: string) => async () => {
    const asked = get(`${server.url}/api/v1/${path}`, { agent, headers: { Cookie: cookie } });
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    // To the last byte, without parsing.
    await once(response.resume(), 'end');
    if (response.statusCode !== 200) throw new Error(`${path} answers ${response.statusCode}`);
  };
  const command =
    (...args: string[]) =>
    async () =>
      void output([program, ...args, '--data-dir', dataDir]);
  const time = async (work: () => Promise<unknown>, count: number) => {
    const times: number[] = [];
    for (let round = 0; round < count; round += 1) {
      const started = performance.now();
      await work();
      times.push(performance.now() - started);
    }
    return median(times);
  };
  let names = 0;
  const nextName = () => {
    names += 1;
    return `cold ${names}`;
  };
  const scope = ['--scope', 'certificates:read', '--certificate', 'www7.example.com'];
  const after = encodeURIComponent('www5');
  const pages: [name: string, work: () => Promise<unknown>][] = [
    ['a page of 100 certificates', page(`certificates?limit=100&after=${after}`)],
    ['a page of 1,000 certificates', page(`certificates?after=${after}`)],
    ['100 audit events, the newest', page('audit-events?limit=100')],
    ['100 audit events of a key', page('audit-events?limit=100&actor=api-key:7:k6')],
    [
      '100 audit events of a certificate',
      page('audit-events?limit=100&resource=certificate:www7.example.com'),
    ],
    ['audit events of an unknown actor', page('audit-events?limit=100&actor=nobody')],
  ];
  const commands: [name: string, work: () => Promise<unknown>][] = [
    ['vault api-key create', () => command('api-key', 'create', '--name', nextName(), ...scope)()],
    ['vault api-key list', command('api-key', 'list')],
  ];
  const figures: Figure[] = [
    { name: 'vault serve until it listens', value: server.listening, unit: 'ms', goal: 1000 },
    { name: 'memory after the load', value: server.memory().resident, unit: 'MB', goal: 200 },
    { name: 'without file-backed pages', value: server.memory().own, unit: 'MB' },
  ];
  const returnToAll = leaveServerCore();
  // The first requests run while the engine still compiles the code, so they do not count.
  for (const [name, work] of pages) {
    await turn();
    await time(work, 10);
    figures.push({ name, value: await time(work, 5 * rounds), unit: 'ms', goal: 20 });
  }
  await turn();
  const signingIn = await time(signIn, 2 * rounds + 1);
  const apart = signingIn - hashing(2 * rounds + 1);
  figures.push(
    { name: 'signing in', value: signingIn, unit: 'ms' },
    { name: 'without hashing the password', value: apart, unit: 'ms', goal: 20 },
  );
  await turn();
  returnToAll();
  for (const [name, work] of commands) {
    await turn();
    figures.push({ name, value: await time(work, 2 * rounds + 1), unit: 'ms', goal: 300 });
  }
  agent.destroy();
  return figures;
}

/** Milliseconds to hash a password, alone on the server's core. */
function hashing(count: number): number {
  const command = [process.execPath, join(import.meta.dirname, 'password-time.ts'), String(count)];
  return median(JSON.parse(output(pinned(serverCore, command))) as number[]);
}

/** Returns the output of a command. Throws its error output if it fails. */
function output([program = '', ...args]: readonly string[], input = ''): string {
  const { status, stdout, stderr } = spawnSync(program, args, { input, encoding: 'utf8', maxBuffer: 1e9 });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} failed: ${stderr}`);
  return stdout;
}
