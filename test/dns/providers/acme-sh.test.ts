/** The provider `acme-sh`: a script with the functions of an installed acme.sh, which keeps no credentials. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { realWorld } from '../../../src/base/world.ts';
import { acmeSh } from '../../../src/dns/providers/acme-sh.ts';
import { fakeContext } from '../../harness/dns/fake-provider.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const never = new AbortController().signal;
const record = {
  name: '_acme-challenge.www.example.com',
  value: "v-1 'quoted' $(touch /tmp/never)",
  zone: 'example.com',
  domain: 'www.example.com',
};

/**
 * What scripts find in acme.sh: helpers, a configuration that keeps credentials, and help if there are no arguments.
 */
const program = `#!/usr/bin/env sh
ACCOUNT_CONF_PATH="$LE_WORKING_DIR/account.conf"
_info() { printf '%s\\n' "$1"; }
_err() { printf '%s\\n' "$1" >&2; return 1; }
_saveaccountconf_mutable() { printf "SAVED_%s='%s'\\n" "$1" "$2" >>"$HOME/kept"; }
_readaccountconf_mutable() { echo from-the-file; }
_saveaccountconf() { _saveaccountconf_mutable "$@"; }
main() { [ -z "$1" ] && echo "Usage of acme.sh" && return; "$@"; }
main "$@"
`;

const script = `dns_fake_add() {
  Fake_Key="\${Fake_Key:-$(_readaccountconf_mutable Fake_Key)}"
  if [ -z "$Fake_Key" ]; then _err "no key: You did not specify Fake_Key"; return 1; fi
  _saveaccountconf_mutable Fake_Key "$Fake_Key"
  _saveaccountconf Fake_Key "$Fake_Key"
  _info "adding"
  : >"$LE_WORKING_DIR/http.header"
  printf '%s\\n' "add|$1|$2|$Fake_Key" >>"$HOME/calls"
  [ "$Fake_Key" != wrong-key ] || { _err "refused wrong-key"; return 1; }
}
dns_fake_rm() { printf '%s\\n' "rm|$1|$2|$Fake_Key" >>"$HOME/calls"; }
`;

function installed(t: TestContext) {
  const home = tempDir(t);
  const acme = join(home, 'acme.sh');
  mkdirSync(join(home, 'dnsapi'));
  mkdirSync(join(home, 'temporary'));
  writeFileSync(acme, program);
  writeFileSync(join(home, 'dnsapi', 'dns_fake.sh'), script);
  const provider = (environment: object, settings: object = {}) =>
    acmeSh.create(
      acmeSh.config.parse({
        script: 'dns_fake.sh',
        program: acme,
        environment: { HOME: home, TMPDIR: join(home, 'temporary'), ...environment },
        ...settings,
      }),
      { ...fakeContext(), world: realWorld, log: silentLog },
    );
  return { home, provider };
}

test('present and remove call the functions of the script and leave no files behind', async (t) => {
  const { home, provider } = installed(t);
  const fake = provider({ Fake_Key: 'top-secret' });
  await fake.present(record, never);
  await fake.remove(record, never);
  const { name, value } = record;
  assert.equal(
    readFileSync(join(home, 'calls'), 'utf8'),
    `add|${name}|${value}|top-secret\nrm|${name}|${value}|top-secret\n`,
  );
  assert.deepEqual(readdirSync(home).toSorted(), ['acme.sh', 'calls', 'dnsapi', 'temporary']);
  assert.deepEqual(readdirSync(join(home, 'temporary')), []);
});

test('credentials saved by acme.sh are not used', async (t) => {
  const { provider } = installed(t);
  await assert.rejects(
    provider({}).present(record, never),
    /\/bin\/sh failed with exit code 1: no key: You did not specify Fake_Key$/,
  );
});

test('a failure includes the output of the script, without the credentials', async (t) => {
  const { home, provider } = installed(t);
  await assert.rejects(provider({ Fake_Key: 'wrong-key' }).present(record, never), /: refused \[secret\]$/);
  assert.deepEqual(readdirSync(join(home, 'temporary')), []);
  await assert.rejects(provider({}, { script: 'dns_other.sh' }).present(record, never), /dns_other\.sh/);
  await assert.rejects(
    provider({}, { program: '/nowhere/acme.sh', script: 'dns_fake.sh' }).present(record, never),
    /\/nowhere\/acme\.sh/,
  );
});

test('a script outside the dnsapi directory can be used', async (t) => {
  const { home, provider } = installed(t);
  const own = join(home, 'dns_own.sh');
  writeFileSync(own, 'dns_own_add() { echo "$1" >"$HOME/own"; }\n');
  await provider({}, { script: own }).present(record, never);
  assert.equal(readFileSync(join(home, 'own'), 'utf8'), `${record.name}\n`);
});

for (const settings of [
  {},
  { script: 'dns_fake.sh' },
  { program: '/a/acme.sh' },
  { script: '../dns_fake.sh', program: '/a/acme.sh' },
  { script: 'fake.sh', program: '/a/acme.sh' },
  { script: 'dns_fake.sh;id', program: '/a/acme.sh' },
  { script: 'dns_fake.sh', program: 'acme.sh' },
]) {
  test(`settings ${JSON.stringify(settings)} are rejected`, () => {
    assert.equal(acmeSh.config.safeParse(settings).success, false);
  });
}
