/** What signing in does behind the answer: hashes grow, nobody slips in between, and names cost the same. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Secret } from '../../../src/base/secret.ts';
import { deleteAdministrator } from '../../../src/domain/access/administrators.ts';
import type { Origin } from '../../../src/domain/access/password-queue.ts';
import { Passwords } from '../../../src/domain/access/passwords.ts';
import { Sessions } from '../../../src/domain/access/sessions.ts';
import { SignIn } from '../../../src/domain/access/sign-in.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { outside } from '../../harness/database/outside-database.ts';
import { eventsOf } from '../../harness/http/fixtures.ts';
import { cheapHash, goodPassword, makeAdministrator } from '../../harness/http/sign-in-fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

const visitor = { actor: { name: 'anonymous', ip: '192.0.2.1' }, userAgent: undefined };
const credentials = { name: 'alice', password: new Secret(goodPassword) };
const signInOf = (vault: Vault, cost = cheapHash, passwords = new Passwords(vault.world, cost)) =>
  new SignIn(vault, passwords, new Sessions(vault), { howToRecord: () => 'in full' });

const hashIn = (dataDir: string) =>
  String(outside(dataDir, (db) => db.prepare('select password_hash from administrators').pluck().get()));

test('only a successful sign-in rehashes the password, and only when the hash cost has increased', async (t) => {
  const { vault, dataDir } = await testVault(t);
  await makeAdministrator(vault, 'alice');
  const first = hashIn(dataDir);
  await signInOf(vault).signIn(credentials, visitor);
  assert.equal(hashIn(dataDir), first);
  const grown = { ...cheapHash, memory: 16 } as unknown as typeof cheapHash;
  const wrong = { ...credentials, password: new Secret('wrong') };
  await assert.rejects(signInOf(vault, grown).signIn(wrong, visitor), { code: 'unauthenticated' });
  assert.equal(hashIn(dataDir), first);
  await signInOf(vault, grown).signIn(credentials, visitor);
  assert.match(hashIn(dataDir), /m=16,t=1/);
  await signInOf(vault, grown).signIn(credentials, visitor);
  await signInOf(vault).signIn(credentials, visitor);
  assert.match(hashIn(dataDir), /m=16,t=1/, 'a cost that shrank leaves the hash as it is');
});

/** Passwords that let something happen between the check and what follows. */
class Interrupted extends Passwords {
  readonly #meanwhile: () => Promise<unknown>;
  readonly compared: (string | undefined)[] = [];

  constructor(vault: Vault, meanwhile: () => Promise<unknown>) {
    super(vault.world, cheapHash);
    this.#meanwhile = meanwhile;
  }

  override async matches(
    password: Secret<string>,
    hash: string | undefined,
    origin: Origin,
  ): Promise<boolean> {
    this.compared.push(hash);
    const result = await super.matches(password, hash, origin);
    await this.#meanwhile();
    return result;
  }
}

test('an administrator deleted during the password comparison gets no session', async (t) => {
  const { vault, dataDir } = await testVault(t);
  await makeAdministrator(vault, 'alice');
  const passwords = new Interrupted(vault, () => deleteAdministrator(vault, localCli, 'alice', 'goes'));
  await assert.rejects(signInOf(vault, cheapHash, passwords).signIn(credentials, visitor), {
    code: 'unauthenticated',
  });
  assert.deepEqual(eventsOf(dataDir, 'session.create'), []);
});

test('sign-in fails if the password hash changes during the comparison', async (t) => {
  const { vault, dataDir } = await testVault(t);
  await makeAdministrator(vault, 'alice');
  const passwords = new Interrupted(vault, async () =>
    outside(dataDir, (db) => db.exec("update administrators set password_hash = password_hash || 'x'")),
  );
  await assert.rejects(signInOf(vault, cheapHash, passwords).signIn(credentials, visitor), {
    code: 'unauthenticated',
  });
});

test('an unknown name costs one comparison, as a known one does', async (t) => {
  const { vault } = await testVault(t);
  await makeAdministrator(vault, 'alice');
  const passwords = new Interrupted(vault, async () => undefined);
  const signIn = signInOf(vault, cheapHash, passwords);
  for (const name of ['alice', 'nobody']) {
    const wrong = { name, password: new Secret('wrong') };
    await assert.rejects(signIn.signIn(wrong, visitor), { code: 'unauthenticated' });
  }
  assert.deepEqual(
    passwords.compared.map((hash) => hash === undefined),
    [false, true],
  );
});

test('internal errors during sign-in do not count as failed attempts', async (t) => {
  const { vault } = await testVault(t);
  await makeAdministrator(vault, 'alice');
  let fails = true;
  const passwords = new Interrupted(vault, async () => {
    if (fails) throw new Error('no memory left');
  });
  const signIn = signInOf(vault, cheapHash, passwords);
  for (let n = 0; n < 10; n += 1) await assert.rejects(signIn.signIn(credentials, visitor), /no memory left/);
  fails = false;
  await signIn.signIn(credentials, visitor);
});
