/**
 * `vault serve` with an ACME client, for load by HTTPS, and with accounts and orders of the past, which SQL creates.
 */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { silentLog } from '../src/base/log.ts';
import { realWorld } from '../src/base/world.ts';
import { openVault } from '../src/cli/runtime/open-vault.ts';
import { encodePem } from '../src/crypto/pem.ts';
import { createAcmeClientInput } from '../src/domain/acme-server/clients/acme-client-inputs.ts';
import { createAcmeClient } from '../src/domain/acme-server/clients/acme-clients.ts';
import { localCli } from '../src/domain/audit/audit.ts';
import { parseInput } from '../src/domain/inputs.ts';
import { identifier, makeChain } from '../test/harness/ca/private-chain.ts';
import { settingsFor } from '../test/harness/test-vault.ts';
import type { AcmeServer } from './acme-client.ts';
import { type ServerProcess, serveCommand, serverCore, startServer } from './server-process.ts';

/** How many there are already. */
export type History = { readonly accounts: number; readonly orders: number };

/** Half of what a client may have: the load creates more. */
const accountsOfClient = 5000;

const day = 86_400_000;

/** Starts a new vault on a core of its own; its client may order any name, and names are not validated. */
export async function startAcmeVault(
  program: string,
  directory: string,
  history?: History,
): Promise<ServerProcess & { readonly acme: AcmeServer }> {
  const { root, intermediate, leaf } = await makeChain({ leaf: { identifiers: [identifier('127.0.0.1')] } });
  const file = (name: string, text: string) => {
    writeFileSync(join(directory, name), text, { mode: 0o600 });
    return join(directory, name);
  };
  const chain = [leaf, intermediate].map(({ certificate }) => encodePem('CERTIFICATE', certificate)).join('');
  const tls = ['--tls-cert-file', file('tls.pem', chain)];
  tls.push('--tls-key-file', file('tls.key', encodePem('PRIVATE KEY', leaf.privateKey.expose())));
  const dataDir = join(directory, 'data');
  const [binding] = await createClients(dataDir, Math.ceil((history?.accounts ?? 1) / accountsOfClient));
  if (history !== undefined) addHistory(join(dataDir, 'vault.db'), history);
  const command = [...serveCommand(program, dataDir), ...tls];
  const server = await startServer(command, { cores: serverCore, log: join(directory, 'log') });
  const ca = encodePem('CERTIFICATE', root.certificate);
  return { ...server, acme: { directory: `${server.url}/acme/local-ca/directory`, ca, binding } };
}

type Binding = NonNullable<AcmeServer['binding']>;

/** At least one. */
async function createClients(dataDir: string, count: number): Promise<[Binding, ...Binding[]]> {
  const { vault, close } = await openVault(settingsFor(dataDir), realWorld, 'create', silentLog);
  const create = async (name: string) => {
    const input = parseInput(createAcmeClientInput, { name, domains: ['*'] });
    const { key } = await createAcmeClient(vault, localCli, input);
    return { kid: key.kid, key: key.hmacKey.expose() };
  };
  try {
    const clients: [Binding, ...Binding[]] = [await create('bench')];
    while (clients.length < count) clients.push(await create(`bench-${clients.length}`));
    return clients;
  } finally {
    await close();
  }
}

/** Adds accounts, each with orders that were finalized within the last days. */
function addHistory(path: string, { accounts, orders }: History): void {
  const database = new BetterSqlite3(path);
  const clients = database.prepare('select id from acme_clients order by id').pluck().all();
  const issuer = database.prepare("select id from issuers where name = 'local-ca'").pluck().get();
  const account = database.prepare(
    `insert into acme_client_accounts (acme_client_id, issuer_id, thumbprint, jwk, status, created_at)
     values (?, ?, ?, ?, 'valid', ?)`,
  );
  const order = database.prepare(
    `insert into acme_client_orders (acme_client_id, account_id, status, identifiers, authorizations, created_at, expires_at, finished_at, csr)
     values (?, ?, 'valid', ?, ?, ?, ?, ?, ?)`,
  );
  const csr = randomBytes(300);
  const now = Date.now();
  const jwk = JSON.stringify({ kty: 'EC', crv: 'P-256', x: 'x'.repeat(43), y: 'y'.repeat(43) });
  database.transaction(() => {
    for (let at = 0; at < accounts; at += 1) {
      const id = clients[Math.floor(at / accountsOfClient)];
      const { lastInsertRowid } = account.run(
        id,
        issuer,
        randomBytes(32).toString('base64url'),
        jwk,
        now - 30 * day,
      );
      for (let of = at; of < orders; of += accounts) {
        const name = `past-${of}.example.org`;
        const authorization = {
          identifier: name,
          wildcard: false,
          status: 'valid',
          expires: now + day,
          challenges: [],
        };
        const created = now - (of % (5 * day));
        const texts = [JSON.stringify([name]), JSON.stringify([authorization])];
        order.run(id, lastInsertRowid, ...texts, created, created + 7 * day, created, csr);
      }
    }
  })();
  database.close();
}
