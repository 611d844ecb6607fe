/** Deploy targets over HTTP: credentials go in and never come out, and no session becomes a shell. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { suite, type TestContext, test } from 'node:test';
import { maxDeployTargets } from '../../../src/domain/deploy-targets/deploy-targets.ts';
import { longBodyLimit } from '../../../src/http/request/request-body.ts';
import { outside } from '../../harness/database/outside-database.ts';
import { eventually } from '../../harness/eventually.ts';
import { administration, allPages } from '../../harness/http/administration.ts';
import { checkedServer, codeOf } from '../../harness/http/checked.ts';
import { eventsOf, makeCertificate, makeKey } from '../../harness/http/fixtures.ts';
import { pageWith } from '../../harness/http/sign-in-fixtures.ts';
import { isSignedWith, status, webhookReceiver } from '../../harness/http/webhook-receiver.ts';
import { addTarget, webhookSecret } from '../../harness/targets/deployed.ts';

const path = '/api/v1/deploy-targets';

type Problem = { code: string; detail: string; errors?: { path: string; message: string }[] };
type Target = { name: string; host: string; certificates: Record<string, unknown>[]; counts: object };

/** Alice, the certificates `web` and `api`, and a receiver whose URL has a token. */
async function prepared(t: TestContext) {
  const receiver = await webhookReceiver(t);
  const admin = await administration(t);
  await makeCertificate(admin.server.vault, 'web');
  await makeCertificate(admin.server.vault, 'api');
  const settings = { url: receiver.url, secret: webhookSecret };
  const body = { name: 'hook', type: 'webhook', certificates: ['web'], settings };
  return { ...admin, receiver, settings, body };
}

