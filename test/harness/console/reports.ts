/** Reports of client jobs, sent with an API key as the client installer sends them. */
import assert from 'node:assert/strict';
import type { Person } from './visit.ts';

/** Sends the report of the job on this host. `changes` are members of it, and `id` replaces the deployment's id. */
export type Report = (
  certificate: string,
  host: string,
  changes?: Readonly<Record<string, unknown>> & { readonly id?: string },
) => Promise<void>;

/** Creates an API key for these certificates and returns what sends reports with it. */
export async function reporter(
  { ask, page }: Pick<Person, 'ask' | 'page'>,
  name: string,
  certificates: readonly string[] = ['*'],
): Promise<Report> {
  const wanted = { name, scopes: ['certificates:read'], certificates };
  const { key } = (await ask('POST', '/api-keys', wanted)) as { readonly key: string };
  const { origin } = new URL(page.url());
  return async (certificate, host, { id = host, ...changes } = {}) => {
    const path = `/api/v1/certificates/${certificate}/deployments/${encodeURIComponent(id)}`;
    const job = { job: `${certificate}-1`, destination: '/etc/nginx/tls' };
    const steps = { reload: { result: 'ok' }, verify: { result: 'ok' } };
    const response = await fetch(origin + path, {
      method: 'PUT',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ host, ...job, version: 1, ...steps, ...changes }),
    });
    assert.equal(response.status, 204, await response.text());
  };
}
