/** Clients, accounts and finished orders at the scripted CA, for tests of a single step. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { registerAccount } from '../../../src/acme/accounts.ts';
import { AcmeClient } from '../../../src/acme/acme-client.ts';
import { AcmeError, type AcmeErrorKind } from '../../../src/acme/acme-error.ts';
import type { AcmeAccount, AcmeIdentifier, AcmeOrder } from '../../../src/acme/acme-types.ts';
import {
  answerChallenge,
  fetchAuthorization,
  finalizeOrder,
  newOrder,
  waitForAuthorization,
  waitForOrder,
} from '../../../src/acme/orders.ts';
import { silentLog } from '../../../src/base/log.ts';
import { Secret } from '../../../src/base/secret.ts';
import { realWorld, type World } from '../../../src/base/world.ts';
import { generatePrivateKey, publicKeyOf } from '../../../src/crypto/key-pair.ts';
import { certificateRequest } from '../../../src/crypto/x509/certificate-request.ts';
import { outboundHttp } from '../../../src/net/outbound-http.ts';
import { loopbackGuard } from '../loopback-guard.ts';
import { identifier } from './private-chain.ts';
import { type ScriptedAcme, type ScriptedAcmeOptions, scriptedAcme } from './scripted-acme.ts';

/** Never aborted. */
export const { signal: forever } = new AbortController();

/** The real world with waits that return at once, except for the deadline of a request. */
export const impatientWorld: World = {
  ...realWorld,
  sleep: (ms, signal) => (ms === 30_000 ? realWorld.sleep(ms, signal) : realWorld.turn()),
};

/** An impatient world that records waits, in milliseconds; its clock stands still if `now` is given. */
export function recordingWorld(now?: number): { readonly world: World; readonly waits: number[] } {
  const waits: number[] = [];
  const sleep = (ms: number, signal?: AbortSignal) => {
    // The deadline of a request, which must not pass at once.
    if (ms === 30_000) return realWorld.sleep(ms, signal);
    waits.push(ms);
    return realWorld.turn();
  };
  return { world: { ...realWorld, sleep, now: () => now ?? realWorld.now() }, waits };
}

/** A client with the real HTTP client. */
export function clientOf(
  { directoryUrl, ca }: Pick<ScriptedAcme, 'directoryUrl' | 'ca'>,
  world: World = impatientWorld,
): AcmeClient {
  const outbound = outboundHttp(world, {}, 'vault-test/1', loopbackGuard);
  return new AcmeClient({ world, outbound, log: silentLog }, { directoryUrl, ca });
}

/** A CA, a client and a registered account. */
export async function registered(
  t: Pick<TestContext, 'after'>,
  options: ScriptedAcmeOptions = {},
  world: World = impatientWorld,
) {
  const ca = await scriptedAcme(t, options);
  const client = clientOf(ca, world);
  const privateKey = await generatePrivateKey('ec256');
  const wanted = { privateKey, email: undefined, externalAccount: undefined, termsAgreed: true };
  const account = await registerAccount(client, wanted, forever);
  return { ca, client, account };
}

/** The identifiers of an order. */
export function dnsNames(...names: readonly string[]): AcmeIdentifier[] {
  return names.map((value) => ({ type: /^[\d.]+$|:/.test(value) ? 'ip' : 'dns', value }));
}

/** An order with valid authorizations. */
export async function readyOrder(
  client: AcmeClient,
  account: AcmeAccount,
  ...names: readonly string[]
): Promise<AcmeOrder> {
  const order = await newOrder(client, account, { identifiers: dnsNames(...names) }, forever);
  for (const url of order.authorizations) {
    const { status, challenges } = await fetchAuthorization(client, account, url, forever);
    if (status === 'valid') continue;
    // Addresses have no dns-01.
    const challenge = challenges.find(({ type }) => type === 'dns-01') ?? challenges[0];
    assert(challenge);
    await answerChallenge(client, account, challenge, forever);
    await waitForAuthorization(client, account, url, forever);
  }
  return waitForOrder(client, account, order.url, ['ready'], forever);
}

/** A valid order with the URL and the key of its certificate. */
export async function issuedOrder(client: AcmeClient, account: AcmeAccount, ...names: readonly string[]) {
  const privateKey = await generatePrivateKey('ec256');
  const ready = await readyOrder(client, account, ...names);
  const csr = await certificateRequest(names.map(identifier), privateKey);
  await finalizeOrder(client, account, ready, csr, forever);
  const order = await waitForOrder(client, account, ready.url, ['valid'], forever);
  assert(order.certificate);
  const wanted = {
    publicKey: publicKeyOf(privateKey),
    identifiers: dnsNames(...names),
    preferredChain: undefined,
  };
  return { order, url: order.certificate, wanted, privateKey };
}

/** Returns a check for an AcmeError of this kind with a matching message. */
export function isAcmeError(kind: AcmeErrorKind, message: RegExp = /./) {
  return (error: unknown): boolean => {
    assert(error instanceof AcmeError, String(error));
    assert.equal(error.kind, kind, error.message);
    assert.match(error.message, message);
    return true;
  };
}

/** An HMAC key for an external account binding. */
export function hmacKey(text = 'a key of thirty-two bytes length'): Secret {
  return new Secret(Buffer.from(text));
}
