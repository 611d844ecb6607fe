/**
 * A server whose vault has one object of every type, and all kinds of callers. Objects that a request destroys are
 * created again before the next. All outside addresses are unreachable, and all waits are short.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Scope } from '../../src/base/scope.ts';
import { Secret } from '../../src/base/secret.ts';
import { generatePrivateKey } from '../../src/crypto/key-pair.ts';
import { sessionTokenCreator } from '../../src/crypto/secrets/session-token.ts';
import { findAdministrator } from '../../src/db/tables/access/administrators.ts';
import { findCertificate } from '../../src/db/tables/certificates/certificates.ts';
import { findDeployTarget } from '../../src/db/tables/deploy-targets.ts';
import { hasEndpoints } from '../../src/db/tables/endpoints.ts';
import { updateAcmeAccount } from '../../src/db/tables/issuance/acme-accounts.ts';
import { findDnsProvider } from '../../src/db/tables/issuance/dns-providers.ts';
import { findIssuer } from '../../src/db/tables/issuance/issuers.ts';
import { changeRights } from '../../src/domain/access/administrators.ts';
import { deleteApiKey, revokeApiKey } from '../../src/domain/access/api-keys.ts';
import { Sessions } from '../../src/domain/access/sessions.ts';
import { localCli } from '../../src/domain/audit/audit.ts';
import { addDnsProvider } from '../../src/domain/dns-providers/dns-providers.ts';
import { certName } from '../../src/domain/input-strings.ts';
import { accountKeyOwner, sealFor } from '../../src/domain/sealed-secrets.ts';
import { outside } from '../harness/database/outside-database.ts';
import { endpointAt } from '../harness/endpoints/vault-endpoints.ts';
import { makeAccount, makeIssuer, putChallenge } from '../harness/http/acme-fixtures.ts';
import { type CheckedServer, checkedServer } from '../harness/http/checked.ts';
import { makeEnrollment } from '../harness/http/enrollments.ts';
import {
  importOne,
  makeBundle,
  makeCertificate,
  makeKey,
  makePending,
  renewCertificate,
} from '../harness/http/fixtures.ts';
import { makeAdministrator } from '../harness/http/sign-in-fixtures.ts';
import { addWebhookTarget, webhookSecret } from '../harness/targets/deployed.ts';
import { TestWorld } from '../harness/test-world.ts';

/** A clock that only the test moves; sleeps return at once. */
class HastyWorld extends TestWorld {
  override readonly sleep = async (ms: number, signal?: AbortSignal): Promise<void> => {
    await delay(Math.min(ms, 20), undefined, signal && { signal }).catch(() => {
      // Expected: the abort ends the wait.
    });
  };
}

/** Nothing listens there, so connections fail at once and nothing leaves the machine. */
const nowhere = '127.0.0.1:9';

const scopesOfKeys = {
  'a key that reads': ['certificates:read'],
  'a key for private keys': ['private_keys:read'],
  'a key that renews': ['renewals:trigger'],
} as const satisfies Record<string, readonly Scope[]>;

export const callerKinds = [
  ...['noRights', 'a stranger', 'garbage', 'a revoked key', 'an expired key', 'a deleted key'],
  ...Object.keys(scopesOfKeys),
  ...['a key for everything', 'an administrator', "an administrator's other site", 'a session that is over'],
] as readonly CallerKind[];

export type CallerKind =
  | keyof typeof scopesOfKeys
  | 'noRights'
  | 'a stranger'
  | 'garbage'
  | 'a revoked key'
  | 'an expired key'
  | 'a deleted key'
  | 'a key for everything'
  | 'an administrator'
  | "an administrator's other site"
  | 'a session that is over';

export type Caller = {
  readonly kind: CallerKind;
  readonly headers: Readonly<Record<string, string>>;
  /** The scopes of the caller's API key; undefined for other callers. */
  readonly scopes: readonly Scope[];
  /** Whether its allowlist contains only `www`. */
  readonly limited: boolean;
  readonly isAdministrator: boolean;
};

export type FuzzVault = {
  readonly server: CheckedServer;
  /** A caller of this kind with valid credentials. */
  readonly caller: (kind: CallerKind) => Promise<Caller>;
  /** Creates missing objects again. */
  readonly recreate: () => Promise<void>;
  /** A certificate with its chain and key as PEM, for imports. */
  readonly bundle: string;
  /** Secrets by name, which no response may contain, except that downloads may contain private keys. */
  readonly secrets: Map<string, string>;
};

