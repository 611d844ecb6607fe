/** Issuers as people add, change and remove them: what is asked of the CA first, and what is refused. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Secret } from '../../../src/base/secret.ts';
import { findAcmeIssuer } from '../../../src/db/tables/issuance/issuers.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { changeCertificate } from '../../../src/domain/certificates/certificate-update.ts';
import { deleteCertificate } from '../../../src/domain/certificates/certificates.ts';
import { createIssuerInput, parseInput, updateCertificateInput } from '../../../src/domain/inputs.ts';
import { addIssuer, removeIssuer, updateIssuer } from '../../../src/domain/issuers/issuer-changes.ts';
import { type IssuerSecrets, requireIssuer } from '../../../src/domain/issuers/issuers.ts';
import { type ScriptedAcmeOptions, scriptedAcme } from '../../harness/ca/scripted-acme.ts';
import { engine } from '../../harness/issuance/engine-vault.ts';
import { acmeIssuer, forever, makeCertificate, rowOf } from '../../harness/issuance/renewal-fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

const accepted: IssuerSecrets = { acceptsTerms: true };
const key = new Secret(Buffer.from('a key of thirty-two bytes length'));

async function prepared(t: TestContext, options: ScriptedAcmeOptions = {}) {
  const { vault } = await testVault(t);
  const ca = await scriptedAcme(t, options);
  const add = (others: object = {}, secrets = accepted) => {
    const input = parseInput(createIssuerInput, { name: 'ca', directory_url: ca.directoryUrl, ...others });
    return addIssuer(vault, localCli, input, secrets, forever);
  };
  const update = (
    changes: Parameters<typeof updateIssuer>[3],
    secrets: IssuerSecrets = { acceptsTerms: false },
  ) => updateIssuer(vault, localCli, 'ca', changes, secrets, forever);
  const stored = async () => {
    const { id } = await requireIssuer(vault.db.reader, 'ca');
    return findAcmeIssuer(vault.db.reader, id);
  };
  const names = async () =>
    (await vault.db.reader.selectFrom('issuers').select('name').orderBy('id').execute()).map(
      ({ name }) => name,
    );
  return { vault, ca, add, update, stored, names };
}

test('an issuer is added with its settings and a sealed EAB key after fetching the directory', async (t) => {
  const profiles = { shortlived: 'six days' };
  const { vault, ca, add, stored } = await prepared(t, {
    ...{
      profiles,
      termsOfService: 'https://ca.test/terms',
      externalAccounts: { me: Buffer.alloc(32) },
      tls: true,
    },
  });
  const wishes = {
    email: 'ops@example.test',
    profile: 'shortlived',
    preferred_chain: 'Test Root',
    eab_kid: 'me',
  };
  await add(wishes, { acceptsTerms: true, eabKey: key, ca: ca.ca });
  assert.deepEqual(ca.kinds(), ['directory']);
  const row = await stored();
  assert.deepEqual(
    { ...row, sealed_eab_key: row?.sealed_eab_key?.includes(key.expose()) },
    {
      ...{ issuer_id: 2, directory_url: ca.directoryUrl, ...wishes, ca_pem: ca.ca, sealed_eab_key: false },
      ...{
        terms_of_service: 'https://ca.test/terms',
        account_id: null,
        paused_until: null,
        pause_reason: null,
      },
    },
  );
  const event = await vault.db.reader
    .selectFrom('audit_events')
    .selectAll()
    .where('resource', '=', 'issuer:ca')
    .executeTakeFirstOrThrow();
  assert.deepEqual(JSON.parse(event.detail), {
    directory_url: ca.directoryUrl,
    terms_of_service: 'https://ca.test/terms',
  });
});

test('an issuer whose terms were not accepted is rejected with the terms URL, and not added', async (t) => {
  const { add, names } = await prepared(t, { termsOfService: 'https://ca.test/terms' });
  await assert.rejects(add({}, { acceptsTerms: false }), {
    message: 'the CA requires you to accept its terms of service: https://ca.test/terms',
    hint: /--accept-terms/,
  });
  assert.deepEqual(await names(), ['local-ca']);
});

const refusals: Readonly<
  Record<string, readonly [ScriptedAcmeOptions, object, Partial<IssuerSecrets>, RegExp]>
> = {
  'a CA that requires EAB, without an EAB key,': [
    { externalAccounts: {} },
    {},
    {},
    /requires external account binding/,
  ],
  'an EAB key id without a key': [{}, { eab_kid: 'me' }, {}, /needs both a key id and an HMAC key/],
  'an EAB key without a key id': [{}, {}, { eabKey: key }, /needs both a key id and an HMAC key/],
  'a profile that the CA does not offer': [{ profiles: { a: '' } }, { profile: 'b' }, {}, /no profile "b"/],
  'the profile "constructor"': [{ profiles: { a: '' } }, { profile: 'constructor' }, {}, /no profile/],
};
for (const [what, [options, input, secrets, message]] of Object.entries(refusals)) {
  test(`${what} is rejected, and no issuer is added`, async (t) => {
    const { add, names } = await prepared(t, options);
    await assert.rejects(add(input, { ...accepted, ...secrets }), { name: 'OperatorError', message });
    assert.deepEqual(await names(), ['local-ca']);
  });
}

test('an untrusted TLS certificate or a directory with status 404 is rejected, and no issuer is added', async (t) => {
  const { ca, add, names } = await prepared(t, { tls: true });
  await assert.rejects(add(), { name: 'AcmeError', kind: 'network' });
  ca.override('directory', { status: 404, body: 'no' });
  await assert.rejects(add({}, { ...accepted, ca: ca.ca }), { name: 'AcmeError' });
  assert.deepEqual(await names(), ['local-ca']);
});

test('a duplicate issuer name is rejected before a request to the CA', async (t) => {
  const { ca, add } = await prepared(t);
  await add();
  await assert.rejects(add(), /an issuer named ca already exists/);
  await assert.rejects(add({ name: 'local-ca' }), /an issuer named local-ca already exists/);
  assert.deepEqual(ca.kinds(), ['directory']);
});

test('an update changes only the given fields; local-ca and unknown issuers are rejected', async (t) => {
  const { vault, add, update, stored } = await prepared(t, { termsOfService: 'https://ca.test/terms' });
  await add({ email: 'old@example.test', preferred_chain: 'Test Root' });
  const before = await stored();
  await update({ email: 'new@example.test' });
  assert.deepEqual(await stored(), { ...before, email: 'new@example.test' });
  await assert.rejects(updateIssuer(vault, localCli, 'local-ca', {}, accepted, forever), /is not an ACME CA/);
  await assert.rejects(updateIssuer(vault, localCli, 'cb', {}, accepted, forever), {
    code: 'invalid_request',
  });
});

test('a new directory URL requires accepting its terms, and clears the account and the pause', async (t) => {
  const { vault, ca, add, update, stored } = await prepared(t, { termsOfService: 'https://ca.test/terms' });
  await add();
  await vault.db.write(async (writer) => {
    const { id } = await writer
      .insertInto('acme_accounts')
      .values({
        ...{ issuer: 'ca', directory_url: ca.directoryUrl, status: 'valid', created_at: 0 },
        sealed_private_key: Buffer.of(1),
      })
      .returning('id')
      .executeTakeFirstOrThrow();
    const changes = { account_id: id, paused_until: 9e12, pause_reason: 'slow down' };
    await writer.updateTable('acme_issuers').set(changes).execute();
  });
  const other = await scriptedAcme(t, { termsOfService: 'https://other.test/terms' });
  const changes = { directory_url: other.directoryUrl };
  await assert.rejects(
    update(changes),
    /the CA requires you to accept its terms of service: https:\/\/other\.test\/terms/,
  );
  assert.partialDeepStrictEqual(await stored(), { account_id: 1, paused_until: 9e12 });
  await update(changes, accepted);
  assert.partialDeepStrictEqual(await stored(), {
    ...{ terms_of_service: 'https://other.test/terms', account_id: null },
    ...{ paused_until: null, pause_reason: null },
  });
});

test('a new directory URL drops the stored CA certificate', async (t) => {
  const { ca, add, update, stored } = await prepared(t, { tls: true });
  await add({}, { ...accepted, ca: ca.ca });
  const other = await scriptedAcme(t);
  await update({ directory_url: other.directoryUrl }, accepted);
  assert.deepEqual([(await stored())?.directory_url, (await stored())?.ca_pem], [other.directoryUrl, null]);
});

test('a new EAB key id creates a new ACME account; another email keeps the account', async (t) => {
  const customers = { one: key.expose(), two: key.expose() };
  const opened = await engine(t, { certificate: null });
  const { vault, world } = opened;
  const ca = await scriptedAcme(t, { externalAccounts: customers, now: world.now });
  const input = parseInput(createIssuerInput, {
    name: 'strict',
    directory_url: ca.directoryUrl,
    eab_kid: 'one',
  });
  await addIssuer(vault, localCli, input, { ...accepted, eabKey: key }, forever);
  await makeCertificate(vault, 'www', { issuer: 'strict' });
  assert.equal((await opened.work()).status, 'succeeded');
  const accountOf = async () =>
    (await findAcmeIssuer(vault.db.reader, (await requireIssuer(vault.db.reader, 'strict')).id))?.account_id;
  const first = await accountOf();
  await updateIssuer(vault, localCli, 'strict', { email: 'ops@example.test' }, accepted, forever);
  assert.equal(await accountOf(), first);
  const another = { ...accepted, eabKey: key };
  await updateIssuer(vault, localCli, 'strict', { eab_kid: 'two' }, another, forever);
  assert.equal(await accountOf(), null);
  await changeCertificate(
    ...([
      vault,
      localCli,
      'www',
      parseInput(updateCertificateInput, { domains: ['new.example.test'] }),
    ] as const),
  );
  assert.equal((await opened.work()).status, 'succeeded');
  assert.deepEqual(
    [...ca.state.accounts.values()].map(({ externalAccount }) => externalAccount),
    ['one', 'two'],
  );
});

test('an issuer is removed only when no certificate uses it as issuer or fallback', async (t) => {
  const { vault, ca, add, names } = await prepared(t);
  await add();
  await acmeIssuer(vault, 'cb', ca.directoryUrl);
  await makeCertificate(vault, 'one', { issuer: 'ca', fallback_issuer: 'cb' });
  for (const [name, hint] of [
    ['ca', /update --issuer|delete them/],
    ['cb', /update --issuer|delete them/],
  ] as const) {
    await assert.rejects(removeIssuer(vault, localCli, name), {
      message: `certificates use the issuer ${name}: one`,
      hint,
    });
  }
  await assert.rejects(
    removeIssuer(vault, localCli, 'local-ca'),
    /the built-in private CA cannot be removed/,
  );
  await assert.rejects(removeIssuer(vault, localCli, 'nobody'), { code: 'invalid_request' });
  assert.equal((await rowOf(vault, 'one')).issuer_id !== null, true);
  await deleteCertificate(vault, localCli, 'one', { force: true });
  await removeIssuer(vault, localCli, 'ca');
  assert.deepEqual(await names(), ['local-ca', 'cb']);
});
