/** New HTTPS connections per second, with and without session resumption, compared with a bare server. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { answerTo } from './answer.ts';
import { median, type Table } from './figure.ts';
import { fillVault } from './filled-vault.ts';
import { connections } from './load.ts';
import type { Pace } from './pace.ts';
import { inScratch } from './scratch.ts';
import {
  loadCore,
  pinned,
  type ServerProcess,
  serveCommand,
  serverCore,
  startServer,
} from './server-process.ts';

/** Measures the executable at `program`; the figures have no goal. */
export async function measureHandshakes(program: string, pace: Pace): Promise<Table[]> {
  return inScratch(async (directory) => {
    const { dataDir, certFile, keyFile } = await fillVault(join(directory, 'data'), {
      ...{ certificates: 1, keys: 1, auditEvents: 0 },
    });
    const tls = ['--tls-cert-file', certFile, '--tls-key-file', keyFile];
    const command = [...serveCommand(program, dataDir), ...tls];
    const vault = await startServer(command, { cores: serverCore, log: join(directory, 'log') });
    try {
      const answer = join(directory, 'answer.json');
      writeFileSync(
        answer,
        JSON.stringify(await answerTo(vault.url, { path: '/api/v1/health', headers: {} })),
      );
      const bareProgram = join(import.meta.dirname, 'bare-server.ts');
      const bareCommand = [process.execPath, bareProgram, answer, certFile, keyFile];
      const bare = await startServer(bareCommand, { cores: serverCore });
      try {
        const rows = [
          await compare('full', { vault, bare }, pace),
          await compare('resume', { vault, bare }, pace),
        ];
        return [{ title: 'New HTTPS connections', head, rows }];
      } finally {
        await bare.stop();
      }
    } finally {
      await vault.stop();
    }
  });
}

const head = ['handshake', 'vault /s', 'bare /s', 'share', 'vault CPU µs', 'bare CPU µs', 'CPU share'];

async function compare(
  mode: string,
  { vault, bare }: Readonly<Record<'vault' | 'bare', ServerProcess>>,
  { seconds, rounds, turn }: Pace,
): Promise<(string | number)[]> {
  const measure = (server: ServerProcess) => {
    const before = server.processorTime();
    const program = join(import.meta.dirname, 'handshake-load.ts');
    const command = [process.execPath, program, server.url, String(seconds), mode];
    const [first = '', ...args] = pinned(loadCore, command);
    const { status, stdout, stderr } = spawnSync(first, args, { encoding: 'utf8' });
    if (status !== 0) throw new Error(`no connections: ${stderr}`);
    const { done, resumed } = JSON.parse(stdout) as { done: number; resumed: number };
    // The first connection of each lane has no session to resume.
    if (mode === 'resume' && resumed < (done - connections) * 0.9)
      throw new Error(`${resumed} of ${done} were resumed`);
    return { perSecond: done / seconds, each: ((server.processorTime() - before) / done) * 1000 };
  };
  measure(vault);
  measure(bare);
  type Measured = ReturnType<typeof measure>;
  const pairs: { readonly bare: Measured; readonly vault: Measured }[] = [];
  for (let round = 0; round < rounds; round += 1) {
    await turn();
    pairs.push({ bare: measure(bare), vault: measure(vault) });
  }
  const of = (value: (pair: (typeof pairs)[number]) => number) => median(pairs.map(value));
  return [
    mode === 'full' ? 'new session' : 'resumed session',
    of((pair) => pair.vault.perSecond),
    of((pair) => pair.bare.perSecond),
    of((pair) => pair.vault.perSecond / pair.bare.perSecond),
    of((pair) => pair.vault.each),
    of((pair) => pair.bare.each),
    of((pair) => pair.bare.each / pair.vault.each),
  ];
}
