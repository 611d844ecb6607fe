/** `vault issuer add --type local-ca` and what follows: constraints, defaults, and the loss of a CA's keys. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commandLine, commandWords } from '../../../harness/processes/command-line.ts';

type Issuer = {
  name: string;
  private_ca: { permit_domains: string[]; permit_ips: string[]; lifetime: string } | null;
};

const add = commandWords(
  'issuer add --name staging-ca --type local-ca --permit-domain staging.example --permit-domain internal --permit-ip 10.0.0.0/8 --lifetime 30d --key-type rsa2048 --common-name Staging --path-length 2',
);

test('a private CA is added, shown, changed and issues within its constraints', async (t) => {
  const { data, run, done, refused, json } = commandLine(t);
  assert.deepEqual(await run(...add), {
    code: 0,
    stdout: '',
    stderr:
      `Created a new vault in ${data}.\n` +
      'Added private CA staging-ca. Its root is at /client/cas/staging-ca/ca.crt of the running vault.\n' +
      '  Try: vault certificate create --name NAME --domain DOMAIN --issuer staging-ca\n',
  });
  await refused(add, /^vault: an issuer named staging-ca already exists\n/);
  assert.match(
    (await done('issuer', 'list')).stdout,
    /^staging-ca +local-ca +- +staging\.example, internal, 10\.0\.0\.0\/8 /m,
  );
  await done(
    ...commandWords(
      'certificate create --name web --domain db.internal --domain 10.1.2.3 --issuer staging-ca',
    ),
  );
  await refused(
    commandWords('certificate create --name shop --domain shop.example.com --issuer staging-ca'),
    'vault: issuer staging-ca does not permit shop.example.com; it permits staging.example and names below it, internal and names below it, 10.0.0.0/8\n',
  );
  const listed = await json<{ name: string; key_type: string }[]>('certificate', 'list');
  assert.deepEqual(
    listed.map(({ name, key_type }) => [name, key_type]),
    [['web', 'rsa2048']],
  );
  await refused(
    commandWords('issuer update --name staging-ca --permit-domain staging.example --permit-ip none'),
    /^vault: certificates that staging-ca renews have other names: web \(db\.internal\)\n/,
  );
  await refused(
    commandWords('issuer update --name staging-ca --permit-domain none --permit-ip none'),
    /^vault: the root of staging-ca permits only internal and names below it/,
  );
  await done(
    ...commandWords('issuer update --name staging-ca --permit-domain staging.example --lifetime 7d --force'),
  );
  const changed = (await json<Issuer[]>('issuer', 'list')).find(
    ({ name }) => name === 'staging-ca',
  )?.private_ca;
  assert.deepEqual(
    [changed?.permit_domains, changed?.permit_ips, changed?.lifetime],
    [['staging.example'], ['10.0.0.0/8'], '7d'],
  );
});

test('constraints of local-ca can be set and removed', async (t) => {
  const { done, refused } = commandLine(t);
  await done('certificate', 'create', '--name', 'web', '--domain', 'web.internal');
  const { stderr } = await done(...commandWords('issuer update --name local-ca --permit-domain internal'));
  assert.equal(stderr, 'Updated issuer local-ca. Certificates that it issued stay as they are.\n');
  const create = commandWords('certificate create --name out --domain www.example.com');
  await refused(create, /does not permit www\.example\.com; it permits internal and names below it/);
  await done(...commandWords('issuer update --name local-ca --permit-domain none'));
  await done(...create);
});

test('a private CA is removed only with --yes, and never while certificates use it', async (t) => {
  const { done, refused, json } = commandLine(t);
  await done(...add);
  await done(...commandWords('certificate create --name web --domain web.internal --issuer staging-ca'));
  const remove = commandWords('issuer remove --name staging-ca');
  await refused(
    remove,
    'vault: refusing without confirmation: Remove issuer staging-ca, its keys and its revocation lists?\n  Add --yes to confirm. Nothing was changed.\n',
  );
  await refused([...remove, '--yes'], /^vault: certificates use the issuer staging-ca: web\n/);
  await done(...commandWords('certificate update --name web --issuer local-ca'));
  await done(...remove, '--yes');
  await refused(commandWords('issuer remove --name local-ca --yes'), /built-in private CA cannot be removed/);
  assert.deepEqual(
    (await json<Issuer[]>('issuer', 'list')).map(({ name }) => name),
    ['local-ca'],
  );
});

test('options of the other issuer type and invalid values are rejected', async (t) => {
  const { refused } = commandLine(t);
  const cases: [string, RegExp, (1 | 2)?][] = [
    ['issuer add --name a --type ca', /unknown type "ca"/, 2],
    ['issuer add --name a --type local-ca --email a@b.test', /--email is an option of ACME CAs/, 2],
    [
      'issuer add --name letsencrypt --permit-domain a.test',
      /--permit-domain is an option of private CAs/,
      2,
    ],
    ['issuer add --name a --type local-ca --path-length x', /path_length must be a number/],
    ['issuer add --name a --type local-ca --path-length 0', /path length is at least 1/],
    ['issuer add --name a --type local-ca --permit-domain *.test', /"\*\.test" is not a domain/],
    ['issuer add --name a --type local-ca --permit-ip 10.0.0.1/8', /"10\.0\.0\.1\/8" is not a network/],
    ['issuer add --name a --type local-ca --lifetime 1m', /"1m" is not a lifetime/],
    [
      'issuer update --name local-ca --permit-domain a.test --email a@b.test',
      /--email is an option of ACME CAs/,
      2,
    ],
    ['issuer update --name local-ca --force', /nothing to change/, 2],
  ];
  for (const [words, message, code = 1] of cases) await refused(commandWords(words), message, code);
});
