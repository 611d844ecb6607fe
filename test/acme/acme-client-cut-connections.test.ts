/**
 * The connection is cut after every number of bytes of every answer, by an orderly end and by a reset. What only reads
 * is asked again and succeeds; what changes something fails with a clean error; and the client serves the next request.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findAccount, registerAccount, rolloverKey, updateContact } from '../../src/acme/accounts.ts';
import type { AcmeClient } from '../../src/acme/acme-client.ts';
import { AcmeError } from '../../src/acme/acme-error.ts';
import type { AcmeAccount, AcmeChallenge } from '../../src/acme/acme-types.ts';
import { downloadCertificate } from '../../src/acme/issued-certificate.ts';
import {
  answerChallenge,
  fetchAuthorization,
  fetchOrder,
  finalizeOrder,
  newOrder,
} from '../../src/acme/orders.ts';
import { fetchRenewalInfo, renewalInfoId } from '../../src/acme/renewal-info.ts';
import { revokeCertificate } from '../../src/acme/revocation.ts';
import { generatePrivateKey } from '../../src/crypto/key-pair.ts';
import { certificateRequest } from '../../src/crypto/x509/certificate-request.ts';
import { identifier } from '../harness/ca/private-chain.ts';
import type { AcmeKind, Override, ScriptedAcme, ScriptedReply } from '../harness/ca/scripted-acme.ts';
import {
  clientOf,
  dnsNames,
  forever,
  issuedOrder,
  readyOrder,
  registered,
} from '../harness/ca/scripted-acme-fixtures.ts';

type Step = (client: AcmeClient) => Promise<unknown>;
type Parts = { readonly ca: ScriptedAcme; readonly client: AcmeClient; readonly account: AcmeAccount };

/** Each step by the answer that is cut. */
async function stepsOf({ ca, client, account }: Parts): Promise<Map<AcmeKind, Step>> {
  const { url, wanted, order } = await issuedOrder(client, account, 'example.com');
  const { leaf } = await downloadCertificate(client, account, url, wanted, forever);
  const ready = await readyOrder(client, account, 'example.com');
  const key = await generatePrivateKey('ec256');
  const csr = await certificateRequest([identifier('example.com')], key);
  const id = renewalInfoId(leaf) ?? '';
  const authorization = await fetchAuthorization(client, account, order.authorizations[0] ?? '', forever);
  const [challenge] = authorization.challenges as [AcmeChallenge];
  const wish = {
    privateKey: account.privateKey,
    email: undefined,
    externalAccount: undefined,
    termsAgreed: true,
  };
  await ca.state.idle();
  return new Map<AcmeKind, Step>([
    ['directory', () => clientOf(ca).directory(forever)],
    ['newNonce', () => findAccount(clientOf(ca), account.privateKey, forever)],
    ['newAccount', (one) => registerAccount(one, wish, forever)],
    ['account', (one) => updateContact(one, account, 'a@example.com', forever)],
    ['newOrder', (one) => newOrder(one, account, { identifiers: dnsNames('example.com') }, forever)],
    ['order', (one) => fetchOrder(one, account, order.url, forever)],
    ['authorization', (one) => fetchAuthorization(one, account, authorization.url, forever)],
    ['challenge', (one) => answerChallenge(one, account, challenge, forever)],
    ['finalize', (one) => finalizeOrder(one, account, ready, csr, forever)],
    ['certificate', (one) => downloadCertificate(one, account, url, wanted, forever)],
    ['renewalInfo', (one) => fetchRenewalInfo(one, id, forever)],
    ['revokeCert', (one) => revokeCertificate(one, { account }, leaf, 0, forever)],
    ['keyChange', (one) => rolloverKey(one, account, key, forever)],
  ]);
}

const reads: readonly AcmeKind[] = [
  ...(['directory', 'newNonce', 'order', 'authorization', 'certificate', 'renewalInfo'] as const),
];

const kinds = Object.keys({
  ...{
    directory: 0,
    newNonce: 0,
    newAccount: 0,
    account: 0,
    newOrder: 0,
    order: 0,
    authorization: 0,
    challenge: 0,
  },
  ...{ finalize: 0, certificate: 0, renewalInfo: 0, revokeCert: 0, keyChange: 0 },
} satisfies Partial<Record<AcmeKind, 0>>) as AcmeKind[];

for (const reset of [false, true]) {
  for (const kind of kinds) {
    test(`a response to ${kind} that is ${reset ? 'reset' : 'cut off'} at any byte is retried or fails with a network error`, async (t) => {
      const parts = await registered(t, { processing: 1 });
      const { ca, client } = parts;
      const step = (await stepsOf(parts)).get(kind);
      assert(step);
      const whole = await defaultAnswer(parts, kind, step);
      const size = ca.sizeOf(kind);
      const fail = async (cutAfter: number) => {
        const restore = ca.overrideAll(kind, { ...whole, cutAfter, reset });
        await assert.rejects(step(client), isCut, `with ${cutAfter} of ${size} bytes`);
        restore();
      };
      // A reset takes the same ways as an end; every seventh byte shows that it does.
      for (let cutAfter = 0; cutAfter < size; cutAfter += reset ? 7 : 1) {
        if (!reads.includes(kind)) await fail(cutAfter);
        else {
          ca.override(kind, { ...whole, cutAfter, reset }, whole);
          await step(client);
        }
      }
      if (reads.includes(kind)) for (let cutAfter = 0; cutAfter < size; cutAfter += 50) await fail(cutAfter);
      // Whole. What needed the nonce is sent at once: it must be told that this connection ends.
      const headers = kind === 'newNonce' ? { ...whole.headers, Connection: 'close' } : whole.headers;
      const cutAfter = kind === 'newNonce' ? Number.POSITIVE_INFINITY : size;
      ca.override(kind, { ...whole, ...(headers && { headers }), cutAfter });
      await step(client);
    });
  }
}

function isCut(error: unknown): boolean {
  assert(error instanceof AcmeError, String(error));
  assert.equal(error.kind, 'network', error.message);
  assert.match(error.message, /^127\.0\.0\.1:\d+ closed the connection before the response was complete$/);
  return true;
}

/** The usual answer to the step, which happens, so that the answer can be given again without its effect. */
async function defaultAnswer({ ca, client }: Parts, kind: AcmeKind, step: Step): Promise<ScriptedReply> {
  const answers: ScriptedReply[] = [];
  const keep: Override = async (_, usual) => {
    const answer = await usual();
    answers.push(answer);
    return answer;
  };
  ca.override(kind, keep);
  await step(client);
  assert(answers[0] !== undefined);
  return answers[0];
}
