/**
 * Jobs with --ca-file whose vault rotates its private CA: the CA file of the job follows, and nothing else changes in
 * it.
 */
import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, suite, type TestContext, test } from 'node:test';
import { type Chain, makeChain } from '../harness/ca/openssl-chain.ts';
import {
  assertPair,
  type Machine,
  machine,
  modeOf,
  type Shell,
  type Tool,
} from '../harness/client/installer.ts';
import { type Answer, relay } from '../harness/client/relay.ts';
import { clientVault } from '../harness/client/vault.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { deadly, killedAt } from './kills.ts';
import { everyTool, inTurnOfShells } from './places.ts';
import { namesIn } from './trust-machine.ts';

const shared = mkdtempSync(join(tmpdir(), 'vault-rotation-'));
after(() => rmSync(shared, { recursive: true, force: true }));
const chains = new Map<string, Chain>();

/** The old and the new CA of the vault, and that of a company, each with a certificate for the vault. */
function chainOf(label: 'Old' | 'New' | 'Company'): Chain {
  const chain =
    chains.get(label) ?? makeChain(mkdtempSync(join(shared, 'ca-')), { label, names: 'IP:127.0.0.1' });
  chains.set(label, chain);
  return chain;
}

const tlsOf = ({ fullchainPem, leaf }: Chain) => ({ cert: fullchainPem, key: leaf.keyPem });
const rootsOf = (...of: readonly Chain[]) => of.map(({ root }) => root.certificatePem).join('');
const [old, next, company] = [() => chainOf('Old'), () => chainOf('New'), () => chainOf('Company')];
const caFile = (client: Machine) => join(dirname(client.copy()), 'ca.pem');
const roots = (client: Machine) => namesIn(caFile(client));

/** A job that trusts these certificates, on a machine of its own. The vault serves HTTPS with the old CA. */
async function job(
  t: TestContext,
  { shell, tool, given = rootsOf(old()) }: { shell?: Shell; tool?: Tool; given?: string } = {},
) {
  const vault = await clientVault(t);
  const server = await relay(t, () => vault.url, tlsOf(old()));
  const client = machine(t, { ...(shell && { shell }), ...(tool && { tool }) });
  const own = join(client.home, 'own.pem');
  writeFileSync(own, given);
  const served = { crt: { status: 200, body: rootsOf(old()) } as Answer };
  server.answer = (path) => (path === '/client/ca.crt' ? served.crt : undefined);
  const installed = await vault.install(client, ['--server', server.url, '--ca-file', own]);
  assert.equal(installed.code, 0, installed.stderr);
  const serves = (...of: readonly Chain[]) => {
    served.crt = { status: 200, body: rootsOf(...of) };
  };
  const run = async () => {
    const outcome = await client.run(['--run'], { ...(shell && { shell }) });
    assert.equal(outcome.code, 0, outcome.stderr);
    return outcome.stderr;
  };
  return { vault, server, client, own, served, serves, run };
}

async function rotation(t: TestContext, options: { shell?: Shell; tool?: Tool }): Promise<void> {
  const { vault, server, client, own, serves, run } = await job(t, options);
  serves(old(), next());
  assert.match(await run(), /: the roots of the private CA changed; updated \S+\/ca\.pem\n/);
  assert.deepEqual(roots(client), ['New Root', 'Old Root']);
  assert.doesNotMatch(await run(), /roots/);
  server.secure(tlsOf(next()));
  await vault.renew();
  await run();
  assertPair(client);
  serves(next());
  assert.match(await run(), /roots of the private CA changed/);
  assert.deepEqual(roots(client), ['New Root']);
  await vault.renew();
  await run();
  assertPair(client);
  assert.equal(modeOf(caFile(client)), 0o600);
  assert.equal(readFileSync(own, 'utf8'), rootsOf(old()));
}

inTurnOfShells('a job keeps its trust while the vault rotates its private CA', (t, shell) =>
  rotation(t, { shell }),
);

for (const [tool, isThere] of everyTool().filter(([name]) => name === 'wget' || name === 'openssl')) {
  test(`a job keeps its trust while the vault rotates its private CA, with ${tool}`, isThere, (t) =>
    rotation(t, { tool }),
  );
}

const curl = needs('openssl').skip === undefined ? needs('curl') : needs('openssl');

test('certificates of other CAs in the CA file stay during a rotation', curl, async (t) => {
  const { client, server, serves, run } = await job(t, { given: `# ours\n${rootsOf(company(), old())}` });
  serves(old(), next());
  await run();
  assert.deepEqual(roots(client), ['Company Root', 'New Root', 'Old Root']);
  server.secure(tlsOf(next()));
  serves(next());
  await run();
  assert.deepEqual(roots(client), ['Company Root', 'New Root']);
});

