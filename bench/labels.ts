/** What five labels of each of 10,000 certificates cost the requests of the other benchmarks, and lists. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { silentLog } from '../src/base/log.ts';
import { realWorld } from '../src/base/world.ts';
import { openVault } from '../src/cli/runtime/open-vault.ts';
import { findCertificate } from '../src/db/tables/certificates/certificates.ts';
import { createApiKey } from '../src/domain/access/api-keys.ts';
import { localCli } from '../src/domain/audit/audit.ts';
import { createApiKeyInput, parseInput } from '../src/domain/inputs.ts';
import { changeLabels } from '../src/domain/labels/certificate-labelling.ts';
import { settingsFor } from '../test/harness/test-vault.ts';
import type { Cell, Table } from './figure.ts';
import { fillVault } from './filled-vault.ts';
import { costsOf, type Line, type Served } from './growth.ts';
import type { Pace } from './pace.ts';
import { requestKinds, requestsOf } from './request-kinds.ts';
import { inScratch } from './scratch.ts';
import { serveCommand, serverCore, startServer } from './server-process.ts';

const size = { certificates: 10_000, keys: 10_000, auditEvents: 0 };

/** A vault with a key that reads all certificates. */
type Listed = Served & { readonly reader: string };

const list = (name: string, query: string): Line<Listed> => ({
  name,
  status: 200,
  requests: ({ reader }) => [
    { path: `/api/v1/certificates?${query}`, headers: { Authorization: `Bearer ${reader}` } },
  ],
});

const lines: readonly Line<Listed>[] = [
  ...requestKinds
    .filter(({ options }) => options === undefined)
    .map((kind) => ({ ...kind, requests: ({ vault }: Listed) => requestsOf(kind, vault, 1000) })),
  list('list of 20', 'limit=20'),
  list('list of 100', 'limit=100'),
];

/** Measures the executable at `program`. */
export async function measureLabels(program: string, pace: Pace): Promise<Table[]> {
  return inScratch(async (directory) => {
    const all: Listed[] = [];
    try {
      for (const labels of [0, 5]) all.push(await serve(program, join(directory, String(labels)), labels));
      const head = ['processor time per request', 'without labels', 'five labels each'];
      const rows: Cell[][] = [];
      for (const line of lines) rows.push(await costsOf(line, all, pace));
      return [{ title: '10,000 certificates with labels', head, rows }];
    } finally {
      for (const { server } of all) await server.stop();
    }
  });
}

async function serve(program: string, directory: string, labels: number): Promise<Listed> {
  mkdirSync(directory);
  const vault = await fillVault(join(directory, 'data'), size);
  const reader = await labelAll(vault.dataDir, vault.names, labels);
  const command = serveCommand(program, vault.dataDir);
  const server = await startServer(command, { cores: serverCore, log: join(directory, 'log') });
  return { vault, reader, server };
}

/** Gives each certificate so many labels, in one transaction. Returns the API key that reads all of them. */
async function labelAll(dataDir: string, names: readonly string[], count: number): Promise<string> {
  const { vault, close } = await openVault(settingsFor(dataDir), realWorld, 'create', silentLog);
  try {
    await vault.db.write(async (writer) => {
      for (const [index, name] of names.entries()) {
        const labels = ['app', 'env', 'owner', 'site', 'team'].slice(0, count);
        const row = await findCertificate(writer, name);
        if (row === undefined) throw new Error(`there is no certificate ${name}`);
        const values = labels.map((key, place) => `${key}=${key}-${index % (10 * (place + 1))}`);
        await changeLabels(vault, writer, localCli, row, values);
      }
    });
    const input = { name: 'reader', scopes: ['certificates:read'], certificates: ['*'] };
    const { raw } = await createApiKey(vault, localCli, parseInput(createApiKeyInput, input));
    return raw.expose();
  } finally {
    await close();
  }
}
