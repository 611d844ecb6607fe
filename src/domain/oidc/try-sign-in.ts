/**
 * A test of the sign-in by OpenID Connect: a command on the host begins it, a person signs in at the provider, the
 * server that the provider sends them to finishes it, and the command shows what the vault would make of their claims.
 * No one is signed in. All that it needs is sealed in its `state`, so that no cookie is needed.
 */
import type { Role } from '../../base/role.ts';
import { sha256 } from '../../base/sha256.ts';
import {
  type AdministratorRow,
  findAdministrator,
  findOidcAdministrator,
} from '../../db/tables/access/administrators.ts';
import { deleteOidcResult, findOidcResult, insertOidcUse } from '../../db/tables/access/oidc-uses.ts';
import type { SecretsContext } from '../contexts.ts';
import { type Claims, nameIn, profilesIn, reachIn, roleIn, roleValuesIn } from './claims.ts';
import type { OidcProvider } from './oidc-provider.ts';
import { openJson, openPending, type PendingChecks, pendingLifetime, sealJson } from './pending-sign-in.ts';
import { OidcRefusal } from './refusal.ts';

/** A test that waits for a person, until `expiresAt` in UTC milliseconds. */
export type BegunTest = { readonly url: string; readonly idHash: Buffer; readonly expiresAt: number };

/** The account that the person has, or would get at the first sign-in. */
export type TestAccount = 'new' | 'existing' | 'name taken' | 'no valid name';

export type TestResult =
  | { readonly kind: 'refused'; readonly reason: string; readonly facts: Readonly<Record<string, string>> }
  | {
      readonly kind: 'authenticated';
      readonly subject: string;
      readonly claims: Claims;
      /** The values of the claim that decides about the role. */
      readonly values: readonly string[];
      /** Null if the person would be refused. */
      readonly role: Role | null;
      /** The labels that confine the person; none for everything, null if the person would be refused for them. */
      readonly reach: readonly string[] | null;
      /** The profiles that confine the person; none for any, null if the person would be refused for them. */
      readonly profiles: readonly string[] | null;
      /** The name of the account; null if no claim is valid as one. */
      readonly name: string | null;
      readonly account: TestAccount;
    };

/** Begins a test. Throws OidcRefusal if the provider cannot be used. */
export async function beginTest(vault: SecretsContext, provider: OidcProvider): Promise<BegunTest> {
  const { issuer, clientId } = provider.settings;
  const expiresAt = vault.world.now() + pendingLifetime;
  const { nonce, verifier } = provider.newChecks();
  const pending: PendingChecks = { nonce, verifier, issuer, clientId, expiresAt };
  const state = (await sealJson(vault, 'test', pending)).toString('base64url');
  const url = await provider.pageFor({ state, nonce, verifier });
  return { url, idHash: idHashOf(state), expiresAt };
}

/** Finishes the test whose response the provider sent with `query`; returns false if it is not one of a test. */
export async function finishTest(
  vault: SecretsContext,
  provider: OidcProvider,
  query: string,
): Promise<boolean> {
  const state = new URLSearchParams(query).get('state') ?? '';
  const pending = openPending<PendingChecks>(vault, 'test', state);
  if (pending === undefined) return false;
  // Before the provider is asked: a repeated request is no second attempt.
  const { expiresAt } = pending;
  const isFirst = await vault.db.write((writer) =>
    insertOidcUse(writer, sha256(`tried ${state}`), { now: vault.world.now(), expiresAt }),
  );
  if (!isFirst) return true;
  const result = await sealJson(vault, 'test result', await resultOf(vault, provider, query, pending));
  await vault.db.write((writer) =>
    insertOidcUse(writer, idHashOf(state), { now: vault.world.now(), expiresAt, result }),
  );
  return true;
}

/** The result of the test, which is then forgotten; undefined until the person has signed in. */
export async function takeTestResult(
  vault: SecretsContext,
  { idHash }: Pick<BegunTest, 'idHash'>,
): Promise<TestResult | undefined> {
  const sealed = await findOidcResult(vault.db.reader, idHash);
  if (sealed === undefined) return undefined;
  await vault.db.write((writer) => deleteOidcResult(writer, idHash));
  return openJson<TestResult>(vault, 'test result', sealed);
}

async function resultOf(
  vault: SecretsContext,
  provider: OidcProvider,
  query: string,
  pending: PendingChecks,
): Promise<TestResult> {
  const { issuer, clientId, roles } = provider.settings;
  try {
    if (pending.issuer !== issuer || pending.clientId !== clientId) {
      throw new OidcRefusal('invalid', 'the server runs with other settings; restart it');
    }
    const state = new URLSearchParams(query).get('state') ?? '';
    const { subject, claims } = await provider.finish(query, { ...pending, state });
    const known = await findOidcAdministrator(vault.db.reader, { issuer, subject });
    const name = known?.name ?? nameIn(claims) ?? null;
    const role = roleIn(claims, roles);
    return {
      kind: 'authenticated',
      subject,
      claims,
      values: roleValuesIn(claims, roles),
      role: role ?? null,
      reach: role === undefined ? [] : (reachIn(claims, provider.settings, role) ?? null),
      profiles: role === undefined ? [] : (profilesIn(claims, provider.settings, role) ?? null),
      name,
      account: await accountOf(vault, known, name),
    };
  } catch (error) {
    if (!(error instanceof OidcRefusal)) throw error;
    return { kind: 'refused', reason: error.reason, facts: error.facts };
  }
}

async function accountOf(
  { db }: SecretsContext,
  known: AdministratorRow | undefined,
  name: string | null,
): Promise<TestAccount> {
  if (known !== undefined) return 'existing';
  if (name === null) return 'no valid name';
  return (await findAdministrator(db.reader, name)) === undefined ? 'new' : 'name taken';
}

function idHashOf(state: string): Buffer {
  return sha256(`test ${state}`);
}
