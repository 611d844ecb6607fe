/** What a CA does wrong or refuses during an order, as people and the policy see it afterwards. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hour, minute, second } from '../../../src/base/duration.ts';
import { findRenewal } from '../../../src/db/tables/renewals/renewals.ts';
import { stepsOf } from '../../../src/domain/renewals/attempt.ts';
import { type AcmeKind, problem, type ScriptedReply } from '../../harness/ca/scripted-acme.ts';
import { fails, issuesAnother, issuesOnce } from '../../harness/issuance/engine-outcomes.ts';
import { challengeRows, countOf, engine } from '../../harness/issuance/engine-vault.ts';

const replies: Readonly<Record<string, { readonly reply: ScriptedReply; readonly words: RegExp }>> = {
  'truncated JSON': {
    reply: { headers: { 'Content-Type': 'application/json' }, body: '{"status": "pend' },
    words: /^unexpected response from 127\.0\.0\.1:\d+: expected an order, got invalid or incomplete JSON$/,
  },
  'JSON that is not an order': {
    reply: { body: { status: 'wonderful' } },
    words: /expected an order, got an invalid one: status/,
  },
  'an HTML response': {
    reply: { headers: { 'Content-Type': 'text/html' }, body: '<p>Hello</p>' },
    words: /expected an order, got text\/html$/,
  },
  'a huge body': {
    reply: { headers: { 'Content-Type': 'application/json' }, body: Buffer.alloc(2 << 20, 0x20) },
    words: /more than|too large|larger/,
  },
  'a redirect': {
    reply: { status: 302, headers: { Location: 'https://elsewhere.test/' } },
    words: /responded with a redirect \(302\); redirects are not followed$/,
  },
  'a problem document': {
    reply: problem('rejectedIdentifier', 'We do not do that'),
    words: /^We do not do that$/,
  },
};

for (const [what, { reply, words }] of Object.entries(replies)) {
  test(`${what} in place of the order, at any step, fails the renewal with a matching error`, async (t) => {
    for (const kind of ['newOrder', 'order', 'finalize'] satisfies AcmeKind[]) {
      const opened = await engine(t);
      opened.ca.override(kind, reply);
      await fails(opened, words);
    }
  });
}

for (const [form, header] of [
  ['seconds', '1800'],
  ['a date', new Date(Date.parse('2026-11-21T12:30:00Z')).toUTCString()],
] as const) {
  test(`a 503 response with Retry-After as ${form} delays the certificate and pauses the issuer`, async (t) => {
    const opened = await engine(t);
    const { vault, world, ca } = opened;
    ca.override(
      'newOrder',
      problem('serverInternal', 'come back later', { status: 503, headers: { 'Retry-After': header } }),
    );
    const { row } = await fails(opened, /^come back later$/);
    assert.equal(Math.round(((row.retry_after ?? 0) - world.now()) / minute), 30);
    assert.equal(row.next_renewal_at, row.retry_after);
    const issuer = await vault.db.reader.selectFrom('acme_issuers').selectAll().executeTakeFirstOrThrow();
    assert.deepEqual([issuer.paused_until, issuer.pause_reason], [row.retry_after, 'come back later']);
  });
}

test('an issuer is paused for an hour at most, its certificate for as long as the CA asked', async (t) => {
  const opened = await engine(t);
  const { vault, world, ca } = opened;
  ca.override(
    'newOrder',
    problem('serverInternal', 'tomorrow', { status: 503, headers: { 'Retry-After': '86400' } }),
  );
  const { row } = await fails(opened, /^tomorrow$/);
  assert.equal(row.retry_after, world.now() + 24 * hour);
  const issuer = await vault.db.reader.selectFrom('acme_issuers').selectAll().executeTakeFirstOrThrow();
  assert.equal(issuer.paused_until, world.now() + hour);
});

for (const kind of ['order', 'authorization', 'challenge', 'finalize', 'certificate'] satisfies AcmeKind[]) {
  test(`a short Retry-After at ${kind} is waited for within the attempt`, async (t) => {
    const opened = await engine(t);
    const busy = problem('serverInternal', 'busy', { status: 503, headers: { 'Retry-After': '7' } });
    opened.ca.override(kind, busy, busy);
    const before = opened.world.now();
    const ended = await issuesOnce(opened);
    assert.equal(countOf(opened.ca, 'newOrder'), 1);
    assert(opened.world.now() - before >= 14 * second);
    assert(stepsOf(ended).some(({ text }) => text === 'waiting to retry: busy'));
  });

  test(`a connection that is cut at ${kind} is opened again, and the same order continues`, async (t) => {
    for (const cutAfter of [0, 60]) {
      const opened = await engine(t);
      const cut = async (_: unknown, usual: () => Promise<ScriptedReply>) => ({
        ...(await usual()),
        cutAfter,
      });
      opened.ca.override(kind, cut, cut, cut, cut);
      await issuesOnce(opened);
      assert.equal(countOf(opened.ca, 'newOrder'), 1);
      assert.deepEqual(await challengeRows(opened.vault), []);
    }
  });
}

test('a Retry-After of an hour at finalize ends the attempt and pauses the issuer', async (t) => {
  const opened = await engine(t);
  opened.ca.override(
    'finalize',
    problem('serverInternal', 'busy', { status: 503, headers: { 'Retry-After': '3600' } }),
  );
  const { row } = await fails(opened, /^busy$/);
  const { paused_until } = await opened.vault.db.reader
    .selectFrom('acme_issuers')
    .selectAll()
    .executeTakeFirstOrThrow();
  assert.deepEqual([row.retry_after, paused_until], Array(2).fill(opened.world.now() + hour));
});

test('an order that stays in processing is waited for, and its steps are recorded', async (t) => {
  const opened = await engine(t, { processing: 100 });
  const ended = await issuesOnce(opened);
  assert.deepEqual(
    stepsOf(ended).map(({ text }) => text),
    [
      'contacting ca: directory and account',
      'creating an order at ca',
      'validating www.example.test with http-01',
      'waiting for ca to complete the validation',
      'finalizing the order',
      'waiting for ca to issue the certificate',
      'downloading the certificate',
    ],
  );
});

test('an order stuck in processing times out after an hour, and the last step is recorded', async (t) => {
  const opened = await engine(t, { processing: Number.POSITIVE_INFINITY, zones: ['example.test'] });
  const before = opened.world.now();
  const { ended } = await fails(opened, /^Timed out after 1 h: waiting for the CA was canceled/);
  const passed = opened.world.now() - before;
  assert(passed >= hour && passed < hour + minute, String(passed));
  assert.equal(stepsOf(ended).at(-1)?.text, 'waiting for ca to issue the certificate');
});

test('an order that takes more than an hour is continued by the next renewal, which gets its certificate', async (t) => {
  // The CA is asked every 15 seconds.
  const opened = await engine(t, { processing: 300 });
  const { vault, ca } = opened;
  const { ended } = await fails(opened, /^Timed out after 1 h: waiting for the CA was canceled/);
  const next = await issuesAnother(vault);
  assert.equal(next.order_url, ended.order_url);
  const sent = ca.kinds();
  for (const kind of ['newOrder', 'finalize'] as const)
    assert.equal(sent.filter((each) => each === kind).length, 1, kind);
  const before = await findRenewal(vault.db.reader, ended.id);
  assert.deepEqual([before?.sealed_private_key, before?.order_url], [null, null]);
});

test('a pending authorization times out after an hour, and its record is removed', async (t) => {
  const opened = await engine(t, {
    zones: ['example.test'],
    validate: () => new Promise(() => undefined),
  });
  const { zone } = opened;
  await fails(opened, /^Timed out after 1 h: /);
  assert.deepEqual(zone.done, [
    'present _acme-challenge.www.example.test',
    'remove _acme-challenge.www.example.test',
  ]);
});