export const password = 'an unusual sentence for a password';

/** The permanent certificates: one of the private CA with two versions, an imported one, and one not issued yet. */
export const certificates = { www: 'www', imported: 'imported', pending: 'pending' } as const;

export async function fuzzVault(t: TestContext): Promise<FuzzVault> {
  const server = await checkedServer(t, {
    world: new HastyWorld(),
    settings: {
      resolver: nowhere,
      proxies: { http_proxy: `http://${nowhere}`, https_proxy: `http://${nowhere}`, no_proxy: '127.0.0.1' },
    },
  });
  const { vault } = server;
  const sessions = new Sessions(vault);
  const secrets = new Map<string, string>();
  const keys = new Map<string, { readonly id: number; readonly raw: string; readonly rights: string }>();

  async function recreate(): Promise<void> {
    const { reader } = vault.db;
    const lacks = async (name: string) => (await findCertificate(reader, certName.parse(name))) === undefined;
    if (await lacks('www')) {
      await makeCertificate(vault, 'www');
      await renewCertificate(vault, 'www');
    }
    if (await lacks('imported')) await importOne(vault, 'imported', { chain: true });
    if (await lacks('pending')) await makePending(vault, 'pending');
    const alice = await findAdministrator(reader, 'alice');
    if (alice === undefined) await makeAdministrator(vault, 'alice', password);
    else await changeRights(vault, localCli, { name: 'alice', role: 'admin', reach: [], theLast: 'goes' });
    for (const [name, type, config] of [
      [
        'hook',
        'webhook',
        { url: `http://${nowhere}/`, username: 'u', password: secrets.get('the password of a DNS provider') },
      ],
      ['by-hand', 'manual', {}],
    ] as const) {
      if ((await findDnsProvider(reader, name)) !== undefined) continue;
      const secret = new Secret(Buffer.from(JSON.stringify(config)));
      await addDnsProvider(vault, localCli, { name, type, zones: ['example.test'] as never }, secret);
    }
    if ((await findIssuer(reader, 'an-acme-ca')) === undefined) {
      const id = await makeAccount(vault);
      const key = await generatePrivateKey('ec256');
      await vault.db.write(async (writer) =>
        updateAcmeAccount(writer, id, {
          sealed_private_key: await sealFor(vault, writer, accountKeyOwner(id), key),
        }),
      );
      await makeIssuer(vault, 'an-acme-ca', id);
    }
    const live = "select id from enrollments where name = 'rack' and revoked_at is null";
    if (outside(server.dataDir, (db) => db.prepare(live).get()) === undefined) {
      const { id, token } = await makeEnrollment(vault, { uses: 3 });
      secrets.set(`the token of enrollment ${id}`, token.split('.')[1] ?? '');
    }
    if (!(await hasEndpoints(reader, 1))) await endpointAt(vault, 9, { certificate: 'www' });
    if ((await findDeployTarget(reader, 'a-target')) === undefined) {
      await addWebhookTarget(vault, `http://${nowhere}/`, { name: 'a-target', certificates: ['www'] });
      secrets.set('the key of a deploy target', webhookSecret);
    }
    learnSecrets();
  }

  function learnSecrets(): void {
    for (const [kind, { raw }] of keys) secrets.set(`the secret of ${kind}`, raw.split('.')[1] ?? '');
  }

  async function keyOf(
    kind: CallerKind,
    scopes: readonly Scope[],
    names: readonly string[],
  ): Promise<string> {
    const known = keys.get(kind);
    const rights = known && rightsOf(known.id);
    if (known !== undefined && rights === known.rights) return known.raw;
    // A request of the administrator may have changed it, such as its role.
    if (known !== undefined && rights !== undefined) await revokeApiKey(vault, localCli, known.id);
    const made = await makeKey(vault, { name: kind, scopes, certificates: names });
    keys.set(kind, { ...made, rights: rightsOf(made.id) ?? '' });
    learnSecrets();
    return made.raw;
  }

  /** A text that differs after each change of an API key; undefined for one that is revoked or deleted. */
  function rightsOf(id: number): string | undefined {
    // The tag covers all that is stored about a key but its usage.
    const sql = 'select tag from api_keys where id = ? and revoked_at is null';
    const row = outside(server.dataDir, (db) => db.prepare(sql).get(id)) as
      | { readonly tag: Buffer }
      | undefined;
    return row && Buffer.from(row.tag).toString('base64');
  }

  let token: string | undefined;
  async function session(): Promise<string> {
    if (token !== undefined && (await sessions.find(token)) !== undefined) return token;
    await recreate();
    const createToken = await sessionTokenCreator();
    const begun = await vault.db.write(async (writer) => {
      const row = await findAdministrator(writer, 'alice');
      assert(row);
      return sessions.begin(writer, row, { actor: localCli, userAgent: 'a browser' }, createToken);
    });
    token = begun.token.expose();
    secrets.set(`a session's token ${begun.identity.session.id}`, token);
    return token;
  }

  const bearer = (raw: string) => ({ Authorization: `Bearer ${raw}` });
  const page = (value: string, site: string) => ({
    Cookie: `vault_session=${value}`,
    'Sec-Fetch-Site': site,
  });
  const limited = [certificates.www];
  const spent = await spentCredentials(server, sessions);
  const noRights = { scopes: [], limited: true, isAdministrator: false } as const;

  async function caller(kind: CallerKind): Promise<Caller> {
    switch (kind) {
      case 'noRights':
        return { kind, ...noRights, headers: {} };
      case 'a stranger':
        return { kind, ...noRights, headers: bearer(`vk_${'a'.repeat(12)}.${'b'.repeat(43)}`) };
      case 'garbage':
        return {
          kind,
          ...noRights,
          headers: { Authorization: 'Basic Og==, Bearer', Cookie: 'vault_session=x.y.z; vault_session=' },
        };
      case 'a revoked key':
      case 'an expired key':
      case 'a deleted key':
        return { kind, ...noRights, headers: bearer(spent[kind]) };
      case 'a session that is over':
        return { kind, ...noRights, headers: page(spent[kind], 'same-origin') };
      case 'a key for everything': {
        const scopes: Scope[] = ['certificates:read', 'private_keys:read', 'renewals:trigger'];
        return {
          kind,
          scopes,
          limited: false,
          isAdministrator: false,
          headers: bearer(await keyOf(kind, scopes, ['*'])),
        };
      }
      case 'an administrator':
        return {
          kind,
          scopes: [],
          limited: false,
          isAdministrator: true,
          headers: page(await session(), 'same-origin'),
        };
      case "an administrator's other site":
        return {
          kind,
          scopes: [],
          limited: false,
          isAdministrator: true,
          headers: page(await session(), 'cross-site'),
        };
      default: {
        const scopes = scopesOfKeys[kind];
        return {
          kind,
          scopes,
          limited: true,
          isAdministrator: false,
          headers: bearer(await keyOf(kind, scopes, limited)),
        };
      }
    }
  }

  secrets.set('the password of a DNS provider', 'p-'.concat('dns'.repeat(8)));
  secrets.set("an administrator's password", password);
  await putChallenge(vault, {
    type: 'http-01',
    identifier: 'a.example.test',
    token: 'token',
    key_authorization: 'token.x',
  });
  const bundle = await makeBundle(vault);
  // The second line, because the first is the same for all keys of a type.
  secrets.set('an imported key', bundle.split('BEGIN PRIVATE KEY-----\n')[1]?.split('\n')[1] ?? 'no key');
  await recreate();
  return { server, caller, recreate, secrets, bundle };
}

/** Credentials that are no longer valid. */
async function spentCredentials({ vault, world }: CheckedServer, sessions: Sessions) {
  await makeCertificate(vault, 'spare');
  await makeAdministrator(vault, 'bob', password);
  const [revoked, expired, deleted] = [
    await makeKey(vault, { name: 'revoked' }),
    await makeKey(vault, { name: 'expired', expires_at: new Date(world.now() + 1000).toISOString() }),
    await makeKey(vault, { name: 'deleted' }),
  ];
  for (const { id } of [revoked, deleted]) await revokeApiKey(vault, localCli, id);
  await deleteApiKey(vault, localCli, deleted.id);
  world.advance(1000);
  const createToken = await sessionTokenCreator();
  const { token, identity } = await vault.db.write(async (writer) => {
    const row = await findAdministrator(writer, 'bob');
    assert(row);
    return sessions.begin(writer, row, { actor: localCli, userAgent: undefined }, createToken);
  });
  await sessions.end(localCli, identity, identity.session.id);
  return {
    'a revoked key': revoked.raw,
    'an expired key': expired.raw,
    'a deleted key': deleted.raw,
    'a session that is over': token.expose(),
  };
}
