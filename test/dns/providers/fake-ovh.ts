/** A fake of OVH's API 1.0, limited to TXT records. Its clock is years off, and changes are visible after a refresh. */
import { createHash } from 'node:crypto';
import { ovh } from '../../../src/dns/providers/ovh.ts';
import { type FakeApi, wholeName } from '../../harness/dns/fake-provider.ts';
import type { FakeReply, FakeRequest } from '../../harness/http/fake-server.ts';

const keys = { application: 'ovh-ak-4711', secret: 'ovh-as-0815', consumer: 'ovh-ck-1234' };
/** Seconds since 1970. */
export const ovhTime = 2_000_000_000;

type Config = {
  endpoint: 'ovh-eu' | 'ovh-ca' | 'ovh-us';
  application_key: string;
  application_secret: string;
  consumer_key: string;
  base_url?: string | undefined;
};

const error = (status: number, message: string, errorCode = 'NOT_GRANTED_CALL'): FakeReply => ({
  status,
  json: { message, errorCode, httpCode: `${status} Whatever`, class: 'Client::Forbidden' },
});

const config = (url: string): Config => ({
  endpoint: 'ovh-eu',
  application_key: keys.application,
  application_secret: keys.secret,
  consumer_key: keys.consumer,
  base_url: `${url}/1.0`,
});

export const fakeOvh: FakeApi<Config> = {
  type: ovh,
  origin: 'https://eu.api.ovh.com',
  config,
  wrong: (url) => ({ ...config(url), application_secret: 'ovh-wrong-0815' }),
  secrets: [...Object.values(keys), 'ovh-wrong-0815'],
  error,
  strange: { status: 200, json: { zones: [] } },
  isLogin: ({ path }) => path === '/1.0/auth/time',
  handler: (fake) => (request) => {
    const { method, path, body } = request;
    if (path === '/1.0/auth/time') return { status: 200, json: ovhTime };
    const refusal = refused(request);
    if (refusal !== undefined) return refusal;
    if (path === '/1.0/domain/zone') return { status: 200, json: fake.publicZones };
    const [, zone, rest = ''] = /^\/1\.0\/domain\/zone\/([^/]+)\/(.*)$/.exec(path) ?? [];
    if (zone === undefined || !fake.publicZones.includes(zone)) {
      return error(404, 'This service does not exist', 'NOT_FOUND');
    }
    if (rest === 'refresh' && method === 'POST') return { status: 200, json: null };
    const id = /^record\/(\d+)$/.exec(rest)?.[1];
    if (method === 'GET' && id !== undefined) {
      const record = fake.records.find((one) => one.id === id);
      if (record === undefined)
        return error(404, `The requested object (id = ${id}) does not exist`, 'NOT_FOUND');
      const subDomain = record.name === zone ? '' : record.name.slice(0, -(zone.length + 1));
      const json = {
        id: Number(id),
        zone,
        fieldType: 'TXT',
        subDomain,
        target: `"${record.value}"`,
        ttl: 60,
      };
      return { status: 200, json };
    }
    if (method === 'GET') {
      const name = wholeName(request.query.get('subDomain') ?? '', zone);
      const found = fake.seen().filter((record) => record.name === name);
      return { status: 200, json: found.map((record) => Number(record.id)) };
    }
    fake.writing();
    if (method === 'DELETE') {
      if (fake.remove((record) => record.id === id)) return { status: 200, json: null };
      return error(404, `The requested object (id = ${id}) does not exist`, 'NOT_FOUND');
    }
    const made = JSON.parse(body) as { subDomain: string; fieldType: string; target: string; ttl: number };
    const name = wholeName(made.subDomain, zone);
    if (made.fieldType !== 'TXT' || made.ttl < 60) return error(400, 'Invalid TTL', 'INVALID');
    if (fake.values(name).includes(made.target)) return error(409, 'Record already exists', 'CONFLICT');
    return { status: 200, json: { ...made, id: Number(fake.add(name, made.target).id), zone } };
  },
};

function refused({ method, url, body, headers }: FakeRequest): FakeReply | undefined {
  const at = Number(headers['x-ovh-timestamp']);
  if (Math.abs(at - ovhTime) > 600) return error(400, 'Invalid timestamp', 'INVALID_TIMESTAMP');
  const isKnown =
    headers['x-ovh-application'] === keys.application && headers['x-ovh-consumer'] === keys.consumer;
  if (!isKnown) return error(403, 'This credential does not exist', 'INVALID_CREDENTIAL');
  const text = `${keys.secret}+${keys.consumer}+${method}+${url}+${body}+${at}`;
  const expected = `$1$${createHash('sha1').update(text).digest('hex')}`;
  return headers['x-ovh-signature'] === expected
    ? undefined
    : error(400, 'Invalid signature', 'INVALID_SIGNATURE');
}
