/** A vault whose clients report what they installed, over HTTP. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { DeploymentView } from '../../../src/domain/deployments/deployments.ts';
import { checkedServer } from './checked.ts';
import { eventsOf, makeCertificate, makeKey } from './fixtures.ts';

export const fingerprint = 'ab'.repeat(32);

/** What a job whose reload and verification worked reports. */
export const report = {
  host: 'web1.example.test',
  job: 'web-123',
  destination: '/etc/nginx/tls',
  version: 1,
  fingerprint_sha256: fingerprint,
  reload: { result: 'ok', output: null },
  verify: { result: 'ok', output: null },
  error: null,
  next_run_at: '2026-11-22T12:00:00Z',
  client_version: '1.0.0',
};

/** Two certificates, of which clients and administrators with their roles see what they may. */
export async function fleet(t: TestContext, options: Parameters<typeof checkedServer>[1] = {}) {
  const server = await checkedServer(t, {
    administrators: { admin: 'ada', web: 'vera' },
    roles: { vera: 'viewer' },
    reaches: { vera: ['team=web'] },
    ...options,
  });
  const { vault, world } = server;
  await makeCertificate(vault, 'shop', undefined, { labels: ['team=web', 'env=prod'] });
  await makeCertificate(vault, 'ledger', undefined, { labels: ['team=db'] });
  const key = await makeKey(vault, { certificates: ['*'], scopes: ['certificates:read'] });
  const put = async (id: string, body: unknown, raw = key.raw, certificate = 'shop') => {
    const response = await server.get(`/api/v1/certificates/${certificate}/deployments/${id}`, raw, {
      method: 'PUT',
      headers: { 'Content-Type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
  };
  const reported = async (...parameters: Parameters<typeof put>) => {
    const { status, body } = await put(...parameters);
    assert.equal(status, 204, JSON.stringify(body));
  };
  const session = (token: string) => ({
    headers: { Cookie: `vault_session=${token}`, 'Sec-Fetch-Site': 'same-origin' },
  });
  const list = async (path = '/deployments', token = 'admin') => {
    const response = await server.get(`/api/v1${path}`, undefined, session(token));
    assert.equal(response.status, 200);
    return (await response.json()) as DeploymentView[];
  };
  const events = () => [
    ...eventsOf(server.dataDir, 'deployment.create'),
    ...eventsOf(server.dataDir, 'deployment.update'),
  ];
  return { server, vault, world, key, put, reported, list, events, session };
}
