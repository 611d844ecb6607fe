/**
 * The cost of certificates from an ACME CA: Pebble, BIND and `vault serve` on this machine, with a proxy in front of
 * the CA that counts every request of the vault, including those for nonces. Like most CAs, Pebble accepts every nonce
 * and reuses authorizations here. The times include the work of the proxy.
 */

import { type AcmeFront, acmeFront } from '../test/harness/acme/front.ts';
import { acmeVault, needsAcme } from '../test/harness/acme/vault.ts';
import { eventually } from '../test/harness/eventually.ts';
import type { Figure } from './figure.ts';

const certificates = 100;

/** The number of concurrent commands while the certificates are created. */
const atATime = 4;

type Hook = () => void | Promise<void>;

/** Measures dist/vault: first issuance of 100 certificates by http-01, and a renewal of all of them. */
export async function measureAcme(): Promise<Figure[]> {
  const { skip } = needsAcme();
  if (skip !== undefined) {
    console.log(`\nacme is skipped: ${skip}`);
    return [];
  }
  const hooks: Hook[] = [];
  try {
    return await measure({ after: (hook: Hook) => void hooks.push(hook) });
  } finally {
    for (const hook of hooks) await hook();
  }
}

async function measure(t: { after: (hook: Hook) => void }): Promise<Figure[]> {
  let front: AcmeFront | undefined;
  const vault = await acmeVault(t, {
    nonceReject: 0,
    authzReuse: 100,
    front: async (ca) => {
      front = await acmeFront(t, ca);
      return front;
    },
  });
  const requests = () => front?.requests().length ?? 0;
  const names = Array.from({ length: certificates }, (_, index) => `c${index}`);
  const waiting = [...names];
  const create = async () => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      const wish = ['--domain', `${name}.example.test`, '--issuer', 'pebble'];
      await vault.done('certificate', 'create', '--name', name, ...wish);
    }
  };
  await Promise.all(Array.from({ length: atATime }, create));
  const scopes = ['--scope', 'certificates:read', '--scope', 'renewals:trigger'];
  const key = await vault.done('api-key', 'create', '--name', 'bench', '--certificate', '*', ...scopes);

  /** Returns the milliseconds and requests until all certificates have this version. */
  const until = async (version: number, begin: () => Promise<void>) => {
    const before = requests();
    const started = performance.now();
    await begin();
    const sql = 'select count(*) as done from certificates where current_version = ?';
    const look = () =>
      vault.query<{ done: number }>(sql, version)[0]?.done === certificates ? true : undefined;
    await eventually(`all have version ${version}`, look, 300_000);
    const ms = performance.now() - started;
    // The vault polls renewal information for new versions once a minute, which is not part of issuance.
    const asked = front?.requests().slice(before) ?? [];
    return { ms, each: asked.filter((request) => !request.includes('/renewal-info/')).length / certificates };
  };
  let url = '';
  const first = await until(1, async () => {
    ({ url } = await vault.serve('--log-level', 'warn'));
  });
  const second = await until(2, async () => {
    const headers = { Authorization: `Bearer ${key}` };
    for (const name of names) {
      const { status } = await fetch(`${url}/api/v1/certificates/${name}/renew`, { method: 'POST', headers });
      if (status !== 202) throw new Error(`renew responded with status ${status}`);
    }
  });
  const per = `${certificates} certificates`;
  return [
    { name: `${per}, first time`, value: first.ms, unit: 'ms' },
    { name: 'requests to the CA for each', value: first.each, unit: 'requests' },
    { name: `${per}, renewed`, value: second.ms, unit: 'ms' },
    { name: 'requests to the CA for each', value: second.each, unit: 'requests' },
  ];
}
