/**
 * What is exported and applied to another vault makes it the same, whatever the vault holds; what was applied once
 * changes nothing; and from whatever there was, the same document leads to the same vault.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { readDesiredDocument } from '../../../src/cli/commands/desired-state/desired-document.ts';
import { resolveReferences } from '../../../src/cli/commands/desired-state/desired-references.ts';
import { exportText } from '../../../src/cli/commands/desired-state/export.ts';
import { createApiKey } from '../../../src/domain/access/api-keys.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { createCertificate, deleteCertificate } from '../../../src/domain/certificates/certificates.ts';
import { applyChanges } from '../../../src/domain/desired-state/state-application.ts';
import { stateIssues } from '../../../src/domain/desired-state/state-issues.ts';
import { type PlanOptions, planChanges } from '../../../src/domain/desired-state/state-plan.ts';
import { checkChanges } from '../../../src/domain/desired-state/state-preparation.ts';
import { readVaultState } from '../../../src/domain/desired-state/vault-state.ts';
import { createApiKeyInput, createCertificateInput, parseInput } from '../../../src/domain/inputs.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { fuzzRuns } from '../../harness/fuzz-runs.ts';
import { forever } from '../../harness/issuance/renewal-fixtures.ts';
import { nameKeyAlike } from '../../harness/key-names.ts';
import { testVault } from '../../harness/test-vault.ts';
import { TestWorld } from '../../harness/test-world.ts';

const prune: PlanOptions = { others: 'go', protectedCertificates: [] };

const environment = { SECRET: 'api_token: made-up-token-of-this-test-0123456789' };

async function plan(vault: Vault, text: string) {
  const { state: desired } = await readDesiredDocument(text, 'test.yaml');
  const around = { environment, world: vault.world, folder: '.' };
  const { wanted, issues } = await resolveReferences(desired, around);
  const state = await readVaultState(vault, vault.db.reader);
  const all = [...issues, ...stateIssues(state, wanted, prune, vault.world.now())];
  assert.deepEqual(all, [], text);
  return { wanted, changes: await planChanges(state, wanted, prune) };
}

/** Applies the document with all that it does not name removed; the number of changes. */
async function apply(vault: Vault, text: string): Promise<number> {
  const { wanted, changes } = await plan(vault, text);
  const checked = await checkChanges(vault, wanted, changes, forever);
  await applyChanges(vault, localCli, wanted, checked, { signal: forever });
  return changes.length;
}

const exported = async (vault: Vault) => exportText(await readVaultState(vault, vault.db.reader));

const subset = (values: readonly string[]) => fc.subarray([...values], { minLength: 1 });

const certificateNames = ['web', 'mail', '*.example.com', 'a_b', '1', 'null', '__proto__', 'constructor'];

const certificate = fc.record(
  {
    domains: subset(['a.example.test', 'b.example.test', '*.example.test', '192.0.2.1']),
    key_type: fc.constantFrom('ec256', 'ec384'),
    lifetime: fc.constantFrom('61m', '90m', '2h', '30d', '90d', '1y'),
    reuse_key: fc.boolean(),
    auto_renew: fc.boolean(),
    disabled: fc.boolean(),
  },
  { requiredKeys: ['domains'] },
);

const provider = fc.oneof(
  fc.record({ type: fc.constant('manual'), zones: subset(['a.test', 'b.test']) }),
  fc.record({
    type: fc.constant('cloudflare'),
    zones: subset(['c.test', 'd.test']),
    secret: fc.constant({ env: 'SECRET' }),
  }),
);

const key = (names: readonly string[]) =>
  fc.record(
    {
      scopes: subset(['certificates:read', 'private_keys:read', 'renewals:trigger']),
      certificates: fc.oneof(fc.constant(['*']), fc.constant([]), fc.subarray([...names])),
      allowed_networks: fc.subarray(['192.0.2.0/24', '2001:db8::/32', '198.51.100.7/32']),
      expires_at: fc.constantFrom('2030-01-31T00:00:00Z', '2031-05-05T05:05:05+02:00'),
    },
    { requiredKeys: ['scopes', 'certificates'] },
  );

const named = <T>(names: readonly string[], value: fc.Arbitrary<T>) =>
  fc.dictionary(fc.constantFrom(...names), value, { maxKeys: 4 });

const document = named(certificateNames, certificate).chain((certificates) =>
  fc
    .record({
      dns_providers: named(['one', 'two', '3'], provider),
      api_keys: named(
        ['www', 'a b', 'ключ', '"quoted": #', '7', '<<', '__proto__', 'x (id 1)'],
        key(Object.keys(certificates).sort()),
      ),
    })
    // JSON is YAML, too.
    .map((rest) => JSON.stringify({ version: 1, certificates, ...rest })),
);

const withSecrets = (text: string) => text.replaceAll('secret: keep', 'secret: {env: SECRET}');

/** A clock that stands still, and pauses that are over at the next turn. */
class RestlessWorld extends TestWorld {
  override readonly sleep = async (): Promise<void> => {
    await turn();
  };
}

async function newVault(): Promise<{ vault: Vault; end: () => Promise<void> }> {
  const ends: (() => unknown)[] = [];
  const after = ((work: () => unknown) => ends.push(work)) as unknown as TestContext['after'];
  const { vault } = await testVault({ after });
  return {
    vault,
    end: async () => {
      for (const work of ends.reverse()) await work();
    },
  };
}

