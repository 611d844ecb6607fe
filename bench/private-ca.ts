/**
 * What the private CA costs: issuances per second of processor time, and a CRL with many entries from the executable.
 */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import type { Identifier } from '../src/base/identifier.ts';
import { type KeyType, keyTypes } from '../src/base/key-type.ts';
import { silentLog } from '../src/base/log.ts';
import { realWorld } from '../src/base/world.ts';
import { openVault } from '../src/cli/runtime/open-vault.ts';
import { generatePrivateKey } from '../src/crypto/key-pair.ts';
import { issueFromLocalCa } from '../src/domain/private-ca/local-ca.ts';
import type { Vault } from '../src/domain/vault.ts';
import { settingsFor } from '../test/harness/test-vault.ts';
import { type Figure, figureTable, median, type Table } from './figure.ts';
import type { Pace } from './pace.ts';
import { inScratch } from './scratch.ts';
import { serveCommand, serverCore, startServer } from './server-process.ts';

const names = ['www.example.com' as Identifier];

/** Measures issuance by the source, because one command issues one certificate, and the CRL by the executable. */
export async function measurePrivateCa(program: string, { seconds, isQuick }: Pace): Promise<Table[]> {
  const entries = isQuick ? 10_000 : 100_000;
  return inScratch(async (directory) => {
    const dataDir = join(directory, 'data');
    const { vault, close } = await openVault(settingsFor(dataDir), realWorld, 'create', silentLog);
    const rows: (readonly [string, number, number])[] = [];
    for (const keyType of keyTypes)
      rows.push([keyType, ...(await issuances(vault, keyType, seconds * 1000))]);
    await close();
    revokeMany(join(dataDir, 'vault.db'), entries);
    const head = ['key type', 'with a new key', 'with a given key'];
    const title = 'Issuance by the private CA, certificates per second of processor time';
    const crl = `A CRL with ${entries.toLocaleString('en').replace(',', ' ')} entries`;
    return [{ title, head, rows }, figureTable(crl, await crlFigures(program, dataDir))];
  });
}

/** Certificates per second of processor time: with a key that is generated for each, and with one that is there. */
async function issuances(vault: Vault, keyType: KeyType, ms: number): Promise<[number, number]> {
  const given = await generatePrivateKey(keyType);
  const issue = (privateKey: typeof given) =>
    issueFromLocalCa(vault, { identifiers: names, privateKey, lifetime: undefined });
  await issue(given);
  return [
    await perSecond(ms, async () => issue(await generatePrivateKey(keyType))),
    await perSecond(ms, () => issue(given)),
  ];
}

async function perSecond(ms: number, work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  const used = () => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };
  let done = 0;
  while (used() < ms) {
    await work();
    done += 1;
  }
  return (done * 1000) / used();
}

/** Adds revocations to the intermediate, as if the vault had stored them. */
function revokeMany(path: string, entries: number): void {
  const database = new BetterSqlite3(path);
  const id = database.prepare("select id from ca_certificates where role = 'intermediate'").pluck().get();
  const revoke = database.prepare(
    'insert into revoked_certificates (ca_certificate_id, serial, reason, revoked_at, not_after) values (?, ?, 1, ?, ?)',
  );
  const now = Date.now();
  database.transaction(() => {
    for (let at = 0; at < entries; at += 1) {
      const serial = randomBytes(16);
      serial.writeUInt8(0x40 | (serial.readUInt8(0) & 0x3f), 0);
      revoke.run(id, serial.toString('hex').toUpperCase(), now - at, now + 90 * 86_400_000);
    }
    database
      .prepare(
        `insert into crls (ca_certificate_id, revocations, covered, number, signed_at, next_update, crl)
         values (?, ?, 0, 0, 0, 0, x'') on conflict do update set revocations = excluded.revocations`,
      )
      .run(id, entries);
  })();
  database.close();
}

/** The first answer signs the CRL; while it does, other requests are answered. */
async function crlFigures(program: string, dataDir: string): Promise<Figure[]> {
  const server = await startServer(serveCommand(program, dataDir), { cores: serverCore });
  try {
    const ask = async (path: string, headers: Record<string, string> = {}) => {
      const started = performance.now();
      const response = await fetch(`${server.url}${path}`, { headers });
      const { byteLength } = await response.arrayBuffer();
      const isWell = response.status === 200 || response.status === 304;
      if (!isWell) throw new Error(`${path}: status ${response.status}`);
      return { ms: performance.now() - started, bytes: byteLength, etag: response.headers.get('etag') ?? '' };
    };
    await ask('/api/v1/health');
    let isSigned = false;
    const first = ask('/client/ca.crl').finally(() => {
      isSigned = true;
    });
    let longest = 0;
    while (!isSigned) longest = Math.max(longest, (await ask('/api/v1/health')).ms);
    const { ms, bytes, etag } = await first;
    const again = [];
    const unchanged = [];
    for (let round = 0; round < 20; round += 1) {
      again.push((await ask('/client/ca.crl')).ms);
      unchanged.push((await ask('/client/ca.crl', { 'If-None-Match': etag })).ms);
    }
    return [
      { name: 'size', value: bytes / 1e6, unit: 'MB' },
      { name: 'first answer, which signs it', value: ms, unit: 'ms' },
      { name: 'longest other request meanwhile', value: longest, unit: 'ms' },
      { name: 'answer', value: median(again), unit: 'ms' },
      { name: 'answer 304', value: median(unchanged), unit: 'ms' },
    ];
  } finally {
    await server.stop();
  }
}
