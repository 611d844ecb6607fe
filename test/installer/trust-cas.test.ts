/**
 * Trust in private CAs by name: `install-ca.sh --ca NAME`, beside each other and beside the CA that every vault has.
 */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { administration } from '../harness/http/administration.ts';
import { needs, type Skip } from '../harness/processes/missing-program.ts';
import { inTurnOfShells } from './places.ts';
import { bundleOf, entryFor, rootNamed, trustMachine } from './trust-machine.ts';

const openssl = needs('openssl');
const also = (program: string): Skip => (openssl.skip === undefined ? needs(program) : openssl);
const curl = also('curl');

const trustsAlready = /: nothing to change: this machine trusts the private CA staging-ca already\n$/;

inTurnOfShells('several private CAs are added, rotated and removed independently', async (t, shell) => {
  const machine = await trustMachine(t, { shell });
  const staging = (...args: readonly string[]) => machine.run(['--ca', 'staging-ca', ...args]);
  const [one, two] = [rootNamed('root-one'), rootNamed('root-two')];
  const [three, four] = [rootNamed('root-three'), rootNamed('root-four')];
  machine.named.set('staging-ca', bundleOf(two));
  machine.named.set('staging', bundleOf(four));
  assert.equal((await machine.run()).code, 0);
  const added = await staging();
  assert.equal(added.code, 0, added.stderr);
  assert.equal((await machine.run(['--ca=staging'])).code, 0);
  assert.deepEqual(
    machine.anchors(),
    [
      entryFor(machine.url, one),
      entryFor(machine.url, two, 'staging-ca'),
      entryFor(machine.url, four, 'staging'),
    ]
      .map((entry) => `${entry}.crt`)
      .sort(),
  );
  const before = machine.calls().length;
  assert.match((await machine.run()).stderr, /trusts the private CA already\n$/);
  assert.match((await staging()).stderr, trustsAlready);
  assert.equal(machine.calls().length, before);
  machine.named.set('staging-ca', bundleOf(two, three));
  assert.equal((await staging()).code, 0);
  assert.deepEqual(machine.trusted(), ['root-four', 'root-one', 'root-three', 'root-two']);
  machine.named.set('staging-ca', bundleOf(three));
  assert.equal((await staging()).code, 0);
  assert.deepEqual(machine.trusted(), ['root-four', 'root-one', 'root-three']);
  assert.equal((await machine.run(['--uninstall'])).code, 0);
  assert.deepEqual(machine.trusted(), ['root-four', 'root-three']);
  assert.equal((await staging('--uninstall')).code, 0);
  assert.deepEqual(machine.trusted(), ['root-four']);
  assert.match(
    (await staging('--uninstall')).stderr,
    /: nothing to remove: no store has an entry for the private CA staging-ca of http:\S+\n$/,
  );
  assert.deepEqual(machine.anchors(), [`${entryFor(machine.url, four, 'staging')}.crt`]);
});

test('--ca local-ca adds the same root as no --ca', curl, async (t) => {
  const machine = await trustMachine(t);
  assert.equal((await machine.run(['--ca', 'local-ca'])).code, 0);
  assert.deepEqual(machine.anchors(), [`${entryFor(machine.url, rootNamed('root-one'))}.crt`]);
  assert.match((await machine.run()).stderr, /nothing to change/);
});

test('CAs whose names differ by case or underscores have separate entries', curl, async (t) => {
  const machine = await trustMachine(t);
  const names = ['a-b', 'A-b', 'a_b', 'a.b', `${'x'.repeat(63)}1`, `${'x'.repeat(63)}2`];
  for (const name of names) {
    machine.named.set(name, bundleOf(rootNamed(`of-${names.indexOf(name)}`)));
    const { code, stderr } = await machine.run(['--ca', name]);
    assert.equal(code, 0, stderr);
  }
  assert.equal(new Set(machine.anchors().map((anchor) => anchor.toLowerCase())).size, names.length);
  assert(machine.anchors().every((anchor) => anchor.length < 160));
  for (const [at, name] of names.entries()) {
    assert.equal((await machine.run(['--ca', name, '--uninstall'])).code, 0);
    assert.equal(machine.anchors().length, names.length - at - 1);
  }
});

for (const tool of ['curl', 'wget'] as const) {
  test(
    `an unknown CA changes nothing, and the error says how to list CAs, with ${tool}`,
    also(tool),
    async (t) => {
      const machine = await trustMachine(t);
      machine.fake(tool === 'curl' ? 'wget' : 'curl', 'exit 127');
      const { code, stderr } = await machine.run(['--ca', 'stagin']);
      assert.equal(code, 10, stderr);
      assert.match(
        stderr,
        /cannot download http:\S+\/client\/cas\/stagin\/ca\.crt: .*404.*\nTry: --ca with the name of a private CA of this vault; there, "vault issuer list" shows them\n$/,
      );
      assert.deepEqual([machine.anchors(), machine.calls()], [[], []]);
    },
  );
}

test('an invalid name of a CA is rejected with exit code 2', curl, async (t) => {
  const machine = await trustMachine(t);
  for (const name of ['../../x', 'a b', '-a', '.a', 'ä', 'a?b', 'a%2fb', '$(id)']) {
    const { code, stderr } = await machine.run(['--ca', name]);
    assert.equal(code, 2, `${name}: ${stderr}`);
    assert(stderr.includes(`--ca: "${name}" is not the name of a private CA of the vault`), stderr);
  }
  const long = await machine.run(['--ca', 'a'.repeat(65)]);
  assert.deepEqual([long.code, machine.requests()], [2, 0]);
  assert.match(long.stderr, /--ca: a name has at most 64 characters\n$/);
});

test('the vault serves the root of a CA with constraints by its name', curl, async (t) => {
  const machine = await trustMachine(t);
  const admin = await administration(t);
  const [permit_domains, common_name] = [['staging.example'], 'Staging'];
  const body = { type: 'local-ca', name: 'staging-ca', common_name, permit_domains };
  await admin.expect(201, 'POST', '/api/v1/issuers', body);
  const run = (...args: readonly string[]) =>
    machine.runAlone(['--server', admin.server.url, '--root', machine.image, ...args]);
  assert.equal((await run()).code, 0);
  const added = await run('--ca', 'staging-ca');
  assert.equal(added.code, 0, added.stderr);
  assert.match(added.stderr, /: root certificate "Staging", valid until /);
  const { text } = await admin.ask('GET', '/client/cas/staging-ca/ca.crt');
  const { fingerprint256 } = new X509Certificate(text);
  assert(added.stderr.includes(fingerprint256), added.stderr);
  assert.equal(machine.trusted().length, 2);
  assert(machine.trusted().includes('Staging'));
});