test('applying the export of any vault to a new one makes them equal, and applying it again changes nothing', async () => {
  await fc.assert(
    fc.asyncProperty(document, document, async (before, wanted) => {
      const one = await newVault();
      const other = await newVault();
      try {
        await apply(one.vault, before);
        await apply(one.vault, wanted);
        assert.equal(await apply(one.vault, wanted), 0);
        const text = await exported(one.vault);
        assert.equal(await apply(one.vault, text), 0);
        await apply(other.vault, withSecrets(text));
        assert.equal(await exported(other.vault), text);
      } finally {
        await one.end();
        await other.end();
      }
    }),
    fuzzRuns(6),
  );
});

test('keys with duplicate names or empty allowlists are restored from an export', async (t) => {
  const { vault, dataDir } = await testVault(t);
  const input = parseInput(createCertificateInput, { name: 'gone', domains: ['gone.test'] });
  await createCertificate(vault, localCli, input);
  const long = 'n'.repeat(128);
  for (const [index, name] of ['www', 'www', 'www (id 1)', long, long].entries()) {
    const wanted = { name: `key ${index}`, scopes: ['certificates:read'], certificates: ['gone'] };
    const { id } = await createApiKey(vault, localCli, parseInput(createApiKeyInput, wanted));
    await nameKeyAlike(dataDir, id, name);
  }
  await deleteCertificate(vault, localCli, 'gone', { force: true });
  const text = await exported(vault);
  const { state: document } = await readDesiredDocument(text, 'test.yaml');
  const names = [
    'www (id 1)+',
    'www (id 2)',
    'www (id 1)',
    `${'n'.repeat(121)} (id 4)`,
    `${'n'.repeat(121)} (id 5)`,
  ];
  assert.deepEqual([...document.api_keys.keys()].sort(), names.sort());
  for (const key of document.api_keys.values()) assert.deepEqual(key.certificates, []);
  // In the vault that it came from, it gives the four that shared a name the names that tell them apart.
  assert.equal(await apply(vault, text), 4);
  assert.equal(await apply(vault, text), 0);
  assert.equal(await exported(vault), text);
  const { vault: empty } = await testVault(t);
  await apply(empty, text);
  assert.equal(await exported(empty), text);
});

const namesIn = async ({ db }: Vault) =>
  (await db.reader.selectFrom('certificates').select('name').orderBy('id').execute()).map(({ name }) => name);

test('a change to the vault between plan and transaction makes apply fail without any of its changes', async (t) => {
  const { vault } = await testVault(t);
  const text = 'version: 1\ncertificates: {web: {domains: [a.test]}, mail: {domains: [b.test]}}\n';
  const { wanted, changes } = await plan(vault, text);
  const input = parseInput(createCertificateInput, { name: 'mail', domains: ['c.test'] });
  await createCertificate(vault, localCli, input);
  await assert.rejects(
    applyChanges(vault, localCli, wanted, changes, { signal: forever }),
    /someone else changed the vault during this run/,
  );
  assert.deepEqual(await namesIn(vault), ['mail']);
});

/** A document of so many certificates that nobody issues yet, called `w0`, `w1` … */
const manyDisabled = (count: number) =>
  `version: 1\ncertificates:\n${Array.from({ length: count }, (_, n) => `  w${n}: {domains: [w${n}.test], disabled: true}\n`).join('')}`;

test('a long plan is applied in transactions of at most 50 changes, and if one fails the next run applies the rest', async (t) => {
  const { vault } = await testVault(t, { world: new RestlessWorld() });
  const text = manyDisabled(230);
  const { wanted, changes } = await plan(vault, text);
  const steps: number[] = [];
  const stopAt = 'w120';
  await assert.rejects(
    applyChanges(vault, localCli, wanted, changes, {
      signal: forever,
      afterStep: async (step) => {
        steps.push(step.length);
        if (steps.length > 1) return;
        const input = parseInput(createCertificateInput, { name: stopAt, domains: ['other.test'] });
        await createCertificate(vault, localCli, input);
      },
    }),
    ({ message, hint }: { message: string; hint: string }) => {
      const done = steps.reduce((sum, size) => sum + size, 0);
      assert.ok(steps.length > 1 && steps.every((size) => size <= 50), String(steps));
      assert.equal(
        message,
        `failed after ${done} of 230 changes: someone else changed the vault during this run`,
      );
      assert.match(hint, /Run the command again to make the others/);
      return true;
    },
  );
  const made = (await namesIn(vault)).filter((name) => name !== stopAt);
  assert.deepEqual(
    made,
    changes.slice(0, made.length).map(({ name }) => name),
  );
  assert.equal(await apply(vault, text), 230 - made.length);
  assert.equal(await apply(vault, text), 0);
});

test('apply stopped between transactions reports how many changes were applied, and resumes', async (t) => {
  const { vault } = await testVault(t, { world: new RestlessWorld() });
  const text = manyDisabled(120);
  const { wanted, changes } = await plan(vault, text);
  const stop = new AbortController();
  const afterStep = async () => stop.abort('SIGINT');
  await assert.rejects(
    applyChanges(vault, localCli, wanted, changes, { signal: stop.signal, afterStep }),
    /^OperatorError: stopped after 50 of 120 changes$/,
  );
  assert.equal((await namesIn(vault)).length, 50);
  assert.equal(await apply(vault, text), 70);
});

test('a disabled certificate is created without a version, and its renewal is scheduled once it is enabled', async (t) => {
  const { vault } = await testVault(t);
  const text = (disabled: boolean) =>
    `version: 1\ncertificates: {web: {domains: [a.test], disabled: ${disabled}}}\n`;
  await apply(vault, text(true));
  const row = () => vault.db.reader.selectFrom('certificates').selectAll().executeTakeFirstOrThrow();
  const made = await row();
  assert.deepEqual([made.current_version, made.next_renewal_at], [null, null]);
  await apply(vault, text(false));
  assert.notEqual((await row()).next_renewal_at, null);
});
