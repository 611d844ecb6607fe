/** Fixtures for tests of the HTTP API: certificates, API keys, and queries of the database from outside. */
import assert from 'node:assert/strict';
import { parseCertName } from '../../../src/base/cert-name.ts';
import { parseIdentifier } from '../../../src/base/identifier.ts';
import { toJson } from '../../../src/base/json.ts';
import type { Role } from '../../../src/base/role.ts';
import { type Scope, scopes } from '../../../src/base/scope.ts';
import { generatePrivateKey } from '../../../src/crypto/key-pair.ts';
import { encodePem } from '../../../src/crypto/pem.ts';
import { createApiKey } from '../../../src/domain/access/api-keys.ts';
import { localCli, system } from '../../../src/domain/audit/audit.ts';
import { importCertificate } from '../../../src/domain/certificates/certificate-import.ts';
import { createCertificate } from '../../../src/domain/certificates/certificates.ts';
import { createApiKeyInput, createCertificateInput, parseInput } from '../../../src/domain/inputs.ts';
import { issueFromLocalCa } from '../../../src/domain/private-ca/local-ca.ts';
import { claimRenewal } from '../../../src/domain/renewals/renewal-claim.ts';
import { runRenewal } from '../../../src/domain/renewals/renewal-run.ts';
import { requestRenewal } from '../../../src/domain/renewals/renewals.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { outside } from '../database/outside-database.ts';

/** A certificate of the private CA with version 1. */
export async function makeCertificate(
  vault: Vault,
  name: string,
  domains = [`${name}.example.test`],
  others: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  await createCertificate(vault, localCli, parseInput(createCertificateInput, { name, domains, ...others }));
}

/** Issues the next version of a certificate, in the same way as the worker. */
export async function renewCertificate(vault: Vault, name: string): Promise<void> {
  const { id } = await requestRenewal(vault, system, name);
  const claimed = await claimRenewal(vault, 'test', { only: id });
  assert(claimed, `the renewal of ${name} could not be claimed`);
  await runRenewal(vault, claimed, new AbortController().signal);
}

/** Imports a certificate; importing it again creates a new version. */
export async function importOne(vault: Vault, name: string, options: { chain: boolean }): Promise<void> {
  const certName = parseCertName(name);
  assert(certName);
  const sources = [{ name: 'bundle.pem', bytes: Buffer.from(await makeBundle(vault, options)) }];
  await importCertificate(vault, localCli, { name: certName, sources });
}

/** A certificate and its key as one PEM file, not in the vault. */
export async function makeBundle(
  vault: Vault,
  options: { chain: boolean } = { chain: true },
): Promise<string> {
  const privateKey = await generatePrivateKey('ec256');
  const identifier = parseIdentifier('imported.example.test');
  assert(identifier);
  const issued = await issueFromLocalCa(vault, {
    identifiers: [identifier],
    privateKey,
    lifetime: undefined,
  });
  const certificates = [issued.leaf, ...(options.chain ? issued.chain : [])];
  return [
    ...certificates.map((der) => encodePem('CERTIFICATE', der)),
    encodePem('PRIVATE KEY', privateKey.expose()),
  ].join('');
}

/** A certificate without a version, which the API cannot create. */
export async function makePending(vault: Vault, name: string): Promise<void> {
  await vault.db.write(async (writer) => {
    const row = { key_type: 'ec256', issuer_id: null, auto_renew: 0, reuse_key: 0 } as const;
    await writer
      .insertInto('certificates')
      .values({ name, domains: toJson([]), ...row, created_at: vault.world.now() })
      .execute();
  });
}

export type TestKey = { readonly id: number; readonly raw: string; readonly actor: string };

/** How many keys of a vault got a default name. */
const unnamed = new WeakMap<Vault, number>();

function defaultName(vault: Vault): string {
  const count = (unnamed.get(vault) ?? 0) + 1;
  unnamed.set(vault, count);
  return count === 1 ? 'web' : `web ${count}`;
}

/** An API key, by default with every scope and every certificate. */
export async function makeKey(
  vault: Vault,
  options: {
    readonly name?: string;
    readonly scopes?: readonly Scope[];
    readonly certificates?: readonly string[];
    readonly allowed_networks?: readonly string[];
    readonly profiles?: readonly string[];
    readonly role?: Role;
    readonly client_certificate?: string;
    readonly certificate_labels?: readonly string[];
    readonly reach?: readonly string[];
    readonly labels?: readonly string[];
    readonly expires_at?: string;
  } = {},
): Promise<TestKey> {
  const name = options.name ?? defaultName(vault);
  const input = { scopes: [...scopes], certificates: ['*'], ...options, name };
  const { id, raw } = await createApiKey(vault, localCli, parseInput(createApiKeyInput, input));
  return { id, raw: raw.expose(), actor: `api-key:${id}:${input.name}` };
}

export type SeenEvent = {
  readonly actor: string;
  readonly action: string;
  readonly resource: string;
  readonly detail: Readonly<Record<string, unknown>>;
  readonly ip: string | null;
  readonly request_id: string | null;
};

/** The committed audit events of an action in order, as another process sees them. */
export function eventsOf(dataDir: string, action: string): SeenEvent[] {
  const sql =
    'select actor, action, resource, detail, ip, request_id from audit_events where action = ? order by id';
  const rows = outside(dataDir, (db) => db.prepare(sql).all(action)) as (Omit<SeenEvent, 'detail'> & {
    detail: string;
  })[];
  return rows.map((row) => ({ ...row, detail: JSON.parse(row.detail) }));
}

/** Damages every sealed private key, so that decryption fails. */
export function breakSealedKeys(dataDir: string): void {
  const sql =
    "update certificate_versions set sealed_private_key = cast(sealed_private_key || x'00' as blob)";
  outside(dataDir, (db) => db.exec(sql));
}