suite('a deploy target', () => {
  test('is added, listed, changed and removed without its credentials in any response, log or event', async (t) => {
    const { expect, said, server, receiver, settings, body } = await prepared(t);
    const { host, origin } = new URL(receiver.url);
    const waiting = {
      ...{ certificate: 'web', destination: origin, state: 'waiting', version: null, current_version: 1 },
      ...{ attempts: 0, error: null, next_attempt_at: '2026-11-21T12:00:00Z' },
    };
    const summary = {
      ...{ name: 'hook', type: 'webhook', host, counts: { current: 0, waiting: 1, failing: 0 } },
      ...{ created_at: '2026-11-21T12:00:00Z', changed_at: '2026-11-21T12:00:00Z' },
    };
    const view = { ...summary, certificates: [waiting] };
    assert.deepEqual(await expect(201, 'POST', path, body), view);
    assert.deepEqual(await expect(200, 'GET', path), [summary]);
    assert.deepEqual(await expect(200, 'GET', `${path}/hook`), view);
    const other = { url: 'http://localhost:1/hook?token=t0ken-2', secret: webhookSecret };
    const changed = await expect<Target>(200, 'PATCH', `${path}/hook`, {
      certificates: ['web', 'api', 'api'],
      settings: other,
    });
    assert.equal(changed.host, 'localhost:1');
    assert.deepEqual(
      changed.certificates.map(({ certificate, destination }) => [certificate, destination]),
      [
        ['api', 'http://localhost:1'],
        ['web', 'http://localhost:1'],
      ],
    );
    const sealed = outside(server.dataDir, (db) =>
      db.prepare('select sealed_settings from deploy_targets').pluck().get(),
    ) as Buffer;
    await expect(204, 'DELETE', `${path}/hook`);
    assert.deepEqual(await expect(200, 'GET', path), []);
    await expect(200, 'GET', '/api/v1/audit-events');
    for (const secret of ['t0ken', settings.secret]) {
      assert(!said().includes(secret), 'a response has it');
      assert(!server.log.lines.join('\n').includes(secret), 'the log has it');
      assert(sealed.length > 20 && !sealed.includes(secret), 'the database has it');
    }
    const recorded = ['create', 'update', 'delete'].map((what) => {
      const events = eventsOf(server.dataDir, `deploy_target.${what}`);
      return events.map(({ actor, resource, detail }) => ({ actor, resource, detail }));
    });
    const common = { actor: 'admin:alice', resource: 'deploy-target:hook' };
    assert.deepEqual(recorded, [
      [{ ...common, detail: { type: 'webhook', host, certificates: ['web'] } }],
      [{ ...common, detail: { added: ['api'], host: 'localhost:1', settings: 'replaced' } }],
      [{ ...common, detail: {} }],
    ]);
  });

  test('is rejected with the name of the wrong setting, and nothing is stored or echoed', async (t) => {
    const { expect, said, settings, body } = await prepared(t);
    const wrong: [object, RegExp][] = [
      [{ type: 'webhok' }, /^Unknown deploy target type "webhok"\. Did you mean "webhook"\?$/],
      [{ type: 'ftp' }, /Use one of: ssh, kubernetes, webhook/],
      [{ settings: {} }, /^Invalid settings for webhook: url is missing/],
      [{ settings: { ...settings, url: 'http://a.test/t0ken' } }, /url must be an https/],
      [{ settings: { ...settings, secret: 't0ken' } }, /secret must be whsec_/],
      [{ settings: { ...settings, t0ken: 1 } }, /unknown|no name/],
      [{ settings: undefined }, /settings/],
      [{ certificates: ['web', 'wbe'] }, /^certificates: unknown certificate "wbe"/],
      [{ certificates: Array.from({ length: 1001 }, (_, at) => `c${at}`) }, /at most 1000 certificates/],
      [{ name: 'a b c' }, /name/],
      [{ token: 't0ken' }, /token/],
    ];
    for (const [change, detail] of wrong) {
      assert.match((await expect<Problem>(400, 'POST', path, { ...body, ...change })).detail, detail);
    }
    assert.deepEqual(await expect(200, 'GET', path), []);
    await expect(201, 'POST', path, body);
    const changes: [object, RegExp][] = [
      [{ settings: {} }, /^Invalid settings for webhook: url is missing/],
      [{ certificates: ['wbe'] }, /unknown certificate "wbe"/],
      [{ name: 'other' }, /name/],
    ];
    for (const [change, detail] of changes) {
      assert.match((await expect<Problem>(400, 'PATCH', `${path}/hook`, change)).detail, detail);
    }
    assert(!said().replaceAll('"token"', '').includes('t0ken'), said());
  });

  test('cannot have the name of another in other letters, and its own name is suggested for a typo', async (t) => {
    const { expect, body } = await prepared(t);
    await expect(201, 'POST', path, { ...body, certificates: [] });
    for (const name of ['hook', 'HOOK']) {
      const { code, detail } = await expect<Problem>(409, 'POST', path, { ...body, name });
      assert.equal(code, 'deploy_target_exists');
      assert.match(detail, /^A deploy target named hook already exists\./);
    }
    for (const [method, at, sent] of [
      ['GET', `${path}/hok`],
      ['PATCH', `${path}/hok`, {}],
      ['DELETE', `${path}/hok`],
      ['POST', `${path}/hok/certificates/web/deploy`],
    ] as const) {
      const { code, detail } = await expect<Problem>(404, method, at, sent);
      assert.equal(code, 'deploy_target_not_found');
      assert.match(detail, /^Unknown deploy target "hok"\. Did you mean "hook"\?/);
    }
  });

  test('is added and changed only on the host if it runs a local program', async (t) => {
    const { expect, server, body } = await prepared(t);
    const settings = { command: ['/bin/true'] };
    const refused = await expect<Problem>(400, 'POST', path, { ...body, type: 'exec', settings });
    assert.match(refused.detail, /can only be added on the vault's host/);
    assert.equal(refused.errors?.[0]?.path, 'type');
    await addTarget(server.vault, { name: 'x', type: 'exec' }, settings);
    const changed = await expect<Problem>(400, 'PATCH', `${path}/x`, { settings });
    assert.equal(changed.errors?.[0]?.path, 'settings');
    await expect(200, 'PATCH', `${path}/x`, { certificates: ['api'] });
  });

  test('is listed by name in pages, up to 1,000 of them', async (t) => {
    const admin = await prepared(t);
    const { expect, server, body } = admin;
    const row = `'webhook', 'a.test', x'00', 1, 1`;
    outside(server.dataDir, (db) => {
      const names = Array.from({ length: maxDeployTargets }, (_, at) => `('t${at}', ${row})`);
      db.exec(
        `insert into deploy_targets (name, type, host, sealed_settings, created_at, changed_at) values ${names}`,
      );
    });
    const { code } = await expect<Problem>(409, 'POST', path, body);
    assert.equal(code, 'too_many_deploy_targets');
    const { all, pages } = await allPages<Target>(admin, `${path}?limit=400`);
    const names = all.map(({ name }) => name);
    assert.equal(pages, 3);
    assert.equal(new Set(names).size, maxDeployTargets);
    assert.deepEqual(names, names.toSorted());
  });

  test('cannot take the 10,001st certificate on all targets', async (t) => {
    const { expect, server, body } = await prepared(t);
    await expect(201, 'POST', path, { ...body, certificates: [] });
    outside(server.dataDir, (db) => {
      const certificates = Array.from({ length: 1000 }, (_, at) => `('c${at}', '[]', 'ec256', 0, 0, 1)`);
      const targets = Array.from({ length: 10 }, (_, at) => `('t${at}', 'webhook', 'a.test', x'00', 1, 1)`);
      db.exec(
        `insert into certificates (name, domains, key_type, auto_renew, reuse_key, created_at) values ${certificates}`,
      );
      db.exec(
        `insert into deploy_targets (name, type, host, sealed_settings, created_at, changed_at) values ${targets}`,
      );
      db.exec(`insert into deploy_target_certificates (deploy_target_id, certificate_id, destination)
        select t.id, c.id, 'x' from deploy_targets t cross join certificates c
        where t.name like 't%' and c.name like 'c%'`);
    });
    const { code, detail } = await expect<Problem>(409, 'PATCH', `${path}/hook`, { certificates: ['web'] });
    assert.equal(code, 'too_many_deploy_targets');
    assert.match(detail, /10000 certificates together/);
    outside(server.dataDir, (db) =>
      db.exec(
        'delete from deploy_target_certificates where id = (select min(id) from deploy_target_certificates)',
      ),
    );
    await expect(200, 'PATCH', `${path}/hook`, { certificates: ['web'] });
  });

  test('has settings of up to 1 MiB', async (t) => {
    const { expect, body } = await prepared(t);
    const big = { ...body, settings: { ...body.settings, ca: 'x'.repeat(longBodyLimit) } };
    await expect(413, 'POST', path, big);
    await expect(400, 'POST', path, { ...big, settings: { ...body.settings, ca: 'x'.repeat(70_000) } });
  });
});

suite('a manual deployment', () => {
  test('installs the certificate and returns its state', async (t) => {
    const { expect, server, receiver, body } = await prepared(t);
    await expect(201, 'POST', path, body);
    const at = `${path}/hook/certificates/web/deploy`;
    assert.partialDeepStrictEqual(await expect(200, 'POST', at), {
      state: 'current',
      version: 1,
      error: null,
    });
    const [got] = receiver.received;
    assert(got && isSignedWith(webhookSecret, got, server.world.now()));
    const sent = JSON.parse(got.body) as Record<string, unknown>;
    assert.partialDeepStrictEqual(sent, { certificate: 'web', version: 1 });
    assert.match(String(sent.private_key_pem), /^-----BEGIN PRIVATE KEY-----/);
    const [deployment] = await expect<Record<string, unknown>[]>(200, 'GET', '/api/v1/deployments');
    assert.partialDeepStrictEqual(deployment, {
      ...{ id: 'deploy-target:hook', certificate: 'web', job: 'hook', deploy_target: 'hook' },
      ...{ api_key: null, state: 'current', version: 1 },
    });
    assert.equal(eventsOf(server.dataDir, 'certificate.deploy')[0]?.actor, 'admin:alice');
    const absent = await expect<Problem>(404, 'POST', `${path}/hook/certificates/api/deploy`);
    assert.equal(absent.code, 'certificate_not_found');
    assert.match(absent.detail, /^api is not among the certificates of the deploy target hook/);
  });

  test('reports why the target did not take the certificate', async (t) => {
    const { expect, said, receiver, body } = await prepared(t);
    await expect(201, 'POST', path, body);
    receiver.answers.push(status(500));
    const { code, detail } = await expect<Problem>(502, 'POST', `${path}/hook/certificates/web/deploy`);
    assert.equal(code, 'deploy_failed');
    assert.match(detail, /responded with 500 Internal Server Error\.$/);
    assert.partialDeepStrictEqual((await expect<Target>(200, 'GET', `${path}/hook`)).certificates, [
      { state: 'failing', attempts: 1 },
    ]);
    assert(!said().includes('t0ken') && !said().includes('PRIVATE KEY'));
  });

  test('is rejected while 16 others run', async (t) => {
    const { expect, ask, receiver, body } = await prepared(t);
    await expect(201, 'POST', path, body);
    const held: ServerResponse[] = [];
    for (let count = 0; count < 16; count += 1) receiver.answers.push((response) => held.push(response));
    const at = `${path}/hook/certificates/web/deploy`;
    const running = Array.from({ length: 16 }, () => ask('POST', at));
    await eventually('16 run', () => held.length === 16);
    const refused = await ask('POST', at);
    assert.equal(refused.status, 429);
    assert.equal(refused.headers.get('Retry-After'), '5');
    for (const response of held) response.writeHead(204).end();
    assert.deepEqual(new Set((await Promise.all(running)).map((one) => one.status)), new Set([200]));
    await expect(200, 'POST', at);
  });
});

test('deploy target types list their settings as JSON Schema', async (t) => {
  const { expect } = await administration(t);
  type Kind = { type: string; command_line_only: boolean; settings: { properties?: object } };
  const kinds = await expect<Kind[]>(200, 'GET', '/api/v1/deploy-target-types');
  assert.deepEqual(
    kinds.filter((kind) => kind.command_line_only).map(({ type }) => type),
    ['exec'],
  );
  for (const { type, settings } of kinds) assert(Object.keys(settings.properties ?? {}).length > 0, type);
});

suite('the rights of a caller', () => {
  /** Every operation that changes something or sends a private key. */
  const changes = [
    ['POST', path, { name: 'n', type: 'webhook', settings: {} }],
    ['PATCH', `${path}/hook`, {}],
    ['DELETE', `${path}/hook`],
    ['POST', `${path}/hook/certificates/web/deploy`],
  ] as const;
  const reads = [path, `${path}/hook`, '/api/v1/deploy-target-types'];

  /** People of all roles, and a target. */
  async function people(t: TestContext, secondApproval = false) {
    const server = await checkedServer(t, {
      administrators: { a: 'alice', b: 'bob', o: 'olga', v: 'vera', w: 'wilma' },
      roles: { olga: 'operator', vera: 'viewer' },
      reaches: { wilma: ['team=web'] },
      secondApproval,
    });
    await makeCertificate(server.vault, 'web', undefined, { labels: ['team=web'] });
    const settings = { url: 'https://a.test/', secret: webhookSecret };
    await addTarget(server.vault, { name: 'hook', type: 'webhook' }, settings);
    const page = (token: string) => pageWith(server, `vault_session=${token}`);
    return { server, settings, page };
  }

  test('of viewers and operators are to read, and those of persons with a reach only the types', async (t) => {
    const { server, page } = await people(t);
    for (const person of ['o', 'v'].map(page)) {
      for (const at of reads) assert.equal((await person.send('GET', at)).status, 200);
      for (const [method, at, body] of changes) {
        assert.equal(await codeOf(await person.send(method, at, body)), 'forbidden', `${method} ${at}`);
      }
    }
    const confined = page('w');
    const seen = await Promise.all(reads.map(async (at) => (await confined.send('GET', at)).status));
    assert.deepEqual(seen, [403, 403, 200]);
    for (const [method, at, body] of changes) {
      assert.equal(await codeOf(await confined.send(method, at, body)), 'forbidden', `${method} ${at}`);
    }
    const { raw } = await makeKey(server.vault);
    assert.equal((await server.get(path, raw)).status, 403);
    assert.equal(eventsOf(server.dataDir, 'certificate.deploy').length, 0);
  });

  test('to add and change a target need a second administrator where the settings ask for one', async (t) => {
    const { server, settings, page } = await people(t, true);
    const [alice, bob] = [page('a'), page('b')];
    const wanted = [
      ['POST', path, { name: 'n', type: 'webhook', certificates: ['web'], settings }, 201],
      ['PATCH', `${path}/hook`, { certificates: [], settings }, 200],
    ] as const;
    const summaries = [
      'Add the deploy target n (webhook) for the certificates web',
      'Change the deploy target hook: no certificate, other settings',
    ];
    for (const [at, [method, where, body, done]] of wanted.entries()) {
      const refused = await alice.send(method, where, body);
      const { code, detail } = (await refused.json()) as Problem;
      assert.equal(code, 'approval_required');
      assert(detail.includes(`approve this: ${summaries[at]}. `), detail);
      const approved = await bob.send('POST', `/api/v1/pending-changes/${at + 1}/approve`);
      assert.equal(approved.status, 200);
      assert.equal((await alice.send(method, where, body)).status, done);
    }
    const stored = outside(server.dataDir, (db) => db.prepare('select * from pending_changes').all());
    assert(!JSON.stringify(stored).includes(webhookSecret), 'a pending change has no credentials');
  });
});