test('a CA file without a root of this vault stays as it is', curl, async (t) => {
  const given = `${rootsOf(company(), old())}# the end\n`;
  const { client, serves, run } = await job(t, { given });
  writeFileSync(caFile(client), given);
  serves(next());
  assert.doesNotMatch(await run(), /roots|ca\.pem/);
  assert.equal(readFileSync(caFile(client), 'utf8'), given);
});

suite('an invalid list of roots changes nothing', { concurrency: 2 }, () => {
  const pem = () => rootsOf(old(), next());
  const answers: Readonly<Record<string, () => Answer>> = {
    'a web page': () => ({ status: 200, body: '<html>Sign in</html>' }),
    'an empty file': () => ({ status: 200, body: '' }),
    'half a certificate': () => ({ status: 200, body: pem().slice(0, -200) }),
    'a private key': () => ({ status: 200, body: pem() + next().root.keyPem }),
    'too many certificates': () => ({ status: 200, body: rootsOf(next()).repeat(51) }),
    'an error': () => ({ status: 404, body: '{}' }),
    'more than 4 MiB': () => ({ status: 200, body: rootsOf(next()).padEnd(5 * 1024 * 1024, '\n') }),
    'a redirect': () => ({ status: 302, headers: { Location: '/elsewhere' }, body: pem() }),
  };
  for (const [what, answer] of Object.entries(answers)) {
    test(`the CA file stays as it is if the vault sends ${what}`, curl, async (t) => {
      const { vault, client, served, run } = await job(t);
      const before = readFileSync(caFile(client), 'utf8');
      served.crt = answer();
      await vault.renew();
      assert.match(
        await run(),
        what === 'more than 4 MiB'
          ? /: cannot update the roots in \S+: https:\S+\/client\/ca\.crt: the response is larger than 4 MiB/
          : /: cannot update the roots in \S+: https:\S+\/client\/ca\.crt: status \d+, or not/,
      );
      assert.equal(readFileSync(caFile(client), 'utf8'), before);
      assertPair(client);
    });
  }
});

test('roots are not updated to ones that did not sign the certificate of the vault', curl, async (t) => {
  const { client, serves, run } = await job(t);
  const before = readFileSync(caFile(client), 'utf8');
  serves(next());
  assert.match(
    await run(),
    /: kept the roots in \S+, because the vault's own certificate is not signed by one that it serves now: /,
  );
  assert.equal(readFileSync(caFile(client), 'utf8'), before);
  serves(old(), next());
  await run();
  assert.deepEqual(roots(client), ['New Root', 'Old Root']);
});

test('a CA file that cannot be replaced stays, and the run installs the new certificate', curl, async (t) => {
  const { vault, client, serves, run } = await job(t);
  serves(old(), next());
  const mv = '/bin/mv';
  client.fake('mv', `case $* in */ca.pem) exit 1 ;; esac; exec ${mv} "$@"`);
  await vault.renew();
  assert.match(await run(), /: cannot update the roots in \S+: cannot write to \S+\n/);
  assertPair(client);
  assert.deepEqual(roots(client), ['Old Root']);
  assert.equal(existsSync(`${caFile(client)}.new`), false);
});

test('roots are not requested over plain HTTP', curl, async (t) => {
  const vault = await clientVault(t);
  const server = await vault.relay();
  const client = machine(t);
  const own = join(client.home, 'own.pem');
  writeFileSync(own, rootsOf(old()));
  const installed = await vault.install(client, ['--server', server.url, '--ca-file', own]);
  assert.equal(installed.code, 0, installed.stderr);
  assert.deepEqual(
    server.seen.filter(({ path }) => path === '/client/ca.crt'),
    [],
  );
});

test('kill -9 at any step leaves the old or the new roots, and the next run goes on', curl, async (t) => {
  const { client, serves, run } = await job(t);
  deadly(client, ['mv', 'cp', 'chmod']);
  const snapshot = join(client.home, 'snapshot');
  for (const part of ['vault', 'tls'])
    cpSync(join(client.home, part), join(snapshot, part), { recursive: true });
  serves(old(), next());
  const seen = new Set<string>();
  for (let step = 1; ; step += 1) {
    for (const part of ['vault', 'tls']) {
      rmSync(join(client.home, part), { recursive: true });
      cpSync(join(snapshot, part), join(client.home, part), { recursive: true, preserveTimestamps: true });
    }
    if (!(await killedAt(client, step, 'sh', ['--run']))) break;
    seen.add(roots(client).join());
    await run();
    assert.deepEqual(roots(client), ['New Root', 'Old Root'], `step ${step}`);
    assert.equal(existsSync(`${caFile(client)}.new`), false, `step ${step}`);
  }
  assert.deepEqual([...seen].sort(), ['New Root,Old Root', 'Old Root']);
});
